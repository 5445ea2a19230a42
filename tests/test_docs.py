"""The documents lead somewhere: links have targets, paths exist, verbs are listed, and things are where they should be.

Without it a module that moves leaves readers at a dead end.
"""

import ast
import os
import re
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path, PurePosixPath

import pytest
from docs.site import api

from insync_cli.main import VERBS

TOP = Path(__file__).resolve().parents[1]
PAGES = sorted(
    page
    for page in (*TOP.glob("*.md"), *(TOP / "docs").rglob("*.md"), *(TOP / "found").rglob("*.md"))
    if not any(part.startswith(".") for part in page.relative_to(TOP).parts)
)

# Links


def dead_links(text: str, folder: Path) -> list[str]:
    """Relative links to files and folders that are not there."""
    targets = (target.split("#")[0] for target in re.findall(r"\]\(([^)\s]+)\)", text))
    return [t for t in targets if t and "://" not in t and not (folder / t).exists()]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(TOP).as_posix())
def test_every_link_has_a_target(page: Path) -> None:
    assert not dead_links(page.read_text(encoding="utf-8"), page.parent)


def test_a_dead_link_is_seen() -> None:
    assert dead_links("[x](no-such-page.md#part)", TOP) == ["no-such-page.md"]
    assert not dead_links("[x](README.md#part) [y](#here) [z](https://example.org)", TOP)


# Paths in back-quotes

UNTRACKED = {"build", "dist", "runs", "report", "node_modules", "__pycache__"}
"""Folders that .gitignore names: what is in them here is not there for a reader."""
SUFFIX = re.compile(
    r"\.(cfg|css|csv|html|java|js|json|jsonl|log|md|parquet|png|py|scala|sql|svg|tla|toml|ts|tsv|txt|yaml|yml)$"
)
GENERATED_PAGE = "docs/measurements/tests.md"
"""A measurement: it names the files of tests that there were when it was taken."""
ELSEWHERE = {
    "Apache Kafka's sources": """cluster/Partition.scala controller/KafkaController.scala
        controller/PartitionChangeBuilder.java controller/ReplicationControlManager.java
        server/AbstractFetcherThread.scala server/ReplicaFetcherThread.scala server/ReplicaManager.scala
        server/epoch/LeaderEpochFileCache.scala""",
    "a folder of Kafka's jars": "libs/",
    "a package of franz-go": "pkg/kgo",
    "a variable of another's model": "partition_data.log",
    "files in the data of a broker": "metadata.log t-0/00000000000000000000.log dropped-records.jsonl",
    "traces, which any broker writes": "NODE.LIFE.jsonl controller.2.jsonl",
    "a verb writes it": """Kip966.tla anomalies.parquet availability.parquet claims.json commits/0007.json
        experiment.html experiment.json gallery.html graph/ history.json history.jsonl index.html index/part-*.parquet
        manifest.json matrix.json matrix.partial.json observed.json operations/ plan.json prove.json
        replayed/part-*.parquet run.json runs/experiment-bootstrap tables/anomalies.parquet timeline.svg
        traces/part-*/NNNNNN.itf.json witnesses.parquet DIR/spark/sets""",
    "make writes it": ".venv/bin/insync build/site/index.html",
    "names of formats": "insync/experiment/1 insync/observed/1 insync/trace/1",
    "the cache of a user": "XDG_CACHE_HOME/insync",
    "a folder of the wheel": "insync_cli/checkout",
    "a layout that was not chosen": "src/insync/",
    "what a web server answers": "/audit.json /metrics",
}
"""Why a path is none of the repository -> such paths."""


def tree() -> Iterator[PurePosixPath]:
    """Every file and folder of the repository, below its top."""
    for folder, folders, files in os.walk(TOP):
        folders[:] = [name for name in folders if name not in UNTRACKED and not name.startswith(".")]
        yield from (PurePosixPath(folder, name).relative_to(TOP.as_posix()) for name in (*folders, *files))


TREE = list(tree())
TAILS = {"/".join(path.parts[k:]) for path in TREE for k in range(len(path.parts))}


def paths_in(text: str) -> Iterator[str]:
    """Back-quoted words with a slash, or with the suffix of a file; in a command, those with both."""
    prose = re.sub(r"^ *```.*?^ *```", "", text, flags=re.MULTILINE | re.DOTALL)
    for span in re.findall(r"`([^`\n]+)`", prose):
        words = [re.sub(r"^[A-Z_]+=", "", word) for word in span.split()]
        for word in words:
            slash, suffix = "/" in word, SUFFIX.search(word) is not None
            if re.fullmatch(r"[\w.<>*/+-]+", word) and (slash and suffix if len(words) > 1 else slash or suffix):
                yield word


