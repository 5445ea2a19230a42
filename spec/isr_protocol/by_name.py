"""Every design by its name on the command line; the module of a design is imported when the design is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from isr_lang import Design

Family = Callable[[], tuple[Design, ...]]
"""A function that imports a module, and returns its designs."""


def _today() -> tuple[Design, ...]:
    from isr_model import KIP_966

    return (KIP_966,)


def _history() -> tuple[Design, ...]:
    from isr_protocol.designs import history

    return (
        history.KRAFT_3_5,
        history.KIP_903,
        history.KIP_841,
        history.KIP_497,
        history.KIP_320,
        history.KIP_320_FIRST_TRY,
        history.KIP_279,
        history.KIP_101,
        history.ZOOKEEPER,
        history.KAFKA_0_8,
        history.MAJORITY,
        history.JEPSEN_BOUNDED_ISR,
        history.JEPSEN_HALT,
    )


def _proposed() -> tuple[Design, ...]:
    from isr_protocol.designs import proposals as proposed

    return proposed.JEPSEN_BOUNDED_HALT, proposed.JEPSEN_BOUNDED_STRUCK, proposed.LEADER_EVICTS_ALONE


def _recovery() -> tuple[Design, ...]:
    from isr_protocol.designs import unclean_recovery as recovery

    return recovery.MANUAL, recovery.BALANCED, recovery.ASKS_ALL, recovery.AGGRESSIVE


def _bugs() -> tuple[Design, ...]:
    from isr_protocol.designs import dropped_rules as bugs

    return (
        bugs.KIP_320_JOINS_AT_WATERMARK,
        bugs.KIP_497_COMMITTED_ISR,
        bugs.KIP_497_NO_PARTITION_EPOCH,
        bugs.KIP_392_NO_WAIT,
        bugs.KAFKA_7164,
        bugs.KAFKA_7415,
        bugs.KAFKA_13141,
        bugs.KAFKA_14704,
        bugs.KAFKA_15583,
    )


def _found() -> tuple[Design, ...]:
    from isr_protocol.designs import leader_bugs as found

    return (
        found.KAFKA_KEEPS_POSITIONS,
        found.KAFKA_RESETS_POSITIONS,
        found.KAFKA_RESETS_SKIPPED,
        found.KAFKA_OVERTAKEN_REQUEST,
        found.REFUSAL_IN_NEW_VERSION,
        found.REQUEST_EXPIRES,
    )


def _raised() -> tuple[Design, ...]:
    from isr_protocol.designs import raised_minimum as raised

    return raised.KAFKA_RAISED_MIN_INSYNC, raised.CONFIGURATION_FIRST, raised.MINIMUM_IN_NEW_VERSION


def _removed() -> tuple[Design, ...]:
    from isr_protocol.designs import removed_replica as removed

    return removed.KAFKA_REMOVED_REPLICA, removed.ELR_OF_REPLICAS


def _forgotten() -> tuple[Design, ...]:
    from isr_protocol.designs import forgotten_proposal as forgotten

    return forgotten.KAFKA_FORGOTTEN_PROPOSAL, forgotten.PROPOSAL_KEPT


def _reassigned() -> tuple[Design, ...]:
    from isr_protocol.designs import reassignment as reassigned

    return reassigned.KAFKA_15665, reassigned.KAFKA_19975, reassigned.REASSIGNED_BY_ADDED


def _registered() -> tuple[Design, ...]:
    from isr_protocol.designs import registration as registered

    return (
        registered.KAFKA_16757,
        registered.KAFKA_16952,
        registered.REGISTRATION_AMENDED,
        registered.KAFKA_18106,
        registered.KAFKA_18635,
        registered.CLEAN_SHUTDOWN_KEPT,
        registered.KAFKA_19522,
    )


def _cleared() -> tuple[Design, ...]:
    from isr_protocol.designs import cleared_elr as cleared

    return cleared.KAFKA_16540, cleared.KAFKA_CLEARED_ELR, cleared.ELR_KEPT_BELOW_MINIMUM


def _stops() -> tuple[Design, ...]:
    from isr_protocol.designs.unclean_stops import KIP_966_WITHIN_ENVELOPE

    return (KIP_966_WITHIN_ENVELOPE,)


def _calm() -> tuple[Design, ...]:
    from isr_protocol.designs.calm import KIP_966_CALM

    return (KIP_966_CALM,)


def _directories() -> tuple[Design, ...]:
    from isr_protocol.designs import directories

    return (
        directories.KAFKA_16234,
        directories.DIRECTORY_OUT_OF_REACH,
        directories.KAFKA_16297,
        directories.ASSIGNMENT_REVERTED,
    )


# Today first, then back in time, then what was proposed instead, then single rules taken out.
FAMILIES: dict[str, Family] = {
    "kip-966": _today,
    "kraft-3.5": _history,
    "kip-903": _history,
    "kip-841": _history,
    "kip-497": _history,
    "kip-320": _history,
    "kip-320-first-try": _history,
    "kip-279": _history,
    "kip-101": _history,
    "zookeeper": _history,
    "kafka-0.8": _history,
    "majority": _history,
    "jepsen-bounded-isr": _history,
    "jepsen-halt": _history,
    "jepsen-bounded-halt": _proposed,
    "jepsen-bounded-struck": _proposed,
    "leader-evicts-alone": _proposed,
    "recovery-manual": _recovery,
    "recovery-balanced": _recovery,
    "recovery-asks-all": _recovery,
    "recovery-aggressive": _recovery,
    "kip-320-joins-at-watermark": _bugs,
    "kip-497-committed-isr": _bugs,
    "kip-497-no-partition-epoch": _bugs,
    "kip-392-no-wait": _bugs,
    "kafka-7164": _bugs,
    "kafka-7415": _bugs,
    "kafka-keeps-positions": _found,
    "kafka-resets-positions": _found,
    "kafka-resets-skipped": _found,
    "kafka-overtaken-request": _found,
    "refusal-in-new-version": _found,
    "request-expires": _found,
    "kafka-raised-min-insync": _raised,
    "configuration-first": _raised,
    "minimum-in-new-version": _raised,
    "kafka-removed-replica": _removed,
    "elr-of-replicas": _removed,
    "kafka-forgotten-proposal": _forgotten,
    "proposal-kept": _forgotten,
    "kafka-15665": _reassigned,
    "kafka-19975": _reassigned,
    "reassigned-by-added": _reassigned,
    "kafka-16757": _registered,
    "kafka-16952": _registered,
    "registration-amended": _registered,
    "kafka-18106": _registered,
    "kafka-18635": _registered,
    "clean-shutdown-kept": _registered,
    "kafka-19522": _registered,
    "kafka-16540": _cleared,
    "kafka-cleared-elr": _cleared,
    "elr-kept-below-minimum": _cleared,
    "kip-966-within-envelope": _stops,
    "kip-966-calm": _calm,
    "kafka-16234": _directories,
    "directory-out-of-reach": _directories,
    "kafka-16297": _directories,
    "assignment-reverted": _directories,
    "kafka-13141": _bugs,
    "kafka-14704": _bugs,
    "kafka-15583": _bugs,
}


class _Designs(Mapping[str, Design]):
    def __init__(self) -> None:
        self._made: dict[str, Design] = {}

    def __getitem__(self, name: str) -> Design:
        if name not in self._made:
            self._made |= {design.name: design for design in FAMILIES[name]()}
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(FAMILIES)

    def __len__(self) -> int:
        return len(FAMILIES)

    def __contains__(self, name: object) -> bool:
        return name in FAMILIES


DESIGNS: Mapping[str, Design] = _Designs()
