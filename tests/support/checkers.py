"""Other people's model checkers, run on what we export, and their reports read.

TLC is the jar that TLA2TOOLS_JAR names; rumur is Debian's, with gcc.
"""

import os
import re
import subprocess
from pathlib import Path

import attrs
import pytest

from isr_check.export import murphi, write_tla
from isr_lang import Design, Instance, Value

# The last is said of an invariant that has no variable in it.
VIOLATED = (
    r"(?:Invariant|Action property|Temporal property|The invariant of) (\w+) (?:is violated|was violated|is equal)"
)


@attrs.frozen
class TlcReport:
    """`generated` counts the `initial` states, too, each as often as it was made; `depth` counts states, not steps."""

    distinct: int
    generated: int
    initial: int
    depth: int
    violated: str | None
    complete: bool


def read_tlc(output: str) -> TlcReport:
    """What TLC says at the end of its output; AssertionError when it failed before it had an answer."""
    failed = re.search(rf"^Error: (?!{VIOLATED}|The behavior|The following)", output, re.M)
    assert not failed, output
    named = re.search(rf"^Error: {VIOLATED}", output, re.M)
    violated = named.group(1) if named else None
    counts = re.findall(r"^(\d+) states generated, (\d+) distinct states found, (\d+) states left", output, re.M)
    depth = re.search(r"depth of the complete state graph search is (\d+)", output)
    if not counts or not depth:  # the initial state violates it
        assert violated, output
        return TlcReport(0, 0, 0, 1, violated, False)
    generated, distinct, left = (int(n) for n in counts[-1])
    # Of 3 states, 1 of them distinct: "3 states generated, with 1 of them distinct".
    initial = re.search(r"^Finished computing initial states: (\d+) (?:distinct|states generated)", output, re.M)
    assert initial, output
    return TlcReport(
        distinct, generated, int(initial.group(1)), int(depth.group(1)), violated, left == 0 and violated is None
    )


def tlc_jar() -> Path:
    jar = os.environ.get("TLA2TOOLS_JAR", "")
    if not jar:
        pytest.skip("TLA2TOOLS_JAR does not name a tla2tools.jar")
    return Path(jar)


def run_tlc(module: Path, configuration: Path) -> TlcReport:
    java = ["java", "-XX:+UseParallelGC", "-Xmx2g", "-cp", str(tlc_jar().resolve()), "tlc2.TLC"]
    # One worker: with more the depth that TLC reports may be off by one.
    options = ["-deadlock", "-nowarning", "-noGenerateSpecTE", "-workers", "1"]
    folders = ["-metadir", str(module.parent / "states")]
    files = [module.name, "-config", configuration.name]
    done = subprocess.run(
        [*java, *options, *folders, *files], cwd=module.parent, capture_output=True, text=True, check=False
    )
    return read_tlc(done.stdout + done.stderr)


def tlc(design: Design, constants: dict[str, Value], folder: Path, name: str = "TypeOK") -> TlcReport:
    """TLC on one configuration of the exported design, by the name of the property in the module."""
    module = write_tla(design, constants, folder)[0]
    return run_tlc(module, folder / f"{module.stem}_{name}.cfg")


@attrs.frozen
class RumurReport:
    """`covered`: how often each cover was seen; `failed`: the message of the error, if any."""

    distinct: int
    fired: int
    covered: dict[str, int]
    failed: str | None


def read_rumur(output: str) -> RumurReport:
    """The end of the report of a verifier that rumur made."""
    counts = re.search(r"(\d+) states, (\d+) rules fired", output)
    assert counts, output
    covers = {name: int(n or 0) for name, n in re.findall(r'cover "([^"]+)" (?:hit (\d+) times|not hit)', output)}
    failed = re.search(r"error trace for the error:\n\n\t(.*)", output)
    said = failed.group(1).removeprefix('invariant "').removesuffix('" failed') if failed else None
    return RumurReport(int(counts.group(1)), int(counts.group(2)), covers, said)


def rumur(instance: Instance, folder: Path, properties: tuple[str, ...] | None = None) -> RumurReport:
    """rumur and gcc on the exported instance."""
    (folder / "model.m").write_text(murphi(instance, properties), encoding="utf-8")
    for command in (
        ["rumur", "--deadlock-detection", "off", "--threads", "2", "--output", "model.c", "model.m"],
        ["gcc", "-std=c11", "-O1", "-march=native", "model.c", "-o", "model", "-lpthread"],
    ):
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    done = subprocess.run(["./model"], cwd=folder, capture_output=True, text=True, check=False)
    return read_rumur(done.stdout + done.stderr)
