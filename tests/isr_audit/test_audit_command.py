"""`insync audit` from end to end: the transcript in docs/audit.md, exit codes, reports, mistakes, a real cluster."""

from __future__ import annotations

import json
import re
import shlex
import time
from pathlib import Path
from typing import cast

import pytest
from tests.support import clients
from tests.support.clusters import three_processes
from tests.support.expected import rewriting

from insync_cli.main import main
from isr_audit import answers, live

TOP = Path(__file__).parents[2]
PAGE = TOP / "docs" / "audit.md"
HEALTHY = """\
Topic: t\tPartitionCount: 1\tReplicationFactor: 3\tConfigs: min.insync.replicas=2
\tTopic: t\tPartition: 0\tLeader: 1\tReplicas: 1,2,3\tIsr: 1,2,3
"""
ELR = "Feature: eligible.leader.replicas.version\tFinalizedVersionLevel: 1\tEpoch: 1\n"


VOTERS_KNOWN = "Feature: kraft.version\tFinalizedVersionLevel: {}\tEpoch: 1\n"


@pytest.fixture
def stored_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is not stored is an error: exploring takes as long as the machine is busy."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("explored, though the answer should be stored")

    monkeypatch.setattr(answers, "explore", refuse)


def audit(tmp_path: Path, text: str, *more: str) -> int:
    (tmp_path / "cluster.txt").write_text(text, encoding="utf-8")
    return main(["audit", "--describe", str(tmp_path / "cluster.txt"), *more])


@pytest.mark.explores
@pytest.mark.usefixtures("stored_only")
def test_the_transcript_in_the_docs(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(TOP)
    text = PAGE.read_text(encoding="utf-8")
    block = re.search(r"```text\n\$ insync (audit .*?)\n(.*?)```", text, re.DOTALL)
    assert block is not None
    assert main(shlex.split(block[1])) == 2
    said = capsys.readouterr()
    if rewriting():
        PAGE.write_text(text[: block.start(2)] + said.out + text[block.end(2) :], encoding="utf-8")
    else:
        assert said.out == block[2]
    assert said.err == ""


@pytest.mark.long
@pytest.mark.usefixtures("stored_only")
@pytest.mark.parametrize(
    ("change", "code"),
    [
        ((), 0),
        (("Isr: 1,2,3", "Isr: 1,2"), 1),
        (("min.insync.replicas=2", "min.insync.replicas=1"), 1),
        (("Isr: 1,2,3", "Isr: 1"), 2),
        (("Leader: 1", "Leader: none"), 2),
    ],
)
def test_exit_codes_for_cron(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], change: tuple[str, str] | tuple[()], code: int
) -> None:
    assert audit(tmp_path, ELR + (HEALTHY.replace(*change) if change else HEALTHY)) == code
    assert capsys.readouterr().err == ""


@pytest.mark.long
@pytest.mark.usefixtures("stored_only")
def test_what_was_not_decided_is_no_success(tmp_path: Path) -> None:
    text = ELR + HEALTHY.replace("1,2,3", "1,2,3,4,5,6").replace("Factor: 3", "Factor: 6")
    assert audit(tmp_path, text) == 20, "a power loss, of which no proof is known with six replicas"


@pytest.mark.long
@pytest.mark.usefixtures("stored_only")
def test_every_answer_names_its_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert audit(tmp_path, ELR + HEALTHY, "--json", "-") == 0
    report = json.loads(capsys.readouterr().out)
    (row,) = report["rows"]
    assert {a["acks"] for a in row["answers"]} == {"all", "1"}
    for line in row["answers"]:
        run = line["run"]
        proved = run["verdict"] == "PROVED"
        assert run["command"].startswith(f"insync {'prove' if proved else 'check'} kip-966 ")
        assert proved == (line["fault"] in ("nothing", "one-crash", "restart-of-all") and line["acks"] == "all")
        assert run["verdict"] in {"survives": ("HOLDS", "PROVED"), "lost": ("VIOLATED",)}[line["verdict"]]
        assert bool(line["story"]) == (line["verdict"] == "lost")
        assert len(line["story"]) <= 5
    assert [b["name"] for b in report["bugs"]][:2] == ["kept-positions", "overtaken-request"]


