"""Files of histories: what is refused, with its line; what is equal in EDN; what stays undecided; what is written."""

import json
import re
from pathlib import Path

import pytest
from tests.support.histories import Story, judged, with_word, words

from insync_cli.main import main
from isr_anomalies import MalformedHistory, check, pair_operations, read_edn, read_json
from isr_anomalies.read_json import CLIENT, OTHER

LOST = Story().sends((1, 0), (2, 1)).final({1: 2}, unseen=[]).lines
GOOD = Story().sends((1, 0), (2, 1)).poll([0, 1], [1, 2]).final({0: 1, 1: 2}).lines

EDN = """\
; a comment, and a set that nobody asks for
{:type :invoke, :f :send, :value [[:send 3 1]], :process 0, :time 1, :index 0, :tags #{:a}}
{:type :ok, :f :send, :value [[:send 3 [0 1]]], :process 0, :time 2}
{:type :invoke, :f :txn, :value [[:send 3 2] [:poll]], :process 0, :time 3}
{:type :ok, :f :txn, :value [[:send 3 [1 2]] [:poll {3 [[0 1]]}]], :process 0, :time 4, :rebalance-log [{:keys [3]}]}
{:type :info, :f :start-partition, :value :one, :process :nemesis, :time 5}
#jepsen.history.Op{:type :info, :f :start-partition, :value [:isolated {"n1" #{"n2"}}], :process :nemesis, :time 6}
{:type :invoke, :f :send, :value [[:send 3 7]], :process 1, :time 7}
{:type :info, :f :send, :value [[:send 3 7]], :process 1, :time 8, :error [:timeout "no \\"answer\\""]}
{:type :info, :f :stop-partition, :value nil, :process :nemesis, :time 9}
{:type :info, :f :stop-partition, :value :network-healed, :process :nemesis, :time 10}
{:type :invoke, :f :assign, :value [3], :process 4, :time 11, :seek-to-beginning? true}
{:type :ok, :f :assign, :value [3], :process 4, :time 12, :seek-to-beginning? true}
{:type :invoke, :f :poll, :value [[:poll]], :process 4, :time 13}
{:type :ok, :f :poll, :value [[:poll {3 [[0 1] [1 2]]}]], :process 4, :time 14}
{:type :invoke, :f :debug-topic-partitions, :value [3], :process 4, :time 15}
{:type :invoke, :f :crash, :value nil, :process 4, :time 16}
{:type :info, :f :crash, :value nil, :process 4, :time 17}
"""

SAME = [
    '{"type": "invoke", "f": "produce", "process": 0, "time": 1, "partition": "3", "value": 1}',
    '{"type": "ok", "f": "produce", "process": 0, "time": 2, "offset": 0}',
    '{"type": "invoke", "f": "txn", "process": 0, "time": 3, "ops": [["send", "3", 2], ["poll"]]}',
    '{"type": "ok", "f": "txn", "process": 0, "time": 4, "rebalanced": ["3"],'
    ' "ops": [["send", "3", 2, 1], ["poll", {"3": [[0, 1]]}]]}',
    '{"f": "fault", "time": 5, "what": "start-partition"}',
    '{"type": "invoke", "f": "produce", "process": 1, "time": 7, "partition": "3", "value": 7}',
    '{"type": "error", "error": "REQUEST_TIMED_OUT", "f": "produce", "process": 1, "time": 8}',
    '{"f": "heal", "time": 10, "what": "stop-partition"}',
    '{"type": "invoke", "f": "assign", "process": 4, "time": 11, "partitions": ["3"], "seek": "beginning"}',
    '{"type": "ok", "f": "assign", "process": 4, "time": 12}',
    '{"type": "invoke", "f": "poll", "process": 4, "time": 13}',
    '{"type": "ok", "f": "poll", "process": 4, "time": 14, "records": {"3": [[0, 1], [1, 2]]}}',
    '{"type": "invoke", "f": "crash", "process": 4, "time": 16}',
    '{"type": "info", "f": "crash", "process": 4, "time": 17}',
]


