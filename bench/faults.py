"""Acknowledged writes through kills, pauses and orderly stops: what four ordinary clients find afterwards.

    python bench/faults.py [--writes N] [--per-second N] [--client NAME]... [--keep DIR]

Three processes with real files; acks=all, idempotent. One line of figures per client; exit code 1 if anything was lost,
doubled, out of order, given up, or different between the replicas.
"""

from __future__ import annotations

import argparse
import logging
import shutil
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.support.faults import endure
from tests.support.writers import WRITERS


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--writes", type=int, default=5_000)
    parser.add_argument("--per-second", type=float, default=70)
    parser.add_argument("--client", action="append", choices=list(WRITERS), default=None)
    parser.add_argument("--keep", type=Path, help="keep the brokers' data and logs there")
    options = parser.parse_args()
    for name in ("aiokafka", "kafka"):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # they would tell of every connection that was refused
    clients: list[str] = options.client or [name for name in WRITERS if name != "kcat" or shutil.which("kcat")]
    good = True
    with tempfile.TemporaryDirectory() as temporary:
        for client in clients:
            root = (options.keep or Path(temporary)) / client
            verdict = endure(root, client, int(options.writes), float(options.per_second))
            print(verdict, flush=True)
            good &= verdict.good and verdict.acked == verdict.attempted
            for name, values in (("lost", verdict.lost), ("doubled", verdict.doubled), ("out of order", verdict.late)):
                if values:
                    print(f"  {name}: {b' '.join(values[:20]).decode()}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
