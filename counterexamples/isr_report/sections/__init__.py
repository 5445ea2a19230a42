"""The sections of the page, each made from what was found.

Reading order, as on the page: `overview` (the summary of the matrix), `findings` (questions, matrix, stories, scenes),
`distance` (how few faults it takes), `tradeoffs`, `figures` (sections with numbers of their own), `heat` (dropped
guards), `conformance` with `kafka_stories` (what Kafka's releases can take), `experiments` (on real processes).
"""