def test_edn_says_what_json_says() -> None:
    edn, same = pair_operations(read_edn(EDN)), pair_operations(read_json(SAME))
    strip = [op._replace(invoked=0, completed=0) for op in edn.operations]
    assert len(strip) == 6
    for one, two in zip(strip, (op._replace(invoked=0, completed=0) for op in same.operations), strict=True):
        assert one[:8] == two[:8]
        assert (one.extra.partitions, one.extra.seek) == (two.extra.partitions, two.extra.seek)
        assert one.extra.rebalanced == two.extra.rebalanced
        assert [list(step) for step in one.micro] == [list(step) for step in two.micro]
    assert [fault[1:] for fault in edn.faults] == [fault[1:] for fault in same.faults]
    assert words(check(edn)) == words(check(same))
    assert words(check(edn))["lost-write"] == "HOLDS"  # the last consumer went back and read everything


def test_edn_may_be_one_vector_and_be_discarded_in_part() -> None:
    maps = [line for line in EDN.splitlines() if line.startswith("{")]
    inside = pair_operations(read_edn("[" + "\n".join(maps) + "\n#_{:type :broken}]"))
    assert len(inside.operations) == 6


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{:type :invoke", "line 1: a { that is never closed"),
        ("{:type :ok}\n)", "line 1: :process is a number or a keyword"),
        ("\n]", "line 2: an unexpected ]"),
        ("{:type}", "line 1: a map with a key and no value"),
        ("1", "line 1: an operation is a map"),
        ('{:type "', "line 1: not EDN"),
        ("{:type :done :process 1}", "line 1: :type is one of"),
        ("{:type :invoke :f :send :process 1 :value [[:read 1]]}", "line 1: a step is"),
        ("{:type :invoke :f :send :process 1 :value 7}", "line 1: :value is a vector"),
        ("{:type :ok :f :poll :process 1 :value [[:poll {1 [[:x 1]]}]]}", "line 1: a record is [offset value]"),
        (
            "{:type :ok :f :poll :process 1 :value [[:poll {1 [[-1 1]]}]]}",
            "line 1: a record is [offset value], the offs",
        ),
        ("{:type :ok :f :poll :process 1 :value [[:poll {1 [[true 1]]}]]}", "line 1: a record is [offset value], the"),
        (
            "{:type :ok :f :send :process 1 :value [[:send 0 [-1 1]]]}",
            "line 1: what a send returns is [offset value], ",
        ),
        ("{:type :ok :f :send :process 1 :value [[:send 0 [0 true]]]}", "line 1: a value is a whole number, a text"),
        ("{:type :ok :f :poll :process 1 :time -5}", "line 1: :time is a whole number of nanoseconds from 0"),
        ("{:type :ok :f :poll :process 1 :time true}", "line 1: :time is a whole number of nanoseconds from 0"),
    ],
)
def test_edn_that_is_no_history_is_refused_with_its_line(text: str, says: str) -> None:
    with pytest.raises(MalformedHistory, match="^" + says.replace("[", r"\[").replace("{", r"\{").replace(")", r"\)")):
        pair_operations(read_edn(text))


