"""The report: every link leads somewhere, no number is typed by hand, and its commands give its verdicts.

Without these, the report would go on to say what runs of an older model said, with commands that answer otherwise.
"""

import ast
import json
import re
import shlex
import shutil
from html import escape
from pathlib import Path
from random import Random
from typing import cast
from urllib.parse import unquote

import pytest
from docs.site.examples import differences_from_today, reasons_to_hide
from playwright.sync_api import Browser
from tests.support.pages import CORPUS, NARROW, opened

import isr_report
from insync_cli.main import main
from isr_report.material import QUESTIONS, questions
from isr_report.matrix.grid import read_matrix
from isr_report.scenes import load_scenes

pytestmark = [pytest.mark.explores, pytest.mark.processes]

HERE = Path(isr_report.__file__).parent
PARTS = (
    "markdown.py", "report.py", "traceability.py", "matrix/coverage.py", "matrix/since.py", "sections/conformance.py",
    "sections/distance.py", "sections/experiments.py", "sections/figures.py", "sections/findings.py",
    "sections/heat.py", "sections/overview.py", "sections/tradeoffs.py",
)  # fmt: skip
TOLD = ("jepsen-2013", "hw-truncation-loss", "minimum-of-one")
NAMES = re.compile(r"kip-\d+|KIP-\d+|KAFKA-\d+|kafka-\d[\d.]*|jepsen-\d+|insync/\w+/\d+|utf-8|\br\d\b", re.IGNORECASE)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, small_matrix: Path) -> Path:
    """A report on three stories and two designs."""
    top = tmp_path_factory.mktemp("report")
    entries = (CORPUS / "cases.toml").read_text(encoding="utf-8").split("[[case]]")
    kept = [e for e in entries if any(f'name = "{name}"' in e for name in TOLD)]
    (top / "corpus").mkdir()
    (top / "corpus" / "cases.toml").write_text("".join(f"[[case]]{e}" for e in kept), encoding="utf-8")
    for name in TOLD:
        shutil.copytree(CORPUS / name, top / "corpus" / name)
    proof: dict[str, object] = {"schema": "insync/mutate/1", "design": "kip-966", "mutants": [
        {"action": "a", "guard": "g < h", "fate": "killed", "killers": ["acked-survives"], "depth": 4, "reason": None},
        {"action": "a", "guard": "h", "fate": "survived", "killers": [], "depth": None, "reason": None},
        {"action": "a", "guard": "i", "fate": "killed", "killers": ["record-commits"], "depth": None, "reason": None},
        {"action": "a", "guard": "j", "fate": "equivalent", "killers": [], "depth": None, "reason": None},
    ]}  # fmt: skip
    (top / "mutate.json").write_text(json.dumps(proof), encoding="utf-8")
    shutil.copy(QUESTIONS, top / "questions.toml")  # those of other families are asked below
    given = ["--matrix", str(small_matrix), "--cases", str(top / "corpus"), "--include", str(top / "mutate.json")]
    given += ["--questions", str(top / "questions.toml")]
    assert main(["report", *given, "--out", str(top / "out"), "--quiet", "--workers", "1"]) == 0
    return top / "out"


def links(text: str) -> list[str]:
    return [unquote(h) for h in re.findall(r'href="([^"#][^"]*)"', text)]


def test_every_link_leads_to_a_file_that_exists(folder: Path) -> None:
    text = (folder / "index.html").read_text(encoding="utf-8")
    found = links(text)
    data = cast("dict[str, list[dict[str, object]]]", json.loads(text.split('id="data">')[1].split("</script>")[0]))
    for cell in data["cells"]:
        found.append(str(cell["run"]))
        for promise in cast("list[dict[str, str | None]]", cell["promises"]):
            found += [path for path in (promise["trace"], promise["page"]) if path]
            assert (promise["verdict"] == "VIOLATED") is bool(promise["trace"])
    assert len(found) > 50
    assert not [path for path in found if not (folder / path).is_file()]
    assert not [path for path in found if path.startswith(("http", "/"))]


