"""What a broker keeps: logs of segments, checkpoints and the metadata log, on a disk that is real or treacherous."""