BEGUN = '{"type": "invoke", "f": "produce", "process": 0, "time": 5, "partition": "t", "value": 1}'


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("{", "not JSON"),
        ("[1]", "an operation is an object, not [1]"),
        ("[" * 100_000, "JSON that is nested too deeply"),
        ("{}", "there is no f"),
        ('{"f": "prodcue"}', 'f is "prodcue"; it is one of'),
        ('{"f": "poll", "type": "yes"}', 'type is one of invoke, ok, fail, info, error, not "yes"'),
        ('{"f": "poll", "type": ["ok"]}', 'type is one of invoke, ok, fail, info, error, not ["ok"]'),
        ('{"f": {}, "type": "ok"}', "f is {}; it is one of"),
        ('{"f": "poll", "type": "ok", "process": 1}', "time is a whole number from 0, not missing"),
        ('{"f": "poll", "type": "ok", "process": 1, "time": -1}', "time is a whole number from 0, not -1"),
        ('{"f": "poll", "type": "ok", "process": 1.5, "time": 1}', "process is a number or a name, not 1.5"),
        ('{"f": "poll", "type": "error", "process": 1, "time": 1}', "error is a text, not missing"),
        ('{"f": "poll", "type": "ok", "process": 1, "time": 1}', "process 1 completes a poll that it never invoked"),
        ('{"f": "poll", "type": "ok", "process": 0, "time": 9}', "a poll completes the produce of line 1"),
        ('{"f": "produce", "type": "ok", "process": 0, "time": 4}', "ends before it was invoked (line 1)"),
        ('{"f": "produce", "type": "ok", "process": 0, "time": 9, "offset": true}', "offset is a whole number from 0"),
        (
            '{"f": "produce", "type": "ok", "process": 0, "time": 9, "partition": "t", "value": 2}',
            "its value or partition is not that of line 1",
        ),
        (BEGUN, "process 0 invokes while its produce of line 1 is open (give them ids)"),
        (BEGUN.replace('"value": 1', '"value": 1.5').replace("0,", "2,"), "a value is a whole number, a text or null"),
        (BEGUN.replace("0,", '2, "acks": 2,'), "acks is 0, 1 or all, not 2"),
        (
            '{"f": "poll", "type": "ok", "process": 1, "time": 1, "records": {"t": [[1]]}}',
            "a record is [offset, value]",
        ),
        ('{"f": "poll", "type": "ok", "process": 1, "time": 1, "records": [1]}', "records is an object of partitions"),
        ('{"f": "txn", "type": "ok", "process": 1, "time": 1, "ops": [["write", 1]]}', "a step of a txn is"),
        ('{"f": "assign", "type": "ok", "process": 1, "time": 1, "seek": "middle"}', "seek is beginning or end"),
        (
            '{"f": "final-read", "type": "ok", "process": 1, "time": 1, "partition": "t", "records": []}',
            "end is a whole number from 0, not missing",
        ),
        (
            '{"f": "final-read", "type": "ok", "process": 1, "time": 1, "partition": "t", "records": [[3, 1]],'
            ' "end": 3}',
            "offset 3 is outside of [0, 3)",
        ),
        ('{"f": "replica", "node": "n", "partition": "t"}', "high_watermark is a whole number from 0, not missing"),
        ('{"settings": {"acks": "1"}}', "a header with settings is the first line of a file, or there is none"),
        ('{"settings": 7}', "a header with settings is the first line of a file, or there is none"),
        ('{"settings": {}, "f": "header"}', 'f is "header"; it is one of'),
        ('{"settings": {}, "type": "invoke"}', "there is no f"),
    ],
)
def test_a_line_that_is_no_operation_is_refused_in_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], line: str, says: str
) -> None:
    path = tmp_path / "history.jsonl"
    path.write_text(f"{BEGUN}\n\n{line}\n")
    assert main(["history", str(path)]) == 65
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert said.err.startswith(f"insync: {path}, line 3: {says}")


@pytest.mark.parametrize(
    ("header", "says"),
    [
        ('{"settings": {"ack": 1}}', "there is no setting ack; they are acks, idempotence"),
        ('{"settings": {"acks": 3}}', 'acks is one of 0, 1, all, not "3"'),
        ('{"settings": {"idempotence": 1}}', "idempotence is true or false, not 1"),
        ('{"settings": 7}', "settings is an object, not 7"),
        ('{"history": 2, "settings": {}}', "history is 2, and only format 1 is known"),
    ],
)
def test_a_header_that_claims_nothing_known_is_refused(header: str, says: str) -> None:
    with pytest.raises(MalformedHistory, match=f"^line 1: {re.escape(says)}"):
        pair_operations(read_json([header, *GOOD]))


@pytest.mark.parametrize("place", [1, 2, len(LOST)])
@pytest.mark.parametrize("first", [[], ['{"history": 1, "settings": {"acks": "all"}}']])
def test_claims_that_come_late_or_twice_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], first: list[str], place: int
) -> None:
    """They made a loss above them PERMITTED, with exit code 0."""
    late = '{"history": 1, "settings": {"acks": "1", "unclean": true}}'
    lines = [*first, *LOST[:place], late, *LOST[place:]]
    assert main(["history", write(tmp_path / "h.jsonl", lines)]) == 65
    line = len(first) + place + 1
    assert f"line {line}: a header with settings is the first line of a file" in capsys.readouterr().err
    assert main(["history", write(tmp_path / "h.jsonl", [*first, *LOST])]) == 12


