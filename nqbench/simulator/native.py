"""LLVM IR -> native code in this process.

Object code is kept in the cache folder of compiled kernels, under a digest of all that it follows
from: the IR, the CPU, the passes, LLVM's version. Kernels whose PTX differs only in names and line
numbers have the same IR and share one object.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import llvmlite.binding as llvm

from nqbench.compiler.compiled import Compiled, cache_key, read_entry, write_entry
from nqbench.system.versions import installed

OPTIMISATION_LEVEL: Final = 2
"""Needed so that instruction selection merges masked operations; see docs/simulator.md."""

PASSES: Final = ("sroa", "instruction_combine", "simplify_cfg")
"""None for vectors: the IR is vectors of a warp's lanes already."""


@dataclass(frozen=True, slots=True)
class NativeKernel:
    """Compiled entry points. ``keep`` owns the machine code."""

    start: Callable[[int], None]
    run: Callable[[int, int], int]
    keep: Any


@dataclass(frozen=True, slots=True)
class Cpu:
    """The CPU that the code is made for."""

    name: str
    features: str

    @property
    def scatters(self) -> bool:
        """Whether a vector is loaded from or stored to many addresses by one instruction. Where
        it is not, LLVM unrolls each access into 32 branches; a loop over the lanes is shorter."""
        return "+avx512f" in self.features.split(",")


@functools.cache
def this_cpu() -> Cpu:
    """This machine's. Its features are passed on explicitly: LLVM's default is much slower code."""
    return Cpu(llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten())


def compiler(cpu: Cpu) -> tuple[str, ...]:
    """All that object code follows from, but for the module."""
    made_for = (installed("llvmlite") or "", cpu.name, cpu.features, str(OPTIMISATION_LEVEL))
    return (*made_for, *PASSES)


def object_code(text: str, cpu: Cpu) -> bytes:
    """Object code of a module, from the cache if it was compiled before."""
    key = cache_key(("simulator object", *compiler(cpu), text))
    entry = read_entry(key)
    if entry is not None:
        return entry.image
    image = compile_object(text, cpu)
    write_entry(key, Compiled(image, "", ""))
    return image


def compile_object(text: str, cpu: Cpu) -> bytes:
    """Compile a module to object code; one whose functions are ``optnone`` as fast as can be."""
    module = llvm.parse_assembly(text)
    target = _target_machine(cpu, 0 if "optnone" in text else OPTIMISATION_LEVEL)
    builder = llvm.create_pass_builder(target, llvm.create_pipeline_tuning_options())
    passes = llvm.create_new_module_pass_manager()
    for add in PASSES:
        getattr(passes, f"add_{add}_pass")()
    passes.run(module, builder)
    image: bytes = target.emit_object(module)
    return image


def link(images: tuple[bytes, ...], cpu: Cpu) -> NativeKernel:
    """Load objects that define ``sim_start`` and ``sim_run`` between them."""
    target = _target_machine(cpu, OPTIMISATION_LEVEL)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), target)
    for image in images:
        engine.add_object_file(llvm.ObjectFileRef.from_data(image))
    engine.finalize_object()
    start = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(engine.get_function_address("sim_start"))
    run = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_int64)(
        engine.get_function_address("sim_run")
    )
    return NativeKernel(start, run, engine)


@functools.cache
def provide_watcher() -> None:
    """Let kernels of the checked mode call the watcher."""
    from nqbench.simulator import watcher
    from nqbench.simulator.codegen import watch

    llvm.add_symbol(watch.ACCESS, watcher.access.address)
    llvm.add_symbol(watch.BARRIER, watcher.barrier.address)


def _target_machine(cpu: Cpu, level: int) -> Any:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=cpu.name, features=cpu.features, opt=level, jit=True
    )
