"""What an audit was not told is never printed as fact, and what contradicts itself is refused.

Without these two snapshots of a cluster would be merged until the offline partition is gone, a text without headings
would be judged by Kafka's defaults, and any word in place of a leader would end in a traceback.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from insync_cli.main import main
from isr_audit.answers import read_table
from isr_audit.audit import UNKNOWN, AnswerSource, Row, audit_rows, no_exploration
from isr_audit.cluster import Cluster, Contradiction, Partition, Topic, merge_clusters
from isr_audit.condition import Trouble, conditions
from isr_audit.descriptions import read_description
from isr_audit.releases import release_of, running

pytestmark = pytest.mark.long

HEADING = "Topic: t\tTopicId: a\tPartitionCount: 1\tReplicationFactor: 3\tConfigs: min.insync.replicas=2"
PARTITION = "\tTopic: t\tPartition: 0\tLeader: 1\tReplicas: 1,2,3\tIsr: 1,2,3\tElr: \tLastKnownElr: "
WELL = f"{HEADING}\n{PARTITION}\n"
ELR_ON = (
    "Feature: metadata.version\tFinalizedVersionLevel: 4.1-IV1\tEpoch: 1\n"
    "Feature: eligible.leader.replicas.version\tFinalizedVersionLevel: 1\tEpoch: 1\n"
)


def read(text: str, source: str = "file") -> Cluster:
    cluster = read_description(text, source)
    assert cluster is not None
    return cluster


def troubles(cluster: Cluster) -> list[Trouble]:
    return [c.trouble for c in conditions(cluster)]


def rows_of(cluster: Cluster) -> list[Row]:
    return audit_rows(cluster, running(cluster), AnswerSource(read_table(), no_exploration))


def audit(tmp_path: Path, *texts: str, more: tuple[str, ...] = ()) -> int:
    files = [tmp_path / f"{n}.txt" for n in range(len(texts))]
    for file, text in zip(files, texts, strict=True):
        file.write_text(text, encoding="utf-8")
    return main(["audit", "--describe", *map(str, files), "--details", *more])


def logs(*partitions: str) -> str:
    """A line of kafka-log-dirs.sh with a log of each."""
    entries = ",".join(f'{{"partition":"{p}","size":9,"offsetLag":0,"isFuture":false}}' for p in partitions)
    return f'{{"version":1,"brokers":[{{"broker":1,"logDirs":[{{"error":null,"partitions":[{entries}]}}]}}]}}\n'


OTHER_SETTINGS = "Dynamic configs for topic u are:\n  min.insync.replicas=1 sensitive=false synonyms={}\n"

# Two descriptions of one thing

CONTRADICTIONS = [
    (WELL, WELL.replace("TopicId: a", "TopicId: b"), "TopicId a (0.txt, line 1) and b (1.txt, line 1)"),
    (WELL, WELL.replace("Leader: 1", "Leader: none").replace("Isr: 1,2,3", "Isr: "), "t-0 is described twice"),
    (WELL, WELL.replace("Leader: 1", "Leader: 2"), "Leader 1, Replicas 1,2,3, Isr 1,2,3 (0.txt, line 2), and Leader 2"),
    (WELL, WELL.replace("Replicas: 1,2,3", "Replicas: 3,2,1"), "t-0 is described twice"),
    (WELL, WELL.replace("Isr: 1,2,3", "Isr: 1,2"), "t-0 is described twice"),
    (WELL, WELL.replace("Elr: \t", "Elr: 2\t"), "t-0 is described twice"),
    (WELL, WELL.replace("PartitionCount: 1", "PartitionCount: 2"), "PartitionCount 1 (0.txt, line 1) and 2"),
    (WELL, WELL.replace("replicas=2", "replicas=1"), "topic t has min.insync.replicas=2 and min.insync.replicas=1"),
    (ELR_ON + WELL, ELR_ON.replace("4.1-IV1", "4.0-IV1"), "metadata.version=4.1-IV1 and metadata.version=4.0-IV1"),
    (
        WELL + "Dynamic configs for broker 1 are:\n  min.insync.replicas=1 sensitive=false synonyms={}\n",
        "Dynamic configs for broker 1 are:\n  min.insync.replicas=2 sensitive=false synonyms={}\n",
        "broker 1 has min.insync.replicas=1 and min.insync.replicas=2",
    ),
    (WELL + "\nnode.id=1\nmin.insync.replicas=1\n", "node.id=1\nmin.insync.replicas=2\n", "broker 1 has min.insync"),
]


@pytest.mark.parametrize(("one", "other", "says"), CONTRADICTIONS, ids=range(len(CONTRADICTIONS)))
@pytest.mark.parametrize("files", [1, 2])
def test_two_descriptions_that_are_not_of_one_moment_are_refused(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    one: str,
    other: str,
    says: str,
    files: int,
) -> None:
    """In one file and in two, whichever comes first; in one sentence that names both."""
    monkeypatch.chdir(tmp_path)
    for first, second in ((one, other), (other, one)):
        if files == 2:
            for name, text in (("0.txt", first), ("1.txt", second)):
                (tmp_path / name).write_text(text, encoding="utf-8")
            assert main(["audit", "--describe", "0.txt", "1.txt"]) == 65
        elif "node.id" in first:
            continue  # one file is one broker, and the last of two lines counts, as in Java
        else:
            assert audit(tmp_path, f"{first}\n{second}") == 65
        said = capsys.readouterr().err
        assert said.count("\n") == 1
        assert "give one snapshot of one cluster" in said
        if files == 2 and first is one:
            assert says in said


def test_the_same_snapshot_twice_is_no_contradiction(tmp_path: Path) -> None:
    assert audit(tmp_path, ELR_ON + WELL, ELR_ON + WELL) == 0
    assert audit(tmp_path, ELR_ON + WELL, WELL.replace("Elr: \tLastKnownElr: ", "Elr: N/A\tLastKnownElr: N/A")) == 0


def test_two_brokers_in_one_file_of_properties_are_refused() -> None:
    with pytest.raises(Contradiction, match=r"node\.id is 1 and then 2 in f, line 3: give each broker's"):
        read("node.id=1\nmin.insync.replicas=2\nnode.id=2\nmin.insync.replicas=1\n", "f")
    assert (
        "min.insync.replicas for a second time"
        in read("node.id=1\nmin.insync.replicas=2\nmin.insync.replicas=1\n").notes[0]
    )


# What was not told

NOT_TOLD = [
    (WELL.replace("Elr: \tLastKnownElr: ", ""), "older"),
    (
        WELL.replace("TopicId: a\t", "").replace("\tElr: \tLastKnownElr: ", ""),
        "no TopicId, which kafka-topics.sh prints since 2.8",
    ),
    (f"{PARTITION}\n", "its heading was not told"),
    (WELL.replace("PartitionCount: 1", "PartitionCount: 4"), "1 of 4 partitions were told"),
    (WELL.replace("PartitionCount: 1", "PartitionCount: x"), "how many partitions it has was not told"),
    (WELL.replace("replicas=2", "replicas=${MIN_ISR}"), "min.insync.replicas was not told, or is no value"),
    (WELL.replace("min.insync.replicas=2", "cleanup.policy=delete,min.insync.rep"), "not there, or cut"),
    (WELL.replace("min.insync.replicas=2", "cleanup.policy=delete,min.ins..."), "not there, or cut"),
    (WELL.replace("\tConfigs: min.insync.replicas=2", ""), "not there, or cut"),
    (WELL.replace("Isr: 1,2,3", "Isr: 1,2,x"), "what it has as Isr was not told, or makes no sense"),
    (WELL.replace("\tIsr: 1,2,3", ""), "what it has as Isr"),
    (WELL.replace("Isr: 1,2,3", "Isr: 1,2,9"), "what it has as Isr"),
    (WELL.replace("Leader: 1", "Leader: somebody"), "what it has as Leader"),
    (WELL.replace("Leader: 1", "Leader: 1 (host:9092)"), "what it has as Leader"),
    (WELL.replace("\tLeader: 1", ""), "what it has as Leader"),
    (WELL.replace("Leader: 1", "Leader: 4"), "what it has as Leader"),
    (WELL.replace("replicas=2", "replicas=0"), "min.insync.replicas was not told, or is no value"),
    (WELL.replace("Replicas: 1,2,3", "Replicas: "), "what it has as Replicas"),
    (WELL + "\tTopic: t\tPartition: one\tLeader: none\tReplicas: 1\tIsr: \n", "nor a number of a partition"),
    (WELL + "\tTopic: two words\tPartition: 0\tLeader: none\tReplicas: 1\tIsr: \n", "without the name of a topic"),
    (WELL + "\n\tPartition: 7\tLeader: none\tReplicas: 1,2\tIsr: \n", "not understood, and may tell of partitions"),
    (WELL + "and then it broke\n", "not understood, and may tell of partitions"),
    (WELL.replace("Partition: 0", "Partition: 7"), "its heading says PartitionCount 1, numbered from 0 on, but t-7"),
    (
        WELL.replace("PartitionCount: 1", "PartitionCount: 2") + PARTITION.replace("Partition: 0", "Partition: 2"),
        "its heading says PartitionCount 2, numbered from 0 on, but t-2",
    ),
    (WELL + PARTITION.replace("Partition: 0", "Partition: 1"), "says PartitionCount 1, numbered from 0 on, but t-1"),
    (WELL.replace("Replicas: 1,2,3", "Replicas: 1,1,1").replace("Isr: 1,2,3", "Isr: 1,1"), "what it has as Replicas"),
    (WELL.replace("Replicas: 1,2,3", "Replicas: 1,2,3,3"), "what it has as Replicas"),
    (WELL.replace("Isr: 1,2,3", "Isr: 1,2,3,3"), "what it has as Isr"),
    (WELL.replace("Elr: \t", "Elr: 3\t", 1), "what it has as Elr"),
    (WELL.replace("Elr: \t", "Elr: 4,4\t", 1), "what it has as Elr"),
    (WELL.replace("\tElr", "\tOffline: 1\tElr"), "what it has as Leader"),
    (WELL.replace("Leader: 1", "Leader: 4").replace("Isr: 1,2,3", "Isr: 1,2,x"), "what it has as Leader"),
    (WELL.replace("Isr: 1,2,3", "Isr: 1").replace("\tElr", "\tAdding Replicas: 1,2,3\tElr"), "it has as Adding"),
    (WELL.replace("\tElr", "\tAdding Replicas: 3\tRemoving Replicas: 3\tElr"), "what it has as Adding Replicas"),
    (WELL.replace("\tElr", "\tAdding Replicas: 3,3\tElr"), "what it has as Adding Replicas"),
    (WELL + logs("t-0", "u-0"), "UNKNOWN u: only its settings, or the sizes of its logs, were told"),
    (WELL + logs("t-0", "t-1"), "says PartitionCount 1, numbered from 0 on, but t-1 has a log"),
    (WELL + OTHER_SETTINGS, "UNKNOWN u: only its settings, or the sizes of its logs, were told"),
    (WELL + "Configs for topic 'u' are retention.ms=5\n", "UNKNOWN u: only its settings"),
]


@pytest.mark.parametrize(("text", "says"), NOT_TOLD, ids=range(len(NOT_TOLD)))
def test_what_was_not_told_is_said_and_never_well(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, says: str
) -> None:
    """A cluster of which everything is told, but for one thing: the code is that of what is not decided."""
    assert audit(tmp_path, text if says in ("older", NOT_TOLD[1][1]) else ELR_ON + text) == 20
    said = " ".join(capsys.readouterr().out.split())
    assert says in said
    assert UNKNOWN in said


def test_a_partition_that_nobody_described_is_a_gap(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Whoever has a log or settings is there, in the same file or in another, and not everything is well then."""
    for more in (logs("u-0"), logs("t-1"), OTHER_SETTINGS):
        for texts in ((ELR_ON + WELL, more), (more, ELR_ON + WELL)):
            assert audit(tmp_path, *texts) == 20
            said = capsys.readouterr().out
            assert "every partition has its leader" not in said
            assert "every partition that was told has its leader" in said
    assert audit(tmp_path, ELR_ON + WELL, logs("t-0")) == 0
    assert audit(tmp_path, ELR_ON + WELL, logs("t-0", "u-0") + OTHER_SETTINGS, more=("--topic", "t")) == 0