@pytest.mark.parametrize("settings", [{"acks": "1", "unclean": True}, {}, None, 7, {"of my client": 1}])
def test_an_operation_with_a_field_settings_is_an_operation(settings: object) -> None:
    """It was taken for a header: an acknowledged and lost write was no operation any more."""
    for story in (LOST, GOOD):
        lines = [json.dumps({**json.loads(line), "settings": settings}) for line in story]
        assert judged(lines) == judged(story)


def test_a_file_that_cannot_be_read_is_an_input_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["history", str(tmp_path / "none.jsonl")]) == 65
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\x00{")
    assert main(["history", str(tmp_path / "bytes")]) == 65
    assert "is not text in UTF-8" in capsys.readouterr().err


def contradicting(f: str, before: dict[str, object], after: dict[str, object]) -> Story:
    """An operation whose completion says this, after an invocation that said that."""
    story = Story()
    story.begin(f, "c", **before)
    story.end(f, "c", "ok", **after)
    return story


FINAL: dict[str, object] = {"partition": "t-0", "records": [[1, 7]], "end": 2}


@pytest.mark.parametrize(
    ("story", "says"),
    [
        (contradicting("final-read", {"partition": "t-1"}, FINAL), "its partition is not that of line 1"),
        (contradicting("final-read", {"partition": "t-0", "start": 1}, FINAL), "its start is not that of line 1"),
        (
            contradicting("assign", {"partitions": ["t-0"]}, {"partitions": ["t-1"]}),
            "its partitions are not those of line 1",
        ),
        (
            contradicting("assign", {"partitions": ["t-0"], "seek": "end"}, {"seek": "beginning"}),
            "its seek is not that of line 1",
        ),
        (contradicting("poll", {"group": "g"}, {"group": "h", "records": {}}), "its group is not that of line 1"),
        (
            contradicting("produce", {"partition": "t-0", "value": 1, "acks": "all"}, {"acks": "1", "offset": 0}),
            "its acks is not that of line 1",
        ),
        (
            contradicting("produce", {"partition": "t-0", "value": 1}, {"value": 2, "offset": 0}),
            "its value or partition is not that of line 1",
        ),
        (
            contradicting("txn", {"ops": [["poll"]]}, {"ops": [["send", "t-0", 1, 0], ["poll", {}]]}),
            "its sends are not those of line 1",
        ),
        (contradicting("poll", {"records": {"t-0": [[0, 1]]}}, {}), "an invocation has a result"),
        (
            contradicting("produce", {"partition": "t-0", "value": 1, "offset": 3}, {"offset": 3}),
            "an invocation has a result",
        ),
        (contradicting("txn", {"ops": [["poll", {"t-0": [[0, 1]]}]]}, {}), "an invocation has a result"),
    ],
)
def test_a_completion_that_contradicts_its_invocation_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], story: Story, says: str
) -> None:
    """A final read of t-1 that was answered for t-0 was a complete read of t-0, and HOLDS."""
    assert main(["history", write(tmp_path / "h.jsonl", story.lines)]) == 65
    assert re.search(rf"line [12]: {says}", capsys.readouterr().err)


@pytest.mark.parametrize(
    "story",
    [
        contradicting("final-read", {}, FINAL),
        contradicting("final-read", {"partition": "t-0", "start": 1}, {**FINAL, "start": 1}),
        contradicting("assign", {"partitions": ["t-0", "t-1"]}, {"partitions": ["t-1", "t-0"]}),
        contradicting("assign", {"partitions": ["t-0"], "seek": "end"}, {}),
        contradicting("poll", {"records": {}}, {"group": "h", "records": {"t-0": [[0, 1]]}}),
        contradicting("produce", {"partition": "t-0", "value": 1}, {"value": 1, "acks": "1", "offset": 0}),
        contradicting("produce", {"partition": "t-0", "value": 1}, {"value": None}),
    ],
)
def test_a_completion_may_leave_out_or_repeat_what_its_invocation_said(story: Story) -> None:
    assert judged(story.lines).operations == 1