def dead_paths(text: str, folder: PurePosixPath) -> list[str]:
    """Paths in back-quotes that lead nowhere from a page in this folder.

    A path counts from the page, from the top, or from a folder of the tree: `core/leader.py` is one of the broker's.
    """

    def exists(path: str) -> bool:
        pattern = re.sub(r"<[^>]*>", "*", path).rstrip("/")
        if "*" in pattern:
            return any(place.match(pattern) for place in TREE)
        return pattern in TAILS or os.path.normpath(folder / pattern) in TAILS

    return [path for path in paths_in(text) if not exists(path)]


MARKDOWN = [path for path in TREE if path.suffix == ".md" and path.as_posix() != GENERATED_PAGE]
DEAD_PATHS = {page.as_posix(): dead_paths((TOP / page).read_text(encoding="utf-8"), page.parent) for page in MARKDOWN}
EXCEPTIONS = {path for paths in ELSEWHERE.values() for path in paths.split()}


def test_every_path_in_back_quotes_exists() -> None:
    assert {
        f"{page}: {path}" for page, paths in DEAD_PATHS.items() for path in paths if path not in EXCEPTIONS
    } == set()
    assert len(MARKDOWN) > 100


def test_every_exception_is_a_path_that_a_page_names() -> None:
    assert EXCEPTIONS - {path for paths in DEAD_PATHS.values() for path in paths} == set()


@pytest.mark.parametrize(
    "path",
    [
        "clusters/isr_cluster/given.py",
        "wire.py",
        "core/given.py",
        "docs/adr/0007",
        "gone/",
        "no_*.py",
        "python bench/gone.py --turns 1",
        "make slow ARGS=tests/gone.py",
    ],
)
def test_a_path_that_leads_nowhere_is_seen(path: str) -> None:
    assert len(dead_paths(f"See `README.md`, and `{path}`.", PurePosixPath("docs"))) == 1


@pytest.mark.parametrize(
    "path",
    [
        "broker.md",
        "../README.md",
        "core/leader.py",
        "leader.py",
        "impl/isr_broker/core/",
        "cases/<case>/README.md",
        "*_requests.py",
        "insync report gone.json",
        "a / b",
    ],
)
def test_a_path_that_leads_somewhere_is_none_that_is_dead(path: str) -> None:
    assert not dead_paths(f"See `{path}`.\n\n```sh\ncat `gone.py`\n```\n", PurePosixPath("docs"))


# What others may import


def unlisted(text: str) -> list[str]:
    """The modules that a page imports from, and that the reference of what others may import has not."""
    listed = {module for _, modules in api.PACKAGES.values() for module in modules}
    imports = re.findall(r"\bfrom (isr_[\w.]+) import (\([^)]*\)|[\w ,]+)", text)
    imports += [(module, "") for module in re.findall(r"^ *import (isr_[\w.]+)", text, re.MULTILINE)]
    return [
        module
        for module, names in imports
        if module not in listed and not {f"{module}.{name}" for name in re.findall(r"\w+", names) or [""]} <= listed
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(TOP).as_posix())
def test_what_a_page_imports_is_listed(page: Path) -> None:
    assert not unlisted(page.read_text(encoding="utf-8"))


def test_an_import_that_is_not_listed_is_seen() -> None:
    assert unlisted("```python\nfrom isr_broker.runtime import Runtime\n```") == ["isr_broker.runtime"]
    assert unlisted("```python\nfrom isr_broker.core import inputs, leader\n```") == ["isr_broker.core"]
    assert unlisted("```python\nfrom isr_sim import (\n    world,\n)\nimport isr_kills.layers\n```") == [
        "isr_sim",
        "isr_kills.layers",
    ]
    assert not unlisted("from isr_broker.core import effects, inputs\nfrom isr_lang import Bool\nimport isr_model")


def test_every_module_that_others_may_import_exists() -> None:
    assert not [m for _, modules in api.PACKAGES.values() for m in modules if find_spec(m) is None]


def test_every_verb_is_listed_once_by_name() -> None:
    listed = (TOP / "docs" / "commands.md").read_text(encoding="utf-8")
    assert not [verb for verb in VERBS if f"`insync {verb}" not in listed]
    assert not [verb for verb in re.findall(r"`insync ([a-z]+)", listed) if verb not in {*VERBS, "VERB"}]


# The tables of ARCHITECTURE.md


def test_what_people_look_for_is_two_hops_away() -> None:
    """Each file that the table of ARCHITECTURE.md names exists, and each function is in one of its row's files."""
    text = (TOP / "ARCHITECTURE.md").read_text(encoding="utf-8")
    part = text.split("## Five things that people look for")[1].split("\n## ")[0]
    rows = [line.split("|")[2:4] for line in part.splitlines() if line.startswith("| W") or line.startswith("| H")]
    assert len(rows) == 5
    for first, then in rows:
        named = re.findall(r"`([^`]+)`", first + then)
        files = [n for n in named if "/" in n or n.endswith(".py")]
        base = (TOP / files[0]) if (TOP / files[0]).is_dir() else (TOP / files[0]).parent
        places = [next((p for p in (TOP / f, base / f, base.parent / f) if p.exists()), None) for f in files]
        assert None not in places, files
        sources = [p.read_text(encoding="utf-8") for p in places if p is not None and p.is_file()]
        for name in (n for n in named if n not in files):
            assert any(re.search(rf"^(def )?{name}\b", source, re.MULTILINE) for source in sources), name


