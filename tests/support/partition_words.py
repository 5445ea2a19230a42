"""Words of a partition, which nothing that is said of a quorum of voters should have."""

from __future__ import annotations

import re
from typing import Final

PARTITION: Final = re.compile(
    r"in[ -]sync|\bisr\b|\breplicas?\b|partition|producer|acked|min\.insync|(?<!initial-)\bcontroller", re.IGNORECASE
)