def test_what_the_site_would_not_show_of_a_report_is_seen(folder: Path, tmp_path: Path) -> None:
    """The example of the site is made again if it is not of today; this report has another plan, and no other fault."""
    assert [
        line for line in reasons_to_hide(folder) if "bytes" not in line
    ] == []  # with its pages it is larger than the example
    assert differences_from_today(folder, CORPUS.parents[1]) == ["the promises of its cells"]
    later = tmp_path / "later"
    shutil.copytree(folder, later)
    cells = (later / "matrix" / "matrix.json").read_text(encoding="utf-8")
    model = str(json.loads(cells)["cells"][0]["model_hash"])
    (later / "matrix" / "matrix.json").write_text(cells.replace(model, "of-yesterday"), encoding="utf-8")
    (later / "cases" / "jepsen-2013.itf.json").write_text("another trace", encoding="utf-8")
    page = (later / "index.html").read_text(encoding="utf-8")
    (later / "index.html").write_text(page.replace(escape(questions()[0].asks), "?"), encoding="utf-8")
    assert {line.split(":")[0].rpartition(" ")[0] for line in differences_from_today(later, CORPUS.parents[1])} == {
        "the model of", "the promises of its", "the story", "the"
    }  # fmt: skip


def test_every_claim_has_a_command(folder: Path) -> None:
    claims = json.loads((folder / "claims.json").read_text(encoding="utf-8"))["claims"]
    assert all(str(claim["command"]).startswith("insync check ") for claim in claims)


def test_a_square_says_what_its_run_says(folder: Path) -> None:
    matrix = read_matrix(folder / "matrix" / "matrix.json")
    text = (folder / "index.html").read_text(encoding="utf-8")
    for i, cell in enumerate(matrix["cells"]):
        run = cast("dict[str, list[dict[str, object]]]", json.loads((folder / "matrix" / cell["run"]).read_text()))
        said = next(p for p in run["properties"] if p["name"] == "acked-survives")
        shown = re.search(rf'<a data-i="{i}" aria-label="([^"]*)"[^>]*>([^<]*)</a>', text)
        assert shown is not None
        assert shown[1] == f"{cell['name']}: {said['verdict']}"
        assert shown[2] == (str(said["depth"]) if said["verdict"] == "VIOLATED" else "✓")