def rows_of(page: str, heading: str) -> list[list[str]]:
    """The cells of the first table below a heading, without its head."""
    part = page.split(f"## {heading}")[1].split("\n## ")[0]
    lines = [line for line in part.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def functions(file: Path) -> dict[str, str]:
    """The functions at the top of a file, and the text of each."""
    source = file.read_text(encoding="utf-8")
    body = ast.parse(source).body
    return {f.name: ast.get_source_segment(source, f) or "" for f in body if isinstance(f, ast.FunctionDef)}


CORE = TOP / "impl" / "isr_broker" / "core"


def in_the_broker(step: str, cell: str) -> bool:
    """Whether a step is taken where a cell says it is.

    "`FILE`": by a function of the step's name. "`FILE`: `FUNCTION`": by this one, which gives the step its name.
    "none: ...": no core has such a function.
    """
    match re.findall(r"`([^`]+)`", cell):
        case [file]:
            return step in functions(CORE / file)
        case [file, name]:
            return f'"{step}"' in functions(CORE / file).get(name, "")
        case _:
            return cell.startswith("none: ") and not any(step in functions(file) for file in CORE.glob("*.py"))


@pytest.mark.long
def test_the_story_of_a_record_names_a_function_in_each_file_and_what_the_model_page_says_of_kafka() -> None:
    model_page = (TOP / "docs" / "model.md").read_text(encoding="utf-8")
    kafka_of = {row[0].strip("`"): row[1] for row in rows_of(model_page, "Actions")}
    story = rows_of((TOP / "ARCHITECTURE.md").read_text(encoding="utf-8"), "The story of one record")
    assert len(story) == 10
    for _, step, model, broker, replay, kafka in story:
        name, *action = re.findall(r"`([^`]+)`", step)
        rules = functions(TOP / "spec" / "isr_protocol" / model.strip("`"))
        assert name in rules, (name, model)
        assert all(f"{name}(" in rules[a] for a in action), step
        assert in_the_broker(name, broker), (name, broker)
        assert replay.strip("`") in functions(TOP / "refinement" / "isr_replay" / "inputs.py"), (name, replay)
        assert kafka in kafka_of[action[0] if action else name], (name, kafka)


@pytest.mark.parametrize(
    ("step", "cell"),
    [
        ("controller_fences_leader", "`elections.py`"),
        ("controller_fences_leader", "`elections.py`: `relievable`"),
        ("controller_fences_leader", "`elections.py`: `gone`"),
        ("leader_appends", "`follower.py`"),
        ("leader_appends", "none: its driver"),
        ("broker_crashes", "its driver"),
    ],
)
def test_a_step_that_is_not_where_a_cell_says_is_seen(step: str, cell: str) -> None:
    assert not in_the_broker(step, cell)


# README.md and the measurements


def test_the_readme_shows_what_make_demo_prints() -> None:
    recipe = (TOP / "Makefile").read_text(encoding="utf-8").split("\ndemo:")[1].split("\n\n")[0]
    echoes = re.findall(r"""^\t@echo (['"])(.*)\1$""", recipe, re.MULTILINE)
    lines = [text.replace("$$", "$").replace("$(BIN)", ".venv/bin") for _, text in echoes]
    readme = (TOP / "README.md").read_text(encoding="utf-8")
    assert len(lines) == 4
    assert [line for line in lines if f"    {line}\n" not in readme] == []


def docstring_of(file: str) -> str:
    return ast.get_docstring(ast.parse((TOP / file).read_text(encoding="utf-8"))) or ""


def unexplained(table: str, docstring: Callable[[str], str]) -> list[str]:
    """The files of tests of over ten seconds whose docstring does not say what would go unnoticed without them."""
    rows = re.findall(r"^\| `([^`]+)` \| \d+ \| ([\d.]+) \| ([\d.]+) \|", table, re.MULTILINE)
    costly = [file for file, processor, clock in rows if file != "all" and max(float(processor), float(clock)) > 10]
    return [file for file in costly if "Without " not in docstring(file)]


def test_each_costly_file_of_tests_says_what_would_go_unnoticed_without_it() -> None:
    table = (TOP / "docs" / "measurements" / "tests.md").read_text(encoding="utf-8")
    assert not unexplained(table, docstring_of)
    row = "| `tests/a.py` | 1 | {} | {} | `test_a` | 1.0 |"
    assert unexplained(row.format("10.1", "1.0"), lambda _: "Some tests.") == ["tests/a.py"]
    assert unexplained(row.format("1.0", "10.1"), lambda _: "Some tests.") == ["tests/a.py"]
    assert not unexplained(row.format("10.0", "10.0"), lambda _: "Some tests.")
    assert not unexplained(row.format("99.0", "99.0"), lambda _: "Some tests. Without these, nothing.")
