"""The engine `native`, made for speed: the model is compiled by LLVM, and a state is a few 64-bit words."""

from isr_check.native.exploration import explore

__all__ = ["explore"]
