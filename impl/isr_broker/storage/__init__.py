"""What a broker keeps: partitions' logs, checkpoints and the metadata log.

Reading order: `disk` (the interface), `disk_files` (the real one), `disk_memory` (one that can lose whatever was not
flushed).

- Records: `segment` (one file), `log` (one partition's, and its recovery), `log_directory` (all of a broker).
- Small files, replaced as a whole: `owner` (whose they are), `checkpoints`, `meta_properties`.
- A voter of the metadata quorum: `quorum_state` (one file), `quorum_disk` (all of its files).
- The controller's records: `metadata_end`, `metadata_log`. What truncations took: `dropped_records`.
- Consumers' committed offsets as records of a topic: `offsets_topic`.
"""
