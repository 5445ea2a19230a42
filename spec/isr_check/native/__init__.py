"""The engine for speed: the model as machine code, a state as a few 64-bit words."""

from isr_check.native.exploration import explore

__all__ = ["explore"]
