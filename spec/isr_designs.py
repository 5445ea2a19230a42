"""Every design by its name on the command line."""

from __future__ import annotations

import isr_bugs as bugs
import isr_calm as calm
import isr_cleared_elr as cleared
import isr_directories as directories
import isr_forgotten_proposal as forgotten
import isr_history as history
import isr_kafka_bugs as found
import isr_proposed as proposed
import isr_raised_minimum as raised
import isr_reassignment as reassigned
import isr_registration as registered
import isr_removed_replica as removed
import isr_unclean_recovery as recovery
import isr_unclean_stops as stops
from isr_lang import Design
from isr_model import KIP_966

# Today first, then back in time, then what was proposed instead, then single rules taken out.
DESIGNS: dict[str, Design] = {
    d.name: d
    for d in (
        KIP_966,
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
        proposed.JEPSEN_BOUNDED_HALT,
        proposed.JEPSEN_BOUNDED_STRUCK,
        proposed.LEADER_EVICTS_ALONE,
        recovery.MANUAL,
        recovery.BALANCED,
        recovery.ASKS_ALL,
        recovery.AGGRESSIVE,
        bugs.KIP_320_JOINS_AT_WATERMARK,
        bugs.KIP_497_COMMITTED_ISR,
        bugs.KIP_497_NO_PARTITION_EPOCH,
        bugs.KIP_392_NO_WAIT,
        bugs.KAFKA_7164,
        bugs.KAFKA_7415,
        found.KAFKA_KEEPS_POSITIONS,
        found.KAFKA_RESETS_POSITIONS,
        found.KAFKA_RESETS_SKIPPED,
        found.KAFKA_OVERTAKEN_REQUEST,
        found.REFUSAL_IN_NEW_VERSION,
        found.REQUEST_EXPIRES,
        raised.KAFKA_RAISED_MIN_INSYNC,
        raised.CONFIGURATION_FIRST,
        raised.MINIMUM_IN_NEW_VERSION,
        removed.KAFKA_REMOVED_REPLICA,
        removed.ELR_OF_REPLICAS,
        forgotten.KAFKA_FORGOTTEN_PROPOSAL,
        forgotten.PROPOSAL_KEPT,
        reassigned.KAFKA_15665,
        reassigned.KAFKA_19975,
        reassigned.REASSIGNED_BY_ADDED,
        registered.KAFKA_16757,
        registered.KAFKA_16952,
        registered.REGISTRATION_AMENDED,
        registered.KAFKA_18106,
        registered.KAFKA_18635,
        registered.CLEAN_SHUTDOWN_KEPT,
        registered.KAFKA_19522,
        cleared.KAFKA_16540,
        cleared.KAFKA_CLEARED_ELR,
        cleared.ELR_KEPT_BELOW_MINIMUM,
        stops.KIP_966_WITHIN_ENVELOPE,
        calm.KIP_966_CALM,
        directories.KAFKA_16234,
        directories.DIRECTORY_OUT_OF_REACH,
        directories.KAFKA_16297,
        directories.ASSIGNMENT_REVERTED,
        bugs.KAFKA_13141,
        bugs.KAFKA_14704,
        bugs.KAFKA_15583,
    )
}
