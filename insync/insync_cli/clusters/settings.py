"""Settings of brokers on the command line: `--set name=value`, as many as one likes, judged before anything starts."""

from __future__ import annotations

from argparse import Namespace
from typing import cast

from insync_cli import old_options as options
from insync_cli.exits import UsageError
from isr_broker.settings import BadSetting, Settings

TRACE = "insync.trace.dir"


def add_to(p: options.Parser) -> None:
    """The options."""
    p.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", help="a setting by Kafka's name; repeatable"
    )
    p.add_argument("--trace", metavar="DIR", help="write which actions were taken there (docs/trace-format.md)")


def given(options: Namespace) -> dict[str, str]:
    """The settings by name; UsageError if there is no such setting or no such value."""
    properties: dict[str, str] = {}
    for pair in cast("list[str]", options.set):
        name, equals, value = pair.partition("=")
        if not equals:
            raise UsageError(f"--set wants name=value, not '{pair}'")
        properties[name.strip()] = value.strip()
    if options.trace is not None:
        properties[TRACE] = str(options.trace)
    try:
        Settings.from_properties(properties)
    except BadSetting as error:
        raise UsageError(str(error)) from None
    return properties


def address(text: str, option: str) -> tuple[str, int]:
    """HOST:PORT, or only PORT; of several with commas between, the first."""
    host, _, port = text.split(",")[0].rpartition(":")
    if not port.isascii() or not port.isdigit() or not 0 < int(port) < 65_536:
        raise UsageError(f"{option} wants HOST:PORT, not '{text}'")
    return host or "127.0.0.1", int(port)
