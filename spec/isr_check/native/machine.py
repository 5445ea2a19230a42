"""The module of an instance as machine code: the one place that speaks to LLVM."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from threading import Lock

import llvmlite.binding as llvm  # type: ignore[import-untyped]

KERNELS = ("initial", "expand", "check", "mark", "index")
_lock = Lock()
_ready = False

Kernel = Callable[[int], None]


class Machine:
    """`run[name](address of a job)`; the code lives as long as this object."""

    def __init__(self, text: str, speed: int = 2) -> None:
        global _ready
        with _lock:
            if not _ready:
                llvm.initialize_native_target()
                llvm.initialize_native_asmprinter()
                _ready = True
            cpu, features = llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()
            triple = llvm.Target.from_default_triple()
            target = triple.create_target_machine(cpu=cpu, features=features, opt=speed, jit=True)
            module = llvm.parse_assembly(text)
            options = llvm.create_pipeline_tuning_options(speed_level=speed)
            options.loop_unrolling = False
            builder = llvm.create_pass_builder(target, options)
            builder.getModulePassManager().run(module, builder)
            self.module = module
            self.engine = llvm.create_mcjit_compiler(module, target)
            self.engine.finalize_object()
        prototype = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
        self.run: dict[str, Kernel] = {
            name: prototype(self.engine.get_function_address(name)) for name in KERNELS
        }