@pytest.mark.explores
@pytest.mark.usefixtures("stored_only")
def test_topics_with_one_answer_are_one_row(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As of a cluster of 10,000 partitions."""
    text = ELR + "".join(HEALTHY.replace("Topic: t", f"Topic: t{n}") for n in range(10_000))
    began = time.monotonic()
    assert audit(tmp_path, text, "--json", "-") == 0
    assert time.monotonic() - began < 60
    report = json.loads(capsys.readouterr().out)
    assert (report["topics"], report["partitions"], len(report["rows"])) == (10_000, 10_000, 1)


@pytest.mark.explores
def test_the_command_of_an_answer_repeats_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = ELR + HEALTHY.replace("1,2,3", "1,2").replace("Factor: 3", "Factor: 2").replace("min.insync.replicas=2", "")
    assert audit(tmp_path, text, "--json", "-") == 1
    answers_told = json.loads(capsys.readouterr().out)["rows"][0]["answers"]
    lost = next(a for a in answers_told if a["fault"] == "one-power-loss" and a["acks"] == "all")
    assert main([*lost["run"]["command"].split()[1:], "--json", "-", "--out", str(tmp_path)]) == 12
    assert json.loads(capsys.readouterr().out)["properties"][0]["depth"] == lost["run"]["steps"]


OFFLINE = HEALTHY.replace("Leader: 1", "Leader: none").replace("Isr: 1,2,3", "Isr: 3")


@pytest.mark.long
@pytest.mark.usefixtures("stored_only")
def test_metrics_for_prometheus(tmp_path: Path) -> None:
    file = tmp_path / "insync.prom"
    named = OFFLINE.replace("Topic: t", "Topic: t.1")
    assert audit(tmp_path, named + ELR, "--plain", "--metrics", str(file)) == 2
    lines = file.read_text(encoding="utf-8").splitlines()
    values = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    assert values['insync_audit_partitions{trouble="offline"}'] == "1"
    assert values['insync_audit_partitions{trouble="under_minimum"}'] == "0"
    assert values['insync_audit_topic_at_risk{topic="t.1"}'] == "0"
    assert values["insync_audit_exit_code"] == "2"
    assert int(values["insync_audit_timestamp_seconds"]) > 1_700_000_000
    told = {line.split()[2] for line in lines if line.startswith("# TYPE")}
    assert told == {name.partition("{")[0] for name in values}
    assert {f.name for f in tmp_path.iterdir()} == {"cluster.txt", "insync.prom"}


@pytest.mark.explores
@pytest.mark.usefixtures("stored_only")
def test_watching_tells_what_changed_and_ends_with_the_last_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    described, waits = tmp_path / "cluster.txt", list[float]()

    def wait(time_s: float) -> None:
        waits.append(time_s)
        match len(waits):
            case 2:
                described.write_text(OFFLINE + ELR, encoding="utf-8")
            case 3:
                described.write_text("nothing of Kafka\n", encoding="utf-8")
            case 4:
                described.write_text(OFFLINE + ELR, encoding="utf-8")
            case 5:
                raise KeyboardInterrupt
            case _:
                pass

    monkeypatch.setattr(time, "sleep", wait)
    metrics = tmp_path / "insync.prom"
    assert audit(tmp_path, HEALTHY + ELR, "--plain", "--watch", "7", "--metrics", str(metrics)) == 2
    said = " ".join(capsys.readouterr().out.split())
    assert waits == [7.0] * 5
    assert said.count("every partition has its leader") == 1
    assert said.count("OFFLINE t-0") == 2
    assert said.count("nothing in it is recognised") == 1


@pytest.mark.explores
@pytest.mark.usefixtures("stored_only")
def test_a_ticket_and_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ticket, page = tmp_path / "ticket.md", tmp_path / "page.html"
    assert audit(tmp_path, ELR + HEALTHY, "--markdown", str(ticket), "--html", str(page)) == 0
    text = ticket.read_text(encoding="utf-8")
    proved = "proved for any number of replicas and crashes"
    assert f"| acks=all | survives | if nothing fails, one crash ({proved}) |\n" in text
    assert "|  | survives | one power loss, one disk lost, a restart of all |\n" in text
    assert "acked-survives" in page.read_text(encoding="utf-8")
    capsys.readouterr()


@pytest.mark.parametrize(
    ("text", "more", "code", "says"),
    [
        ("nothing of the kind\n", (), 65, "nothing in it is recognised; give what kafka-topics.sh --describe"),
        ("node.id=1\n", (), 65, "no topic is described with its replicas"),
        ("services:\n  kafka:\n    environment: {KAFKA_MIN_INSYNC_REPLICAS: 2}\n", (), 65, "as well, or a KafkaTopic"),
        (HEALTHY, ("--topic", "tt"), 64, "there is no topic 'tt'; did you mean 't'?"),
        (HEALTHY, ("--kafka", "new"), 64, "a release of Kafka such as 4.1.1, not new"),
        (HEALTHY, ("--client", "x"), 64, "--client is for --bootstrap"),
        (HEALTHY, ("--markdown", "no/such/folder.md"), 64, "cannot write no/such/folder.md"),
    ],
)
def test_a_mistake_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, more: tuple[str, ...], code: int, says: str
) -> None:
    assert audit(tmp_path, text, *more) == code
    said = capsys.readouterr()
    assert said.out == ""
    assert says in said.err
    assert said.err.count("\n") == 1


def test_without_anything_to_read(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit"]) == 64
    assert "give --describe FILE or --bootstrap HOST:PORT" in capsys.readouterr().err


@pytest.mark.sockets
def test_nobody_there_and_settings_that_are_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "PATIENCE_S", 1.0)
    for verb in (["audit"], ["drill", "stop 3"]):
        assert main([*verb, "--bootstrap", "127.0.0.1:1"]) == 2
        assert capsys.readouterr().err.startswith("insync: no answer from the cluster: 127.0.0.1:1: ")
    file = tmp_path / "topics.txt"
    file.write_text("Topic: t\tPartitionCount: 0\tReplicationFactor: 3\tConfigs: \n", encoding="utf-8")
    assert main(["drill", "stop 3", "--describe", str(file), "--bootstrap", "127.0.0.1:1"]) == 2
    said = capsys.readouterr().err
    assert said.endswith("; without --bootstrap the files alone are asked about\n")
    assert said.count("\n") == 1
    assert main(["audit", "--bootstrap", "127.0.0.1:1"]) == 2
    assert "no answer from the cluster: 127.0.0.1:1: " in capsys.readouterr().err
    (tmp_path / "client.properties").write_text("no.such.setting=1\n", encoding="utf-8")
    assert main(["audit", "--bootstrap", "127.0.0.1:1", "--client", str(tmp_path / "client.properties")]) == 64
    said = capsys.readouterr().err
    assert "no.such.setting" in said
    assert said.count("\n") == 1


@pytest.mark.slow
@pytest.mark.processes
@pytest.mark.sockets
@pytest.mark.usefixtures("stored_only")
def test_a_cluster_of_real_processes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without it nobody would notice that a client tells something else than a description of the same cluster."""
    brokers = three_processes(tmp_path)
    try:
        brokers.start_all()
        clients.create_topic(brokers.bootstrap, "strict", 2, 2)
        clients.create_topic(brokers.bootstrap, "lax", 1, 1)
        assert until(brokers.bootstrap, capsys, 1)["now"] == []
        first, second = reported(brokers.bootstrap, capsys)["rows"]
        assert (first["topics"], first["at_risk"]) == (["lax"], True)
        assert (second["topics"], second["at_risk"]) == (["strict"], False)
        brokers.kill(3)
        seen = until(brokers.bootstrap, capsys, 1, "under-replicated")
        assert {n["trouble"] for n in seen["now"]} >= {"under-replicated"}
        brokers.kill(2)
        seen = until(brokers.bootstrap, capsys, 2, "under-minimum")
        assert {n["partition"] for n in seen["now"] if n["trouble"] == "under-minimum"} == {"strict-0", "strict-1"}
    finally:
        brokers.kill_all()


Report = dict[str, list[dict[str, object]]]
CODES: list[int] = []


def reported(bootstrap: str, capsys: pytest.CaptureFixture[str]) -> Report:
    capsys.readouterr()
    CODES[:] = [main(["audit", "--bootstrap", bootstrap, "--kafka", "4.1", "--elr", "on", "--json", "-"])]
    said = capsys.readouterr()
    assert said.out, said.err
    return cast("Report", json.loads(said.out))


def until(bootstrap: str, capsys: pytest.CaptureFixture[str], code: int, trouble: str = "") -> Report:
    """Ask until the cluster is as expected, for three minutes at most: other programs may want the processor."""
    end = time.monotonic() + 180
    while True:
        seen = reported(bootstrap, capsys)
        told = [n["trouble"] for n in seen["now"]]
        if [code] == CODES and (trouble in told if trouble else not told):
            return seen
        assert time.monotonic() < end, seen["now"]
        time.sleep(0.3)


def test_racks_are_told_by_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Only `insync drill` read one, so an audit of `kafka-topics.sh --describe` alone never judged racks."""
    topics, racks = tmp_path / "topics.txt", tmp_path / "racks.txt"
    topics.write_text(
        "Topic: t\tTopicId: x\tPartitionCount: 1\tReplicationFactor: 3\tConfigs: min.insync.replicas=2\n"
        "\tTopic: t\tPartition: 0\tLeader: 1\tReplicas: 1,2,3\tIsr: 1,2,3\tElr: \tLastKnownElr: \n",
        encoding="utf-8",
    )
    racks.write_text("1 a\n2: a  # the same\n3=b\n", encoding="utf-8")
    asked = ["audit", "--describe", str(topics), "--kafka", "4.1", "--elr", "on", "--plain", "--details"]
    main(asked)
    assert "the loss of a rack is not judged" in " ".join(capsys.readouterr().out.split())
    main([*asked, "--racks", str(racks)])
    said = " ".join(capsys.readouterr().out.split())
    assert "the loss of a rack is not judged" not in said
    assert "If rack a is lost, " in said
    assert main([*asked, "--racks", str(racks), "--html", str(racks)]) == 64
    assert "is read, and would be replaced" in capsys.readouterr().err


@pytest.mark.explores
@pytest.mark.usefixtures("stored_only")
@pytest.mark.parametrize(
    ("told", "says"),
    [
        (VOTERS_KNOWN.format(0), "votes again"),
        (VOTERS_KNOWN.format(1), "format it with --no-initial-controllers"),
        ("controller.quorum.voters=7@a:1,8@b:1,9@c:1\n", "votes again"),
        (f"controller.quorum.voters=7@a:1\n{VOTERS_KNOWN.format(1)}", "format it with --no-initial-controllers"),
        ("", ""),
    ],
)
def test_what_an_empty_disk_of_a_controller_is_worth_is_told_by_how_voters_are_known(
    told: str, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In the details, for a ticket, on the page and as JSON; nothing where nobody told how."""
    (tmp_path / "more.txt").write_text(told, encoding="utf-8")
    forms = {name: tmp_path / f"audit.{name}" for name in ("json", "markdown", "html")}
    options = [word for name, file in forms.items() for word in (f"--{name}", str(file))]
    more = ["--describe", str(tmp_path / "more.txt")] if told else []
    audit(tmp_path, HEALTHY + ELR, *more, "--details", *options)
    written = [file.read_text("utf-8") for file in forms.values()]
    for text in (*written, " ".join(capsys.readouterr().out.split())):
        assert (says in text and "Controllers: " in text) if says else "Controllers: " not in text
