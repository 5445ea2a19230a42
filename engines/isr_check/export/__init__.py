"""Designs in the languages of other people's checkers: TLA+ for all bounds, Murphi for one instance.

Reading order: `names` and `layout` (what both languages need).

- TLA+: `tla_values`, `tla_operators`, `tla_scope` and `tla_sharing` (local names), `tla_blocks` (lines of a module),
  `tla_module` (all of it), `tla_config` (configurations for TLC).
- Murphi: `murphi_values`, `murphi_operators`, `murphi_binders`, `murphi_code` (the body of a function), `murphi_module`
  (all of it).
"""

from isr_check.export.murphi_module import murphi
from isr_check.export.tla_config import cfg, write_tla
from isr_check.export.tla_module import tla

__all__ = ["cfg", "murphi", "tla", "write_tla"]
