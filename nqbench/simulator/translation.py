"""A kernel made executable: PTX text in, native code and the tables to read its counters out."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

from nqbench.simulator import cfg, liveness, native, parser
from nqbench.simulator.cfg import BasicBlock
from nqbench.simulator.codegen.barriers import BarrierSite, release
from nqbench.simulator.codegen.common import common_module
from nqbench.simulator.codegen.kernel import translate
from nqbench.simulator.codegen.memory import outlines
from nqbench.simulator.codegen.writer import AccessSite, KernelWriter
from nqbench.simulator.ir import Function, Module
from nqbench.simulator.layout import Symbols, WarpLayout, assign, warp_layout
from nqbench.simulator.models import PTXAS
from nqbench.simulator.native import Cpu, NativeKernel
from nqbench.simulator.ptx import Instruction, PtxKernel
from nqbench.simulator.ptxas import Assembled, assemble
from nqbench.simulator.rules import SectorRules, memory_rules


@dataclass(frozen=True, slots=True, eq=False)
class Translation:
    """``instructions`` are those that may fault, by the number that a fault records."""

    kernel: PtxKernel
    blocks: list[BasicBlock]
    symbols: Symbols
    layout: WarpLayout
    sites: list[AccessSite]
    barriers: list[BarrierSite]
    instructions: list[Instruction]
    native: NativeKernel
    rules: SectorRules
    assembled: Assembled
    source: tuple[str, str, tuple[tuple[str, int | str], ...], Cpu, bool, bool]
    """What it was built from: PTX, entry, memory rules, CPU, whether reads of undefined memory are
    faults, whether the watcher is called."""

    @property
    def watched(self) -> bool:
        """Whether it was built for the checked mode."""
        return self.source[-1]

    @property
    def prints(self) -> bool:
        """Whether the kernel can print."""
        return self.mentions("vprintf")

    def mentions(self, *names: str) -> bool:
        """Whether a function or a special register occurs in the kernel."""
        return liveness.mentions(self.blocks, *names)


@functools.lru_cache(maxsize=64)
def build(
    text: str,
    entry: str,
    memory: tuple[tuple[str, int | str], ...],
    cpu: Cpu | None = None,
    undefined: bool = False,
    watched: bool = False,
    object_code: Callable[[str, Cpu], bytes] | None = None,
) -> Translation:
    """Translate the kernel ``entry`` (mangled) of a PTX module and compile it for this CPU.

    ``undefined`` adds checks of reads from buffers that start undefined; ``watched`` is the checked
    mode; ``object_code`` compiles, by default unless the cache has the code already.

    Raises ``ptx.UnsupportedPtx`` for anything that the simulator does not know."""
    cpu, object_code = cpu or native.this_cpu(), object_code or native.object_code
    kernel = parser.parse(text, entry)
    blocks = cfg.build(kernel)
    placed = assign(kernel)
    file = liveness.analyse(blocks)
    layout = warp_layout(blocks, file.nbytes, placed.local_bytes)
    rules = memory_rules(dict(memory))
    module = Module()
    f = Function(module, "i32 sim_warp(ptr context, ptr warp, i64 quantum) noinline nounwind")
    context, warp, _ = f.parameters
    exact = liveness.smallest_access(blocks, "shared") < 4
    k = KernelWriter(f, context, warp, layout, file, placed, rules, exact, cpu.scatters)
    k.assembled = assemble(blocks, placed) if PTXAS in dict(memory) else Assembled()
    k.outlines, k.undefined, k.watched = outlines(blocks), undefined, watched
    barriers = translate(k, blocks)
    release(module, layout, barriers, watched)
    if watched:
        native.provide_watcher()
    images = (_common(memory, cpu), object_code(module.text(), cpu))
    return Translation(
        kernel, blocks, placed, layout, k.sites, barriers, k.instructions,
        native.link(images, cpu), rules, k.assembled,
        (text, entry, memory, cpu, undefined, watched),
    )  # fmt: skip


@functools.cache
def _common(memory: tuple[tuple[str, int | str], ...], cpu: Cpu) -> bytes:
    """Object code of what all kernels have in common."""
    return native.object_code(common_module(memory_rules(dict(memory))), cpu)
