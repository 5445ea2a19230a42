"""The part of llvmlite.binding that is used here, with types: llvmlite has none."""

from __future__ import annotations

from importlib import import_module
from typing import Protocol, cast


class Module(Protocol):
    """LLVM IR in memory."""


class Features(Protocol):
    def flatten(self) -> str: ...


class TargetMachine(Protocol):
    def emit_object(self, module: Module) -> bytes: ...


class Target(Protocol):
    def create_target_machine(self, cpu: str, features: str, opt: int, *, jit: bool) -> TargetMachine: ...


class Targets(Protocol):
    def from_default_triple(self) -> Target: ...


class Tuning(Protocol):
    loop_unrolling: bool
    loop_vectorization: bool
    slp_vectorization: bool


class Passes(Protocol):
    def run(self, module: Module, builder: Builder) -> bool: ...


class Builder(Protocol):
    def getModulePassManager(self) -> Passes: ...  # llvmlite's name


class Object(Protocol):
    """Machine code that is not loaded yet."""


class Objects(Protocol):
    def from_data(self, data: bytes) -> Object: ...


class Engine(Protocol):
    def add_object_file(self, object: Object) -> None: ...
    def finalize_object(self) -> None: ...
    def get_function_address(self, name: str) -> int: ...


class Binding(Protocol):
    Target: Targets
    ObjectFileRef: Objects
    llvm_version_info: tuple[int, ...]

    def initialize_native_target(self) -> None: ...
    def initialize_native_asmprinter(self) -> None: ...
    def get_host_cpu_name(self) -> str: ...
    def get_host_cpu_features(self) -> Features: ...
    def parse_assembly(self, text: str) -> Module: ...
    def create_pipeline_tuning_options(self, speed_level: int, size_level: int = 0) -> Tuning: ...
    def create_pass_builder(self, machine: TargetMachine, tuning: Tuning) -> Builder: ...
    def create_mcjit_compiler(self, module: Module, machine: TargetMachine) -> Engine: ...


llvm = cast("Binding", import_module("llvmlite.binding"))
