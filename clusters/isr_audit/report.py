"""Everything that an audit has to say of a cluster, as one record; words are made of it elsewhere."""

from __future__ import annotations

import attrs

from isr_audit.audit import AnswerSource, Row, audit_rows
from isr_audit.bugs import Listing, listings
from isr_audit.cluster import MIN_INSYNC, Cluster, Partition
from isr_audit.condition import Condition, Ends, Trouble, conditions
from isr_audit.releases import Running


@attrs.frozen
class Audit:
    """Everything that was found of a cluster; no `rows` until its topics are judged. `bootstrap`: where it was asked,
    "" where it was described."""

    cluster: Cluster
    runs: Running
    now: tuple[Condition, ...]
    rows: tuple[Row, ...] = ()
    bootstrap: str = ""

    @property
    def bugs(self) -> tuple[Listing, ...]:
        """Those of whatever may run for what was told."""
        return listings(self.runs.worlds)

    @property
    def topics_at_risk(self) -> tuple[str, ...]:
        """The topics that may lose what was acknowledged with acks=all by one failure, or without any."""
        return tuple(t.name for row in self.rows if row.at_risk for t in row.topics)

    @property
    def topics_undecided(self) -> tuple[str, ...]:
        """The topics of which it was not decided what one failure loses, and that are not at risk anyway."""
        return tuple(t.name for row in self.rows if row.is_undecided and not row.at_risk for t in row.topics)

    @property
    def stopped(self) -> tuple[Condition, ...]:
        """The partitions without a leader, or under their minimum."""
        return tuple(c for c in self.now if c.trouble <= Trouble.UNDER_MINIMUM)

    @property
    def lacking(self) -> tuple[Condition, ...]:
        """The partitions that lack replicas and do not stop."""
        return tuple(c for c in self.now if c.trouble is Trouble.UNDER_REPLICATED)

    @property
    def at_minimum(self) -> tuple[Partition, ...]:
        """The partitions that are led and have as few in sync as they must (Kafka's metric AtMinIsr), where more than
        that have a replica."""
        known = [t for t in self.cluster.topics if self.cluster.is_known(t, MIN_INSYNC)]
        return tuple(
            p
            for t in known
            for p in t.partitions
            if p.leader is not None and len(p.isr) == self.cluster.min_insync(t) < len(p.replicas)
        )

    @property
    def is_whole(self) -> bool:
        """Whether all that decides was told, and decided."""
        is_read = all(c.trouble is not Trouble.UNKNOWN for c in self.now)
        return is_read and not self.cluster.gaps and not any(row.is_undecided for row in self.rows)


def audit_now(cluster: Cluster, runs: Running, before: Ends | None = None, bootstrap: str = "") -> Audit:
    """The cluster as it is now, its topics not yet judged; `before`: where logs ended at earlier looks."""
    return Audit(cluster, runs, tuple(conditions(cluster, before)), bootstrap=bootstrap)


def with_rows(audit: Audit, answers: AnswerSource) -> Audit:
    """The same with what its topics may lose, which may have to be explored."""
    return attrs.evolve(audit, rows=tuple(audit_rows(audit.cluster, audit.runs, answers)))