def test_a_log_of_no_partition_of_a_running_cluster_is_a_gap() -> None:
    """A running cluster tells all partitions of a topic, so one more is of another time, or of another cluster."""
    live = Topic("t", 1, (Partition("t", 0, 1, (1,), (1,)),))
    assert merge_clusters([Cluster((live,)), read(logs("t-0"))]).gaps == ()
    other = merge_clusters([Cluster((live,)), read(logs("t-0", "t-4"))])
    assert other.gaps == ("t: all its partitions were told, but also t-4 has a log",)


def test_a_leader_without_anybody_in_sync_is_not_read_as_one() -> None:
    (below,) = conditions(read(WELL.replace("Isr: 1,2,3", "Isr: ")))
    assert below.trouble is Trouble.UNDER_MINIMUM
    assert "what it has as Leader was not told, or makes no sense" in below.says


def test_whom_an_unclean_election_may_elect_is_not_guessed() -> None:
    """Who is eligible is elected cleanly, and where the lists were not read nobody knows who is."""
    (lagging,) = conditions(read(WELL.replace("Isr: 1,2,3", "Isr: 1,2").replace("Elr: \t", "Elr: 2,3\t", 1)))
    assert (lagging.trouble, lagging.candidates) == (Trouble.UNDER_REPLICATED, ())


