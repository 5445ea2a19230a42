"""Entry point of the console script `insync`."""

import sys


def main() -> int:
    """Say that there is nothing here yet, with the exit code of an internal error."""
    print("insync: the command line is not built yet", file=sys.stderr)
    return 70
