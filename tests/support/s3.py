"""An S3 server of others, for what lasts in a store: versitygw, on the loopback interface."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from isr_cluster.ports import free_ports

KEY, SECRET = "tests", "only-for-tests"
BUCKET = "explorations"


@contextmanager
def server(folder: Path) -> Generator[str, None, None]:
    """The URL of a bucket without a path, to which `format` gives one. Skips where there is no such program."""
    program = shutil.which("versitygw") or shutil.which("versitygw", path=Path.home() / "go" / "bin")
    if program is None:
        pytest.skip("versitygw is not on the PATH (go install github.com/versity/versitygw/cmd/versitygw@latest)")
    held = folder / "s3"
    (held / BUCKET).mkdir(parents=True)
    (port,) = free_ports(1)
    with (folder / "s3.log").open("wb") as said:
        options = ["--port", f"127.0.0.1:{port}", "--access", KEY, "--secret", SECRET, "--quiet"]
        process = subprocess.Popen([program, *options, "posix", str(held)], stdout=said, stderr=said, env=os.environ)
    try:
        _answers(process, port)
        yield f"s3://{KEY}:{SECRET}@{BUCKET}/{{}}?endpoint_override=127.0.0.1:{port}&scheme=http&region=us-east-1"
    finally:
        process.terminate()
        process.wait()


def _answers(process: subprocess.Popen[bytes], port: int) -> None:
    for _ in range(600):
        assert process.poll() is None, "the S3 server ended"
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.05)
    raise AssertionError("the S3 server does not answer")