@pytest.mark.parametrize(
    "text",
    [
        WELL.replace("replicas=2", "replicas=2,min.insync.replicas=1"),
        WELL.replace("replicas=2", "replicas=2,retention.ms=5,min.insync.replicas=3"),
        WELL.replace(
            "replicas=2", "replicas=2,unclean.leader.election.enable=false,unclean.leader.election.enable=true"
        ),
        WELL + "Configs for topic 't' are flush.messages=1,flush.messages=5\n",
    ],
    ids=range(4),
)
def test_a_setting_with_two_values_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str) -> None:
    assert audit(tmp_path, ELR_ON + text) == 65
    assert " of the same in " in capsys.readouterr().err
    same = WELL.replace("replicas=2", "replicas=2,min.insync.replicas=2,retention.ms=5,retention.ms=6")
    assert audit(tmp_path, ELR_ON + same) == 0
    assert "retention.ms for a second time, and the last counts" in " ".join(capsys.readouterr().out.split())


def test_what_decides_nothing_is_a_note(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for change, says in (
        (("ReplicationFactor: 3", "ReplicationFactor: x"), "a heading without a number as ReplicationFactor"),
        (("s=2", "s=2,unclean.leader.election.enable=${X}"), "unclean.leader.election.enable was not told, or is no"),
        (("\tElr", "\tNewColumn: 7\tElr"), "a column that is passed over, NewColumn"),
        (("Topic: t\tTopicId", "> Topic: t\tTopicId"), 'read without the ">"'),
    ):
        assert audit(tmp_path, ELR_ON + WELL.replace(*change)) == 0
        assert says in " ".join(capsys.readouterr().out.split())


def test_everything_told_is_well(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert audit(tmp_path, ELR_ON + WELL) == 0
    said = capsys.readouterr().out
    assert UNKNOWN not in said.split("Known bugs")[0].replace("two power losses", "")
    assert "every partition has its leader and all its replicas in sync" in said


def test_what_the_worst_and_the_best_setting_have_in_common_is_said() -> None:
    """acks=1 loses whatever the minimum is; acks=all by one crash loses with none. With one power loss it depends."""
    (row,) = rows_of(read(ELR_ON + WELL.replace("replicas=2", "replicas=${MIN_ISR}")))
    verdicts = {(x.acks, x.fault.name): x.verdict for x in row.lines}
    assert verdicts["1", "nothing"] == "MAY BE LOST"
    assert verdicts["all", "one-power-loss"] == UNKNOWN
    (told,) = rows_of(read(ELR_ON + WELL))
    assert {(x.acks, x.fault.name): x.verdict for x in told.lines}["all", "one-power-loss"] == "survives"
    assert row.refusal is None


def test_a_partition_that_is_worse_than_it_is_unreadable_is_told_as_the_worse() -> None:
    assert troubles(read(f"{PARTITION}\n".replace("Isr: 1,2,3", "Isr: 1"))) == [Trouble.UNDER_REPLICATED]
    (found,) = conditions(read(f"{PARTITION}\n".replace("Isr: 1,2,3", "Isr: 1")))
    assert "whether writes are refused is not known, for min.insync.replicas was not told" in found.says
    assert troubles(read(WELL.replace("Leader: 1", "Leader: x").replace("Isr: 1,2,3", "Isr: 1"))) == [
        Trouble.UNDER_MINIMUM
    ]
    assert troubles(read(WELL.replace("Leader: 1", "Leader: none").replace("\tIsr: 1,2,3", ""))) == [Trouble.OFFLINE]


@pytest.mark.parametrize("word", ["none", "None", "NONE", "-1", "N/A"])
def test_the_words_for_nobody(word: str) -> None:
    assert troubles(read(WELL.replace("Leader: 1", f"Leader: {word}"))) == [Trouble.OFFLINE]


# Texts that went through a terminal, a mail or an editor


@pytest.mark.parametrize("width", range(20, 110, 3))
@pytest.mark.parametrize("begins", ["", "> ", ">> ", "| "])
def test_a_text_that_was_wrapped_or_quoted_is_the_same(width: int, begins: str) -> None:
    """Cut at every width, as a terminal does, and quoted, as a mail does; spaces for tabs, as a copy has it."""
    text = (WELL + WELL.replace("Topic: t", "Topic: uu").replace("TopicId: a", "TopicId: b")).replace("\t", "  ")
    whole = read(text)
    pieces = [line[a : a + width] for line in text.splitlines() for a in range(0, len(line), width)]
    cut = read("".join(f"{begins}{piece}\n" for piece in pieces))
    if cut.topics != whole.topics:
        assert cut.gaps or UNKNOWN in {x.verdict for row in rows_of(cut) for x in row.lines} or troubles(cut)
    assert cut.notes or cut.gaps or (not begins and len(pieces) == len(text.splitlines()))
    if width >= 60:
        assert cut.topics == whole.topics


def test_several_lines_put_together_are_several_partitions() -> None:
    one = " ".join(WELL.split())
    assert read(one).topics[0].partitions == read(WELL).topics[0].partitions
    assert read(f"2026-11-26 10:00 INFO {one}").topics[0].partitions == read(WELL).topics[0].partitions


def test_what_a_terminal_cut_is_put_together_and_said() -> None:
    text = WELL.replace("min.insync.replicas=2", "cleanup.policy=delete,min.ins\nync.replicas=2")
    assert read(text).topics[0].configs["min.insync.replicas"] == "2"
    assert read(text).notes == ("file, line 1: wrapped, and is read as one with what follows",)
    other = WELL.replace("min.insync.replicas=2", "cleanup.policy=delete,\nmin.insync.replicas=2,retention.ms=5")
    assert read(other).topics[0].configs["min.insync.replicas"] == "2"
    assert not read(other).brokers


# Replicas that need not be in sync


def test_replicas_on_their_way_observers_and_those_that_are_offline() -> None:
    adding = WELL.replace("Replicas: 1,2,3", "Replicas: 4,1,2,3").replace(
        "Isr: 1,2,3", "Isr: 1,2,3\tAdding Replicas: 4\tRemoving Replicas: "
    )
    (found,) = conditions(read(adding))
    assert (found.trouble, found.says) == (Trouble.REASSIGNING, "4 to be added")
    assert read(adding).topics[0].replicas == 3
    lagging = adding.replace("Isr: 1,2,3", "Isr: 1,2")
    assert [c.says for c in conditions(read(lagging))] == ["not in sync: 3"]
    observed = WELL.replace("Replicas: 1,2,3", "Replicas: 1,2,3,4").replace(
        "Isr: 1,2,3", "Isr: 1,2,3\tOffline: \tObservers: 4"
    )
    assert troubles(read(observed)) == []
    assert read(observed).topics[0].replicas == 3
    offline = WELL.replace("Isr: 1,2,3", "Isr: 1,2\tOffline: 3")
    (found,) = conditions(read(offline))
    assert (found.says, found.candidates) == ("not in sync: 3 (offline)", ())


def test_what_an_operator_does_now_changes_no_code(tmp_path: Path) -> None:
    adding = WELL.replace("Replicas: 1,2,3", "Replicas: 4,1,2,3").replace("\tElr", "\tAdding Replicas: 4\tElr")
    assert audit(tmp_path, ELR_ON + adding) == 0


# What is deduced


def test_the_column_elr_is_of_a_broker_without_zookeeper() -> None:
    """TopicCommand of 3.8 and later: N/A where DescribeTopicPartitions was not answered (read in 3.8.0)."""
    assert running(read(WELL), release_of("3.9")).design == "kraft-3.5"
    assert running(read(WELL.replace("Elr: \t", "Elr: N/A\t")), release_of("3.9")).design == "kip-497"
    assert (running(read(WELL)).doubt, running(read(WELL)).also) == ("", ("kip-966",))


def test_nothing_is_said_to_survive_where_an_older_release_may_run() -> None:
    for text in (
        WELL.replace("Elr: \t", "Elr: N/A\t"),
        WELL.replace("TopicId: a\t", "").replace("Elr: \t", "Elr: N/A\t"),
    ):
        assert running(read(text)).doubt
        assert "survives" not in {x.verdict for row in rows_of(read(text)) for x in row.lines}
        assert not running(read(text), release_of("4.1"), elr=True).doubt


def test_what_depends_on_eligible_leader_replicas_waits_for_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert audit(tmp_path, WELL, more=("--kafka", "4.1.1")) == 20
    said = " ".join(capsys.readouterr().out.split())
    assert "MAY BE LOST on kraft-3.5, survives on kip-966; which of them runs was not told" in said
    assert audit(tmp_path, WELL, more=("--kafka", "4.1.1", "--elr", "on")) == 0
    assert audit(tmp_path, WELL, more=("--kafka", "4.1.1", "--elr", "off")) == 1


# Advice


def test_no_advice_is_denied_that_was_not_explored(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """flush.messages=1 may prevent it, and its run was not made: nobody may say that nothing does."""
    elr_off = ELR_ON.replace("FinalizedVersionLevel: 1", "FinalizedVersionLevel: 0")
    assert audit(tmp_path, elr_off + WELL, more=("--json", "-")) == 1
    lines = json.loads(capsys.readouterr().out)["rows"][0]["answers"]
    (lost,) = (x for x in lines if x["acks"] == "all" and x["fault"] == "two-power-losses")
    assert (lost["verdict"], lost["change"], lost["advice_is_whole"]) == ("lost", None, False)
    assert audit(tmp_path, elr_off + WELL) == 1
    said = capsys.readouterr().out
    assert "which change of settings would prevent it was not explored" in said
    assert "no change of settings" not in said.lower()


# Any text

MANGLE = st.sampled_from(["drop", "double", "word", "cut", "join", "number", "swap"])
WORDS = st.sampled_from(
    [
        "",
        "None",
        "x",
        "-",
        "99999999999999999999",
        "1,",
        ",",
        "²",
        "٣",
        "1 2",
        "N/A",
        "${X}",
        "Topic:",
        "Isr:",
        "\t",
        '{"',
        "=",
    ]
)
LARGE = (
    ELR_ON
    + WELL
    + WELL.replace("Topic: t", "Topic: u").replace("TopicId: a", "TopicId: b").replace("Leader: 1", "Leader: none")
    + "Dynamic configs for topic t are:\n  retention.ms=5 sensitive=false synonyms={}\n"
    + '{"version":1,"brokers":[{"broker":1,"logDirs":[{"partitions":['
    + '{"partition":"t-0","size":9,"isFuture":false}]}]}]}\n'
    + "node.id=1\nmin.insync.replicas=2\n"
)


@st.composite
def mangled(draw: st.DrawFn) -> str:
    """A real text with a few places changed."""
    text = LARGE
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(text) - 1))
        end = min(len(text), at + draw(st.integers(1, 30)))
        match draw(MANGLE):
            case "drop":
                text = text[:at] + text[end:]
            case "double":
                text = text[:end] + text[at:]
            case "word":
                text = text[:at] + draw(WORDS) + text[end:]
            case "cut":
                text = text[:at] + "\n" + text[at:]
            case "join":
                text = text[:at] + text[at:].replace("\n", " ", 1)
            case "number":
                text = text[:at] + re.sub(r"\d+", draw(WORDS), text[at:], count=1)
            case _:
                text = text[:at] + text[at:end][::-1] + text[end:]
    return text


PARTITION_LINE = re.compile(r"Topic: (\S+)\s+Partition: (\d{1,9})\t")


@settings(max_examples=300, deadline=None)
@given(mangled())
def test_no_text_ends_in_a_traceback_and_no_partition_of_it_is_lost_without_a_word(text: str) -> None:
    try:
        cluster = read_description(text, "file")
        merged = None if cluster is None else merge_clusters([cluster])
    except Contradiction:
        return
    if merged is None:
        return
    runs = running(merged)
    conditions(merged)
    audit_rows(merged, runs, AnswerSource([], no_exploration))
    names = {p.name for p in merged.partitions}
    spoken = {f"{topic}-{int(n)}" for line in text.splitlines() for topic, n in PARTITION_LINE.findall(line)}
    assert spoken <= names or merged.gaps
    if not merged.gaps and not merged.notes and "u-0" in names:
        offline = [c for c in conditions(merged) if c.trouble is Trouble.OFFLINE]
        unclear = [c for c in conditions(merged) if c.trouble is Trouble.UNKNOWN]
        led = next(p for p in merged.partitions if p.name == "u-0").leader is not None
        assert offline or unclear or led
