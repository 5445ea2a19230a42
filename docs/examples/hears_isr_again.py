r"""What leaders of Apache Kafka 4.4.0 were seen to do: to hear metadata again, and forget what they have proposed.

    insync check hears-isr-again --design-file docs/examples/hears_isr_again.py --isr-changes 4 --crashes 0 \
        --symmetry on --property acked-survives
"""

from __future__ import annotations

from isr_designs import DESIGNS
from isr_validate.kafka_design import leader_hears_isr_again

HEARS_ISR_AGAIN = (
    DESIGNS["kip-966"]
    .replacing(
        "hears-isr-again",
        "kip-966 with Kafka's makeLeader, which takes metadata of the partition epoch that it has already",
        because="a leader that hears its metadata again forgets its proposal, which is still on its way.",
    )
    .adding(leader_hears_isr_again)
)
