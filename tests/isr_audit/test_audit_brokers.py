"""`insync audit --brokers`: which brokers may be restarted now is said in a sentence, and broker by broker.

Without this the outlook of a broker could be right, and its line could say another thing.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from insync_cli.clusters.audit_brokers import verdict, words
from insync_cli.main import main
from isr_drill.outlook import Deed, Outlook

TEXT = """\
Topic: t\tPartitionCount: 1\tReplicationFactor: 3\tConfigs: min.insync.replicas=2
\tTopic: t\tPartition: 0\tLeader: 1\tReplicas: 1,2,3\tIsr: 1,2\tElr: \tLastKnownElr:
"""
NOTHING = Deed((), (), ())


def test_who_may_who_may_not_and_of_whom_it_is_unknown() -> None:
    stops, unknown = Deed((), ("t-0",), ()), Deed((), (), ("t-0",), "its quorum")
    found = [Outlook(n, deed, NOTHING) for n, deed in ((1, NOTHING), (2, stops), (3, unknown), (4, NOTHING))]
    assert verdict(found).endswith(": 1 4; not: 2; UNKNOWN: 3")
    assert verdict(found[1:2]).endswith(": none; not: 2")
    assert "not told" in verdict([])


def test_who_stops_only_what_stands_still_already_is_named_apart() -> None:
    already, partial = Deed((), ("t-0",), (), already=("t-0",)), Deed((), (), (), "t: 1 of 2", is_partial=True)
    found = [Outlook(n, deed, NOTHING) for n, deed in ((1, already), (2, partial))]
    assert verdict(found, 3).endswith(
        ": none; stop only what stands still already: 1; UNKNOWN: 2; not judged: 3 other topics, of which they may have"
        " partitions"
    )
    assert words(already) == "stops 1: t-0 (already)"
    assert words(partial) == "UNKNOWN: what was not told"
    assert words(Deed((), ("a-0", "b-0"), (), already=("b-0",))) == "stops 2: a-0, b-0 (1 of them already)"


def test_a_deed_in_words() -> None:
    assert words(NOTHING) == "nothing"
    assert words(Deed(("a-0",), ("b-0", "b-1", "b-2"), ())) == "may lose 1: a-0; stops 3: b-0, b-1 and 1 more"


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "topics.txt"
    file.write_text(TEXT, encoding="utf-8")
    asked = ["audit", "--describe", str(file), "--kafka", "4.1", "--elr", "on", "--plain"]
    assert main([*asked, "--brokers"]) == 1
    said = capsys.readouterr().out
    assert "1 partition AT MIN ISR (t-0)" in said
    assert "in sync again: none; not: 1 2" in said
    assert main([*asked, "--brokers", "--json", str(tmp_path / "audit.json")]) == 1
    brokers = json.loads((tmp_path / "audit.json").read_text(encoding="utf-8"))["brokers"]
    assert [(b["broker"], b["restart"]["stops"]) for b in brokers] == [(1, ["t-0"]), (2, ["t-0"])]
    files = [tmp_path / name for name in ("audit.md", "audit.html")]
    words = [w for name, f in zip(("--markdown", "--html"), files, strict=True) for w in (name, str(f))]
    for more in (["--brokers"], []):
        assert main([*asked, *more, *words]) == 1
        texts = [f.read_text(encoding="utf-8") for f in files]
        assert [("in sync again: none; not: 1 2" in text) for text in texts] == [bool(more)] * 2
        assert [("stops 1: t-0" in text) for text in texts] == [bool(more)] * 2
    capsys.readouterr()
    assert main(asked) == 1
    assert "May be restarted" not in capsys.readouterr().out
    assert main([*asked, "--brokers", "--watch", "1"]) == 64
