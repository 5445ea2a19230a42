"""What a cluster can lose: its description, the model's answers about topics like its own, and how it is now.

    cluster = read_description(text, "topics.txt")          # or live.read_cluster(bootstrap, {})
    rows = audited(cluster, running(cluster), Answers(read_table(), lambda asked: None))

`cluster` is what was described, by `descriptions` (texts of Kafka's tools) or `live` (an admin client); `releases` says
which design runs, `questions` what is asked of it, `answers` what the model says; `audit` makes rows of these, worst
first; `condition` is about now, `bugs` about what is known of the release.
"""
