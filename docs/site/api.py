"""The reference of what others may import: which modules of which package, and what for; docstrings are its text."""

from collections.abc import Iterator
from pathlib import PurePosixPath

FOLDER = PurePosixPath("api")
CORE = "isr_broker.core"
CORE_MODULES = ("messages", "inputs", "effects", "record_batch", "replica_state", "replica", "node", "controller")
PACKAGES = {
    "insync": ("ask what the command line asks, from Python or in a notebook", ("insync",)),
    "isr_lang": ("write a model of your own", ("isr_lang",)),
    "isr_model": ("begin with today's design, and vary it", ("isr_model",)),
    "isr_protocol": (
        "name the variables of a state, or begin with another design",
        ("isr_protocol.state", "isr_protocol.by_name"),
    ),
    "kraft_model": ("begin with today's KRaft, and vary it", ("kraft_model",)),
    "kraft_protocol": (
        "name the variables of a quorum's state, or begin with another design of it",
        ("kraft_protocol.state", "kraft_protocol.by_name"),
    ),
    "isr_check": (
        "ask an engine about a model, or write another engine",
        ("isr_check.engine", "isr_check.explorer", "isr_check.reference"),
    ),
    "isr_trace": (
        "read, replay, explain and shorten a behaviour",
        ("isr_trace.trace", "isr_trace.itf", "isr_trace.replay", "isr_trace.explain", "isr_trace.minimise"),
    ),
    "isr_conform": ("put your own broker under test", ("isr_conform.kit",)),
    "isr_pipeline": ("start Spark, to read the tables of an exploration", ("isr_pipeline.session",)),
    "isr_anomalies": ("judge what your clients wrote and read", ("isr_anomalies",)),
    "isr_broker": (
        "drive the cores of the reference broker by hand",
        (*(f"{CORE}.{module}" for module in CORE_MODULES), "isr_broker.settings"),
    ),
}
"""Package -> what it is for, and its modules with a public face."""


def pages() -> dict[PurePosixPath, str]:
    """The index and a page for each package; mkdocstrings puts the docstrings in."""
    return {FOLDER / "README.md": "\n".join(index())} | {
        FOLDER / f"{name}.md": package_page(name, modules) for name, (_, modules) in PACKAGES.items()
    }


def index() -> Iterator[str]:
    yield from ("# What you may import", "", "| package | what it is for |", "|---|---|")
    yield from (f"| [{name}]({name}.md) | {purpose} |" for name, (purpose, _) in PACKAGES.items())
    yield from ("", "The wheel of insync has them all. What is not listed may change without notice.", "")


def package_page(name: str, modules: tuple[str, ...]) -> str:
    """Of one module, its heading is that of the page."""
    if len(modules) == 1:
        return f"::: {modules[0]}\n    options:\n      heading_level: 1\n"
    return "\n\n".join([f"# {name}", *(f"::: {module}" for module in modules)]) + "\n"
