"""`insync audit --watch --serve`: a client of HTTP sees the page and scrapes metrics while the cluster comes and goes.

Without these a dashboard would show how a cluster was, and say nothing about its being gone.
"""

from __future__ import annotations

import http.client
import re
import time
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from insync_cli.main import main

pytestmark = [pytest.mark.sockets, pytest.mark.long]

ELR = "Feature: eligible.leader.replicas.version\tFinalizedVersionLevel: 1\tEpoch: 1\n"
WELL = """\
Topic: t.1\tPartitionCount: 2\tReplicationFactor: 3\tConfigs: min.insync.replicas=2
\tTopic: t.1\tPartition: 0\tLeader: 1\tReplicas: 1,2,3\tIsr: 1,2,3
\tTopic: t.1\tPartition: 1\tLeader: 2\tReplicas: 2,3,1\tIsr: 1,2,3
"""
LACKING = WELL.replace("Leader: 1\tReplicas: 1,2,3\tIsr: 1,2,3", "Leader: 1\tReplicas: 1,2,3\tIsr: 1,2")
SAMPLE = re.compile(r'([a-z_]+)(?:\{([a-z]+="[^"]*"(?:,[a-z]+="[^"]*")*)\})? (-?\d+)')


def get(url: str) -> tuple[int, str, str]:
    try:
        with urlopen(url, timeout=30) as answer:
            return answer.status, answer.headers["Content-Type"], answer.read().decode()
    except HTTPError as problem:
        return problem.code, problem.headers["Content-Type"], problem.read().decode()


def samples(text: str) -> dict[tuple[str, str], int]:
    """The values of a scrape, each line of which has to be one."""
    values: dict[tuple[str, str], int] = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            match = SAMPLE.fullmatch(line)
            assert match is not None, line
            values[match[1], match[2] or ""] = int(match[3])
    return values


def test_the_page_stays_up_and_metrics_are_scraped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    described, looks, urls = tmp_path / "t.txt", list[dict[str, tuple[int, str, str]]](), list[str]()
    texts = [LACKING + ELR, "nothing of Kafka\n", WELL + ELR]
    described.write_text(WELL + ELR, encoding="utf-8")

    def wait(_: float) -> None:
        """In place of a minute: what a browser and Prometheus see after each look."""
        urls[:] = urls or re.findall(r"http://127\.0\.0\.1:\d+/", capsys.readouterr().out)[:1]
        looks.append({path: get(urls[0] + path) for path in ("", "metrics", "audit.json", "nothing")})
        if len(looks) == 4:
            raise KeyboardInterrupt
        described.write_text(texts[len(looks) - 1], encoding="utf-8")

    monkeypatch.setattr(time, "sleep", wait)
    command = ["audit", "--describe", str(described), "--kafka", "4.1", "--watch", "60", "--serve", "127.0.0.1:0"]
    assert main(command) == 0
    well, lacking, gone, again = looks
    for look in looks:
        status, kind, page = look[""]
        assert (status, kind) == (200, "text/html; charset=utf-8")
        assert "What can this cluster lose?" in page
        assert look["metrics"][:2] == (200, "text/plain; version=0.0.4; charset=utf-8")
        assert look["nothing"][0] == 404
    assert "FINE" in well[""][2]
    assert "Seen at " in well[""][2]
    assert "AT RISK" in lacking[""][2]
    assert "No answer at " in gone[""][2]
    assert "AT RISK" in gone[""][2], "what was seen last stays"
    assert [look["audit.json"][0] for look in looks] == [200, 200, 503, 200]
    values = samples(lacking["metrics"][2])
    labels = 'topic="t.1",partition="0",trouble="under_replicated"'
    assert values["insync_audit_partition_trouble", labels] == 1
    assert values["insync_audit_broker_missing_from_partitions", 'broker="3"'] == 1
    assert values["insync_audit_broker_missing_from_partitions", 'broker="1"'] == 0
    assert values["insync_audit_topic_at_risk", 'topic="t.1"'] == 0
    assert values["insync_audit_exit_code", ""] == 1
    assert {name for name, _ in samples(gone["metrics"][2])} == {
        "insync_audit_exit_code",
        "insync_audit_timestamp_seconds",
    }
    assert samples(again["metrics"][2])["insync_audit_exit_code", ""] == 0
    with pytest.raises(OSError, match="refused"):
        urlopen(urls[0], timeout=5)


def test_a_head_has_no_body_and_a_post_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "t.txt").write_text(WELL + ELR, encoding="utf-8")

    def wait(_: float) -> None:
        port = int(re.findall(r"127\.0\.0\.1:(\d+)/", capsys.readouterr().out)[0])
        client = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        client.request("HEAD", "/metrics")
        answer = client.getresponse()
        assert (answer.status, answer.read()) == (200, b"")
        client.request("GET", "/metrics?x=1")
        answer = client.getresponse()
        assert (answer.status, int(answer.headers["Content-Length"])) == (200, len(answer.read()))
        client.request("POST", "/metrics", body="x")
        assert client.getresponse().status == 501
        client.close()
        raise KeyboardInterrupt

    monkeypatch.setattr(time, "sleep", wait)
    command = ["audit", "--describe", str(tmp_path / "t.txt"), "--kafka", "4.1", "--watch", "9", "--serve", ":0"]
    assert main(command) == 0


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (("--serve", ":9700"), "--serve goes with --watch S"),
        (("--serve", "9700x", "--watch", "9"), "HOST:PORT such as 127.0.0.1:9700, not 9700x"),
        (("--serve", "h:70000", "--watch", "9"), "HOST:PORT such as 127.0.0.1:9700, not h:70000"),
        (("--serve", "192.0.2.1:9", "--watch", "9"), "cannot serve at 192.0.2.1:9: "),
    ],
)
def test_where_nothing_can_be_served(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], more: tuple[str, ...], says: str
) -> None:
    (tmp_path / "t.txt").write_text(WELL + ELR, encoding="utf-8")
    assert main(["audit", "--describe", str(tmp_path / "t.txt"), *more]) == 64
    said = capsys.readouterr().err
    assert says in said
    assert said.count("\n") == 1
