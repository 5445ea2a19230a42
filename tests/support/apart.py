"""A cluster whose workers are two users that may not read each other's files; they share an S3 server with the driver.

The executors' Python lacks insync: it comes from the driver.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import venv
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import attrs
from tests.support import s3
from tests.support.sparks import Stranger, cluster, environment, require_spark, strangers

from isr_pipeline.locations import Location


@attrs.frozen
class Apart:
    """What the machines of a cluster have in common, its address and a bucket of a store; and who they are."""

    master: str
    url: str
    users: list[Stranger]

    def store(self, name: str) -> str:
        return self.url.format(name)

    def place(self, name: str) -> Location:
        return Location.of(self.store(name))


@contextmanager
def bare() -> Generator[str]:
    """A Python for everybody that has what insync depends on, and not insync."""
    site = next(entry for entry in sys.path if (Path(entry) / "pyarrow").is_dir())
    with tempfile.TemporaryDirectory(prefix="insync-python-") as folder:
        Path(folder).chmod(0o755)
        venv.create(folder, with_pip=False)
        packages = next(Path(folder).glob("lib/python*/site-packages"))
        (packages / "dependencies.pth").write_text(f"{site}\n", encoding="utf-8")
        yield str(Path(folder) / "bin" / "python")


@contextmanager
def apart(folder: Path, disk: int | None = None) -> Generator[Apart]:
    """The cluster, whose master has its files in `folder`. Skips without Java, an S3 server, or root.

    `disk`: the bytes of the local disk that each worker has for Spark's files and the visited sets.
    """
    require_spark()
    before = dict(os.environ)
    with s3.server(folder) as url, strangers("nobody", "daemon") as users, bare() as python, ExitStack() as closing:
        for user in users:
            if disk is not None:
                closing.enter_context(user.with_disk(disk))
            asked = [*user.command, python, "-c", "import pyspark, pyarrow, isr_pipeline"]
            lacks = subprocess.run(asked, capture_output=True, text=True, check=False)
            assert "No module named 'isr_pipeline'" in lacks.stderr
        os.environ.update({**environment(), "PYSPARK_PYTHON": python})
        try:
            with cluster(folder, 2, owners=users) as master:
                yield Apart(master, url, users)
        finally:
            os.environ.clear()
            os.environ.update(before)
