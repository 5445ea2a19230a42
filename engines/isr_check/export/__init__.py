"""Designs in the languages of other people's checkers: TLA+ for all bounds, Murphi for one instance."""

from isr_check.export.murphi_module import murphi
from isr_check.export.tla_config import cfg, write_tla
from isr_check.export.tla_module import tla

__all__ = ["cfg", "murphi", "tla", "write_tla"]
