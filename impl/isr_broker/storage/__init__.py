"""What a broker keeps: partitions' logs, checkpoints and the metadata log.

- `disk` is the interface. `disk_files` is the real disk; `disk_memory` can lose whatever was not flushed.
- `segment` -> `log` -> `log_directory`: one file, one partition's log, all logs of a broker.
- `checkpoints`, `meta_properties`: small files replaced as a whole. `metadata_log`: the controller's records.
- `offsets_topic`: consumers' committed offsets as records of `__consumer_offsets`.
"""