UNDECIDED = [
    (Story().send(1, 0), {"lost-write", "unseen", "offset-gap"}),
    (Story().send(1, 0).poll([0, 1]), {"lost-write", "unseen", "offset-gap", "read-then-lost"}),
    (Story().send(1, 0).final({0: 1}).send(2, 0, p="t-1"), {"lost-write", "unseen", "offset-gap"}),  # t-1 is not read
    (Story().send(1, 0).final({0: 1}).send(2, 1), {"lost-write", "unseen"}),  # acknowledged too late
    (Story().send(1, 0).final({0: 1}).send(2, 1).poll([0, 1], [1, 2]), {"read-then-lost"}),
    (
        Story().assign("t-0", seek="beginning").send(1, 0).poll([0, 1]).send(2, 1),  # it went back, but too early
        {"lost-write", "unseen"},
    ),
    (
        Story().sends((1, 0), (2, 1)).assign("t-0", seek="beginning").poll([0, 1]),  # it went back, but not far enough
        {"lost-write", "unseen", "offset-gap", "read-then-lost"},
    ),
    (Story().txn([["send", "t-0", 1]], [["send", "t-0", 1, 1]]).final({1: 1}), {"offset-gap"}),
    (Story().holds("n1", (1, 0)).send(1, 0).final({0: 1}), {"acks-contract"}),
    (Story().send(1, 0).send(2, 1).final({0: 1}), {"ack-then-gone"}),  # it is unseen, and no replica says where it is
    (Story().send(1, 0).final({0: 1}).fault().heal(), {"no-progress"}),
]


@pytest.mark.parametrize(("story", "unknown"), UNDECIDED)
def test_what_the_history_does_not_say_is_unknown(story: Story, unknown: set[str]) -> None:
    answer = judged(story.lines)
    assert with_word(answer, "UNKNOWN") == unknown
    assert all(judgement.why for judgement in answer.judgements if judgement.name in unknown)


def write(path: Path, lines: list[str]) -> str:
    path.write_text("\n".join(lines) + "\n")
    return str(path)


@pytest.mark.parametrize(
    ("lines", "options", "code"),
    [
        (GOOD, "", 0),
        (LOST, "", 12),
        (LOST, "--acks 1 --anomaly lost-write", 0),
        (LOST, "--anomaly duplicate", 0),
        (Story().send(1, 0).lines, "", 20),
        (Story().send(1, 0).lines, "--anomaly duplicate", 0),
        (GOOD, "--anomaly consume-counts", 21),
        ([], "", 21),
        (GOOD, "--max-unavailable 0.5", 12),
        (GOOD, "--anomaly lost-wirte", 64),
        (GOOD, "--acks 2", 64),
    ],
)
def test_the_exit_code_is_the_answer(tmp_path: Path, lines: list[str], options: str, code: int) -> None:
    assert main(["history", write(tmp_path / "history.jsonl", lines), *options.split()]) == code


def test_a_violation_is_shown_with_its_operations(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "history.jsonl", LOST)
    assert main(["history", path]) == 12
    said = capsys.readouterr().out
    assert "\nlost-write in t-0: value 1 got offset 0, a complete read went to 1 without it\n" in said
    assert f"  line 2      {LOST[1]}\n" in said
    assert said.splitlines()[-1].startswith(f"insync history {path}: VIOLATED - lost-write (1), unseen (1), offset-gap")
    stored = json.loads((tmp_path / "history.json").read_text())
    assert stored["schema"] == "insync/history/1"
    assert stored["counts"]["lost-write"] == 1
    assert stored["counts"]["acked"] == 2
    [line] = [line for line in stored["anomalies"] if line["name"] == "lost-write"]
    assert [quote["text"] for quote in line["witnesses"][0]["operations"]] == [LOST[1], LOST[5]]


def test_several_files_are_several_histories_and_the_worst_counts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [write(tmp_path / "a.jsonl", GOOD), write(tmp_path / "b.json", LOST)]
    assert main(["history", *paths, "--quiet"]) == 12
    assert len(capsys.readouterr().out.splitlines()) == 2
    assert (tmp_path / "a.json").exists()
    assert (tmp_path / "b.verdict.json").exists()
    assert (tmp_path / "b.json").read_text().splitlines() == LOST
    assert main(["history", *paths, "--json", "-"]) == 12
    assert [one["verdict"] for one in json.loads(capsys.readouterr().out)] == ["HOLDS", "VIOLATED"]