def test_a_random_tenth_of_the_commands_gives_the_same_verdicts_again(folder: Path, tmp_path: Path) -> None:
    listed = cast("list[dict[str, object]]", json.loads((folder / "claims.json").read_text(encoding="utf-8"))["claims"])
    seed = Random().randrange(1_000_000)
    for claim in Random(seed).sample(listed, max(4, len(listed) // 10)):
        command = shlex.split(str(claim["command"]))
        assert command[:2] == ["insync", "check"]
        main([*command[1:], "--out", str(tmp_path), "--quiet", "--workers", "1"])
        run = cast("dict[str, object]", json.loads((tmp_path / "run.json").read_text(encoding="utf-8")))
        lines = cast("list[dict[str, str]]", run["properties"])
        assert claim["expects"] == {line["name"]: line["verdict"] for line in lines}, f"seed {seed}: {command}"


def typed(text: str) -> list[str]:
    """Numbers in what a reader sees, names of proposals and designs apart."""
    seen = re.sub(r"<(style|script)\b.*?</\1>|<!--.*?-->|<[^>]*>", " ", text, flags=re.DOTALL)
    return re.findall(r"\d[\d.,]*", NAMES.sub("", seen))


def literals(source: str) -> str:
    """All texts of a module but docstrings and formats."""
    tree = ast.parse(source)
    docs = {id(n.value) for n in ast.walk(tree) if isinstance(n, ast.Expr)}
    formats = {id(c) for n in ast.walk(tree) if isinstance(n, ast.FormattedValue) and n.format_spec
               for c in ast.walk(n.format_spec)}  # fmt: skip
    texts = (n for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str))
    return " ".join(str(n.value) for n in texts if id(n) not in docs and id(n) not in formats)


def test_no_number_is_typed_by_hand() -> None:
    assert not typed((HERE / "templates" / "report.html").read_text(encoding="utf-8"))
    for name in PARTS:
        assert not typed(literals((HERE / name).read_text(encoding="utf-8"))), name
    assert not [q.asks for q in questions() if typed(q.asks)]
    assert not [b.says for s in load_scenes() for b in s.beats if typed(b.says)]


@pytest.mark.parametrize("planted", ["<p>All 340 cells hold.</p>", "<h2>2,966,775 states</h2>", "x 12"])
def test_a_number_typed_by_hand_is_seen(planted: str) -> None:
    assert typed((HERE / "templates" / "report.html").read_text(encoding="utf-8").replace("</main>", "") + planted)
    assert typed(literals(f"'''a 1'''\nx = f'{{y:.2f}} {planted}'"))
    assert not typed(literals("'''a 1'''\nx = f'{y:.2f} KIP-966'"))


def test_what_no_run_answers_is_said_to_be_open(folder: Path) -> None:
    text = (folder / "index.html").read_text(encoding="utf-8")
    answers = re.findall(r'<li class="(\w+)"><h3>([^<]*)</h3><p><b class="\w+">([^<]*)</b>', text)
    assert len(answers) == len(questions())
    said = {asks: (kind, word) for kind, asks, word in answers}
    assert said["Does an acknowledged record survive two power cuts?"] == ("open", "Not answered")
    assert said["Can an acknowledged record be lost when one broker crashes and keeps its disk?"] == ("holds", "No")
    assert said["Does a minimum of two in-sync replicas save acknowledged records in the first design of Kafka?"] == (
        "violated",
        "No",
    )


def test_the_summary_says_what_the_runs_say(folder: Path) -> None:
    text = (folder / "index.html").read_text(encoding="utf-8")
    rows = text[text.index('class="overview"') : text.index("Every run")].split("<tr>")
    survives = next(row for row in rows if "acked-survives" in row)
    old, today = survives.split("<td>")[1:]
    assert "VIOLATED" in old
    assert "one crash that keeps the disk: VIOLATED in 12 steps" in old
    assert "HOLDS" in today
    assert "VIOLATED" not in today
    answered = next(row for row in rows if "writes-are-answered" in row)
    assert answered.count("HOLDS</span>") == 2, "of liveness, too"


def test_every_page_of_a_counterexample_names_what_would_have_stopped_it(folder: Path) -> None:
    text = (folder / "index.html").read_text(encoding="utf-8")
    data = cast("dict[str, list[dict[str, object]]]", json.loads(text.split('id="data">')[1].split("</script>")[0]))
    pages = {p["page"] for c in data["cells"] for p in cast("list[dict[str, str | None]]", c["promises"])} - {None}
    assert len(pages) > 3
    stopped = 0
    for page in pages:
        found = (folder / str(page)).read_text(encoding="utf-8")
        document = json.loads(re.findall(r'class="document"[^>]*>(.*?)</script>', found, re.DOTALL)[0])
        against = document["against"]
        stopped += against is not None
        assert against is None or against["parts"] is not None, f"{page}: {against['label']} does the same"
        assert against is None or document["property"] not in {p for t in against["turns"] for p in t["broken"]}
    assert stopped >= len(pages) - 2


def test_probes_are_shown_with_witnesses_that_can_be_walked_through(folder: Path) -> None:
    text = (folder / "index.html").read_text(encoding="utf-8")
    probes = text[text.index("Reachability probes") : text.index('id="availability"')]
    assert re.search(
        r'<code>record-commits</code></td>.*?<a href="cells/witness-record-commits.html">\d+ steps', probes
    )
    assert (folder / "cells" / "witness-record-commits.html").is_file()


def test_the_report_is_also_markdown_with_the_same_answers_and_links(folder: Path) -> None:
    page, text = (folder / "index.html").read_text(encoding="utf-8"), (folder / "report.md").read_text(encoding="utf-8")
    for asks, word in re.findall(r'<li class="\w+"><h3>([^<]*)</h3><p><b class="\w+">([^<]*)</b>', page):
        assert f"- {asks} **{word}" in text
    found = [unquote(path) for path in re.findall(r"\]\(([^)]*)\)", text)]
    assert len(found) > 30
    assert not [path for path in found if not (folder / path).is_file()]
    assert "sequenceDiagram" in text


def test_one_schedule_is_shown_under_two_designs(folder: Path) -> None:
    text = (folder / "index.html").read_text(encoding="utf-8")
    side = text[text.index('id="together"') : text.index('id="stories"')]
    assert "kafka-0.8, min ISR" in side
    assert "kip-966, min ISR" in side
    left, right = side.count("LOST: record"), side.count("Refused")
    assert left, "the old design loses the record"
    assert right, "today's refuses a step of it"


def test_a_guard_that_nothing_notices_is_flagged(folder: Path) -> None:
    text = (folder / "index.html").read_text(encoding="utf-8")
    proofs = text[text.index('id="proofs"') : text.index('id="conformance"')]
    assert proofs.count('<b class="flagged">') == 1
    assert '<code>a</code> <b class="flagged"><code>h</code></b>' in proofs
    assert 'aria-label="g &lt; h: noticed by acked-survives in 4 steps">4</i>' in proofs


# Questions, plans and corpora of one's own


OWN_PLAN = """
designs = ["kip-966"]
promises = ["acked-survives"]
bounds = { replicas = 2, log = 2, records = 2, epochs = 2, isr_changes = 4 }
[settings]
min_insync = ["2"]
[[fault]]
name = "crash"
says = "one crash"
budget = { crashes = 1 }
"""
OWN_QUESTIONS = """
[[question]]
asks = "Is mine answered?"
holds = "Yes"
design = "kip-966"
settings = { min_insync = "2" }
fault = "crash"
promise = "acked-survives"

[[question]]
asks = "Is that of a story?"
holds = "Yes"
case = "jepsen-2013"

[[question]]
asks = "Is that of a story that nobody tells?"
holds = "Yes"
case = "no-such-case"

[[question]]
asks = "Is that of a run of its own?"
holds = "Yes"
check = "abstract-quorum --property quorum-only-grows"

[[question]]
asks = "And with a lost disk?"
holds = "Yes"
check = "abstract-quorum --lost-disks 1 --property quorum-only-grows"
"""


@pytest.fixture(scope="module")
def own(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report on a plan and questions of one's own, its stories and scenes on one page."""
    top = tmp_path_factory.mktemp("own")
    (top / "plan.toml").write_text(OWN_PLAN, encoding="utf-8")
    (top / "questions.toml").write_text(OWN_QUESTIONS, encoding="utf-8")
    given = ["--plan", str(top / "plan.toml"), "--questions", str(top / "questions.toml"), "--gallery", "--no-pages"]
    given += ["--cases", str(folder.parent / "corpus"), "--out", str(top / "out")]
    assert main(["report", *given, "--quiet", "--workers", "1"]) == 0
    return top / "out"


def test_a_plan_and_questions_of_ones_own_are_answered(own: Path) -> None:
    text = (own / "index.html").read_text(encoding="utf-8")
    answers = dict(re.findall(r'<li class="\w+"><h3>([^<]*)</h3><p><b class="\w+">([^<]*)</b>', text))
    assert answers == {
        "Is mine answered?": "Yes",
        "Is that of a story?": "No",
        "Is that of a story that nobody tells?": "Not answered",
        "Is that of a run of its own?": "Yes",
        "And with a lost disk?": "No",
    }
    assert all(
        f"- {asks} **{word}" in (own / "report.md").read_text(encoding="utf-8") for asks, word in answers.items()
    )


def test_nothing_is_claimed_of_designs_that_a_plan_of_ones_own_does_not_run(own: Path) -> None:
    text = (own / "index.html").read_text(encoding="utf-8")
    others = text[text.index('id="alternatives"') : text.index('id="controls"')]
    assert "kip-320-first-try" in others
    assert "Not run for this page" in others
    assert "Not taken" not in others
    assert "<table" not in others, "no design beside the line has its story here"
    table = text[text.index('class="grid"') :]
    assert "majority" not in table[: table.index("</table>")]


def test_stories_and_scenes_may_share_a_page_to_which_each_link_leads(own: Path) -> None:
    text = (own / "index.html").read_text(encoding="utf-8")
    shared = [path for path in links(text) if path.startswith("gallery.html#")]
    gallery = (own / "gallery.html").read_text(encoding="utf-8")
    wanted = {re.findall(r"trace=(\w+)", path)[0] for path in shared}
    assert len(wanted) == len(TOLD) + len(load_scenes()) + 1, "and the counterexample of a question"
    assert all(f'"digest":"{digest}' in gallery.replace('": "', '":"') for digest in wanted)
    assert not (own / "scenes").exists()
    assert not [line for line in reasons_to_hide(own) if "bytes" not in line], "the site's example is such a report"


def test_a_scene_beside_another_design_shows_where_it_is_refused(own: Path) -> None:
    text = (own / "index.html").read_text(encoding="utf-8")
    scenes = {part.split("</b>")[0]: part for part in text.split('<details class="scene"><summary><b>')[1:]}
    pair = scenes["What if they all die? Take whoever comes back first"]
    assert "controller_elects_unclean is switched off at these settings" in pair
    assert "kip-966, min ISR" in pair


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[[question]]\nasks = 'A?'\nholds = 'Maybe'\ncase = 'x'", "question 1: 'holds' is Yes or No"),
        ("[[question]]\nasks = 'A?'\nholds = 'Yes'\ndesign = 'd'", "question 1 needs 'settings', a case or a check"),
        ("[[question]]\nholds = 'Yes'", "question 1 needs 'asks'"),
        ("[[question]]\nasks =", "not TOML"),
        ("questions = 3", "there is no [[question]] in it"),
        ("question = [3]", "question 1 is not a table"),
    ],
)
def test_what_is_wrong_with_a_file_of_questions_is_one_sentence(
    text: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "questions.toml"
    file.write_text(text, encoding="utf-8")
    assert main(["report", "--questions", str(file), "--cases", str(CORPUS), "--out", str(tmp_path / "out")]) == 65
    told = capsys.readouterr().err
    assert said in told
    assert told.count("\n") == 1
    assert not (tmp_path / "out").exists(), "read before anything is run"


def test_a_missing_trace_is_one_sentence(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    corpus = tmp_path / "corpus"
    shutil.copytree(folder.parent / "corpus", corpus)
    (corpus / TOLD[1] / "trace.itf.json").unlink()
    assert main(["report", "--cases", str(corpus), "--out", str(tmp_path / "out")]) == 65
    told = capsys.readouterr().err
    assert TOLD[1] in told
    assert told.count("\n") == 1


def test_a_plan_goes_with_no_matrix_that_is_there(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "--plan", "plan.toml", "--matrix", str(folder / "matrix")]) == 64
    assert "with --matrix there is a matrix already" in capsys.readouterr().err
    assert main(["report", "--plan", "plan.toml", "--quick"]) == 64
    assert "--quick has a plan of its own" in capsys.readouterr().err


@pytest.mark.browser
def test_the_page_works_offline_in_light_and_dark_and_on_a_phone(browser: Browser, folder: Path) -> None:
    with opened(browser, folder / "index.html", dark=True) as page:
        page.page.locator('.promise[value="leaders-complete"]').click()
        assert page.page.locator('.promise[aria-pressed="true"]').all_text_contents() == ["leaders-complete"]
        square = page.page.locator(".square.violated").first
        square.click()
        assert page.value("document.getElementById('detail').open") is True
        assert any(text.startswith("insync check") for text in page.texts("#detail code"))
    with opened(browser, folder / "index.html", size=NARROW) as page:
        assert page.value("document.documentElement.scrollWidth <= innerWidth") is True
        pills = page.page.locator(".overview .verdict.violated"), page.page.locator(".overview .verdict.holds")
        colours = [pill.first.evaluate("node => getComputedStyle(node).backgroundColor") for pill in pills]
        assert colours[0] != colours[1], "what is broken looks so"
        for small in (".overview .mark", ".overview .said small", ".shot .derived", ".answers p"):
            size = page.page.locator(small).first.evaluate("node => parseFloat(getComputedStyle(node).fontSize)")
            assert size >= 10.5, f"{small} can be read on a phone"
        assert all(text.strip() for text in page.texts(".overview .mark, .overview .verdict"))
