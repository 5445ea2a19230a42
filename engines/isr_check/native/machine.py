"""The module of an instance as machine code, in two qualities.

LLVM makes quick code within a tenth of a second; its best code takes a second or two and runs three times as fast. So
an exploration starts with quick code. If it lasts, the best code is made in the background and takes over between two
calls. The best code is kept on disk for the next time, in a file named by a hash of all that it was made from.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import NamedTemporaryFile
from threading import Lock, Thread

from isr_check.native.binding import Engine, TargetMachine, llvm

QUICK, BEST = 0, 3
_initialisation_lock = Lock()
_state = {"ready": False}

Kernel = Callable[[int], None]


def cache_folder() -> Path:
    """The folder INSYNC_CACHE, else `insync` in the user's cache folder."""
    chosen = os.environ.get("INSYNC_CACHE")
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "insync"


def _initialise() -> None:
    with _initialisation_lock:
        if not _state["ready"]:
            llvm.initialize_native_target()
            llvm.initialize_native_asmprinter()
            _state["ready"] = True


def _host() -> tuple[str, str]:
    return llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()


def _target(quality: int) -> TargetMachine:
    cpu, features = _host()
    return llvm.Target.from_default_triple().create_target_machine(cpu, features, quality, jit=True)


def compile_object(text: str, quality: int) -> bytes:
    """The machine code of a module given as text."""
    target, module = _target(quality), llvm.parse_assembly(text)
    tuning = llvm.create_pipeline_tuning_options(quality)
    tuning.loop_unrolling = tuning.loop_vectorization = tuning.slp_vectorization = True
    builder = llvm.create_pass_builder(target, tuning)
    builder.getModulePassManager().run(module, builder)
    return target.emit_object(module)


class Machine:
    """A module as machine code: `run[name](address of a job)` calls a kernel, as long as this object lives."""

    def __init__(self, text: str, kernels: Sequence[str]) -> None:
        _initialise()
        self._text, self._kernels, self._engines = text, kernels, list[Engine]()
        made_from = repr((text, llvm.llvm_version_info, _host(), BEST))
        self._file = cache_folder() / "native" / f"{hashlib.sha256(made_from.encode()).hexdigest()[:32]}.o"
        kept = _read_object(self._file)
        self.improving = kept is not None
        self.run: dict[str, Kernel] = self._load(kept or compile_object(text, QUICK))

    def improve(self) -> None:
        """Begin to make the best code in the background; it takes over as soon as it is ready."""
        if not self.improving:
            self.improving = True
            Thread(target=self._improve, name="insync-compiler").start()

    def address(self, name: str) -> int:
        """Where a function of the module is, for the kernels of another; it stays valid when better code is ready."""
        return self._engines[-1].get_function_address(name)

    def _improve(self) -> None:
        best = compile_object(self._text, BEST)
        self.run = self._load(best)
        _write(self._file, best)

    def _load(self, code: bytes) -> dict[str, Kernel]:
        engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _target(QUICK))
        engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        engine.finalize_object()
        self._engines.append(engine)
        prototype = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
        return {name: prototype(engine.get_function_address(name)) for name in self._kernels}


def _read_object(file: Path) -> bytes | None:
    """The content of a file that `_write` wrote; None if it is missing or damaged."""
    try:
        digest, code = file.read_bytes().split(b"\n", 1)
    except (OSError, ValueError):
        return None
    return code if hashlib.sha256(code).hexdigest().encode() == digest else None


def _write(file: Path, code: bytes) -> None:
    """Write a file of the cache, completely or not at all; nothing happens if the cache cannot be written."""
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        with NamedTemporaryFile(dir=file.parent, delete=False) as part:
            part.write(hashlib.sha256(code).hexdigest().encode() + b"\n" + code)
        Path(part.name).replace(file)
