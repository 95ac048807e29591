"""LLVM IR -> native code in this process."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

OPTIMISATION_LEVEL = 2
"""Needed so that instruction selection merges masked operations; see docs/simulator.md."""


@dataclass(frozen=True, slots=True)
class NativeKernel:
    """Compiled entry points. ``keep`` owns the machine code."""

    start: Callable[[int], None]
    run: Callable[[int, int], int]
    keep: Any


@dataclass(frozen=True, slots=True)
class Host:
    """The CPU that the code is made for."""

    cpu: str
    features: str

    @property
    def scatters(self) -> bool:
        """Whether a vector is loaded from or stored to many addresses by one instruction. Where
        it is not, LLVM unrolls each access into 32 branches; a loop over the lanes is shorter."""
        return "+avx512f" in self.features.split(",")


@functools.cache
def host() -> Host:
    """This machine. Its features are passed on explicitly: LLVM's default is much slower code."""
    import llvmlite.binding as llvm

    features = llvm.get_host_cpu_features()
    return Host(llvm.get_host_cpu_name(), features.flatten())


@functools.cache
def _initialise() -> None:
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()


def compile_native(text: str, machine: Host | None = None) -> NativeKernel:
    """Compile a module that defines ``sim_start`` and ``sim_run``."""
    import llvmlite.binding as llvm

    _initialise()
    machine = machine or host()
    target = llvm.Target.from_default_triple()
    tm = target.create_target_machine(
        cpu=machine.cpu, features=machine.features, opt=OPTIMISATION_LEVEL, jit=True
    )
    module = llvm.parse_assembly(text)
    options = llvm.create_pipeline_tuning_options(speed_level=1)
    options.loop_vectorization = False
    options.slp_vectorization = False
    options.loop_unrolling = False
    options.loop_interleaving = False
    builder = llvm.create_pass_builder(tm, options)
    passes = llvm.create_new_module_pass_manager()
    for add in PASSES:
        getattr(passes, f"add_{add}_pass")()
    passes.run(module, builder)
    engine = llvm.create_mcjit_compiler(module, tm)
    engine.finalize_object()
    start = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(engine.get_function_address("sim_start"))
    run = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_int64)(
        engine.get_function_address("sim_run")
    )
    return NativeKernel(start, run, engine)


PASSES = ("sroa", "instruction_combine", "simplify_cfg")