def test_a_report_replaces_nothing_but_a_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its name is derived from that of the history, and somebody's own file may have it."""
    path, own = tmp_path / "h.edn", tmp_path / "h.json"
    path.write_text(EDN, encoding="utf-8")
    for text in ('{"mine": 1}', "", "no JSON", '[{"schema": "insync/history/1"}]', "\x00\xff"):
        own.write_bytes(text.encode("latin-1"))
        assert main(["history", str(path)]) == 64
        assert own.read_bytes() == text.encode("latin-1")
        assert "h.json is there, and insync history did not write it: give --json FILE" in capsys.readouterr().err
    assert main(["history", str(path), "--json", "-"]) != 64
    own.unlink()
    code = main(["history", str(path)])
    assert main(["history", str(path)]) == code, "an earlier report is replaced"
    assert json.loads(own.read_text())["schema"] == "insync/history/1"
    own.unlink()
    own.mkdir()
    assert main(["history", str(path)]) == 64


def test_two_histories_with_one_report_and_a_history_as_report_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, other = write(tmp_path / "a.jsonl", GOOD), write(tmp_path / "a.ndjson", LOST)
    assert main(["history", one, other]) == 64
    assert "would both be reported in" in capsys.readouterr().err
    assert main(["history", one, "--json", one]) == 64
    assert "is read, and would be replaced" in capsys.readouterr().err
    assert (tmp_path / "a.jsonl").read_text().splitlines() == GOOD


@pytest.mark.parametrize(
    ("f", "says"),
    [
        (":f :read, ", ":f is :read; in Jepsen's kafka workload it is one of :assign, :crash"),
        ("", "there is no :f; in"),
    ],
)
def test_edn_of_another_workload_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], f: str, says: str
) -> None:
    """It was "29 vacuous", and so no failure to whoever reads the code of the worst."""
    path = tmp_path / "register.edn"
    path.write_text(f"{{:type :invoke, {f}:value 3, :process 0, :time 1}}\n", encoding="utf-8")
    assert main(["history", str(path)]) == 65
    assert f"register.edn, line 1: {says}" in capsys.readouterr().err


def test_the_claims_of_the_command_line_count_more_than_those_of_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [json.dumps({"settings": {"acks": "1", "min.insync": 2} | {}}).replace("min.insync", "min_insync"), *LOST]
    path = write(tmp_path / "history.jsonl", lines)
    assert main(["history", path, "--anomaly", "3"]) == 0
    assert main(["history", path, "--anomaly", "3", "--acks", "all", "--json", "-"]) == 12
    assert json.loads(capsys.readouterr().out.split("\n{", 1)[1].join(["{", ""]))["claims"]["min_insync"] == 2


def test_the_table_lists_all_29(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["history", "--list", "--json", "-"]) == 0
    table = json.loads(capsys.readouterr().out)["anomalies"]
    assert [row["number"] for row in table] == list(range(1, 30))
    assert all(row["definition"] and row["source"] and row["impossible"] for row in table)
    assert main(["history", "--list"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert all(row["name"] in said and row["definition"][:30] in said for row in table)


def test_an_edn_file_is_known_by_its_name_or_its_beginning(tmp_path: Path) -> None:
    for name in ("history.edn", "history"):
        assert (
            main(["history", write(tmp_path / name, list(map(str, EDN.splitlines()))), "--anomaly", "lost-write"]) == 0
        )


def test_every_line_that_the_document_shows_can_be_read() -> None:
    text = (Path(__file__).resolve().parents[2] / "docs" / "history.md").read_text(encoding="utf-8")
    lines = [line.strip() for line in text.splitlines() if line.startswith("    {")]
    shown = list(read_json(lines))
    assert len(shown) == len(lines) > 15
    said = {str(json.loads(line).get("f")) for line in lines}
    assert said >= CLIENT - {"subscribe"} | OTHER  # which is written as assign is
