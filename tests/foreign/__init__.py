"""Test suites of others, run as they are against three or five processes of our broker (docs/broker.md).

    python -m tests.foreign                       # all of them; make foreign
    python -m tests.foreign franz-go              # one; make foreign-franz-go
    python -m tests.foreign librdkafka --only 0030_offset_commit

Each is fetched by its language's package manager, outside of the repository. What is expected to fail, and why, is in
`expected.toml`; any other failure fails. Nothing of this is part of `make test`, but for the tests of this folder.
"""
