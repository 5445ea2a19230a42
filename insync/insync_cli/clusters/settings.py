"""Settings of brokers on the command line: `--set name=value`, as many as one likes, judged before anything starts."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from insync_cli.exits import UsageError
from insync_cli.options import option, repeated_option
from isr_broker.settings import BadSetting, Settings

TRACE = "insync.trace.dir"


@attrs.frozen(kw_only=True)
class BrokerSettings:
    """Settings by Kafka's names."""

    set: tuple[str, ...] = repeated_option("NAME=VALUE", "a setting by Kafka's name", str)
    trace: str | None = option("DIR", "write which actions were taken there (docs/trace-format.md)", str)

    def properties(self) -> dict[str, str]:
        """The settings by name; UsageError if there is no such setting or no such value."""
        settings = pairs(self.set, "--set") | ({TRACE: self.trace} if self.trace is not None else {})
        try:
            Settings.from_properties(settings)
        except BadSetting as error:
            raise UsageError(str(error)) from None
        return settings

    def not_ours(self) -> dict[str, str]:
        """The settings for another broker, which judges them itself; UsageError if a trace is wanted of it."""
        if self.trace is not None:
            raise UsageError("--trace goes with --system insync: no other broker writes one")
        return pairs(self.set, "--set")


def pairs(words: Sequence[str], option: str) -> dict[str, str]:
    """`name=value` words as a table."""
    table: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals:
            raise UsageError(f"{option} wants name=value, not '{word}'")
        table[name.strip()] = value.strip()
    return table


def address(text: str, option: str) -> tuple[str, int]:
    """HOST:PORT, or only PORT; of several with commas between, the first."""
    host, _, port = text.split(",")[0].rpartition(":")
    if not port.isascii() or not port.isdigit() or not 0 < int(port) < 65_536:
        raise UsageError(f"{option} wants HOST:PORT, not '{text}'")
    return host or "127.0.0.1", int(port)
