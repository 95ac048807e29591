"""A kernel made executable: PTX text in, native code and the tables to read its counters out."""

from __future__ import annotations

import functools
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from nqbench.compiler.compiled import Compiled, cache_key, read_entry, write_entry
from nqbench.simulator import cfg, liveness, native, parser, waiting
from nqbench.simulator.cfg import BasicBlock
from nqbench.simulator.codegen.barriers import BarrierSite, release
from nqbench.simulator.codegen.common import common_module
from nqbench.simulator.codegen.kernel import WarpFunction
from nqbench.simulator.codegen.memory import outlines
from nqbench.simulator.codegen.writer import AccessSite, KernelWriter
from nqbench.simulator.ir import Function, Module
from nqbench.simulator.layout import Symbols, WarpLayout, assign, warp_layout
from nqbench.simulator.models import EXPAND, PTXAS
from nqbench.simulator.native import Cpu, NativeKernel
from nqbench.simulator.ptx import Instruction, PtxKernel
from nqbench.simulator.ptxas import Assembled, assemble, expand
from nqbench.simulator.rules import SectorRules, memory_rules

MANY_BLOCKS: Final = 300
"""From which LLVM's optimization takes minutes (the square of their number) and saves some 8%."""
LONG: Final = 3_000
"""Instructions from which it takes longer than 5 s, for the same reason."""
KEPT_FROM: Final = 100_000
"""Characters of PTX from which a whole translation is kept in the cache folder, not its object
code alone: below, translating again is as fast as reading."""


Source = tuple[str, str, tuple[tuple[str, int | str], ...], Cpu, bool]


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
    source: Source
    """What it was built from: PTX, entry, memory rules, CPU, whether the watcher is called."""

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
    watched: bool = False,
    object_code: Callable[[str, Cpu], bytes] | None = None,
) -> Translation:
    """Translate the kernel ``entry`` (mangled) of a PTX module and compile it for this CPU.

    ``watched`` is the checked mode; ``object_code`` compiles, by default unless the cache has the
    code already.

    Raises ``ptx.UnsupportedPtx`` for anything that the simulator does not know."""
    cpu, kept = cpu or native.this_cpu(), object_code is None and len(text) > KEPT_FROM
    source = (text, entry, memory, cpu, watched)
    key = ""
    if kept:
        key = cache_key(("translation", _own_code(), *native.compiler(cpu), *map(str, source)))
    if watched:
        native.provide_watcher()
    if kept and (found := read_entry(key)):
        parts, numbers, images = pickle.loads(found.image)  # as trusted as the code in it
        for block, own in zip(parts["blocks"], numbers, strict=True):
            block.targets = [parts["blocks"][number] for number in own]
    else:
        parts, images = _translated(source, object_code or native.object_code)
        if kept:
            write_entry(key, Compiled(_packed(parts, images), "", ""))
    code = native.link((_common(memory, cpu), *images), cpu)
    return Translation(**parts, native=code, source=source)


def _translated(
    source: Source, object_code: Callable[[str, Cpu], bytes]
) -> tuple[dict[str, Any], list[bytes]]:
    text, entry, memory, cpu, watched = source
    kernel = parser.parse(text, entry)
    blocks = cfg.build(kernel)
    placed = assign(kernel)
    file = liveness.analyse(blocks)
    layout = warp_layout(blocks, file.nbytes, placed.local_bytes)
    rules = memory_rules(dict(memory))
    module = Module()
    long = sum(len(block.instructions) for block in blocks) > LONG
    quick = "optnone " if long or len(blocks) > MANY_BLOCKS else ""
    head = "i32 sim_warp(ptr context, ptr warp, i64 quantum)"
    f = Function(module, f"{head} {quick}noinline nounwind")
    context, warp, _ = f.parameters
    exact = liveness.smallest_access(blocks, "shared") < 4
    k = KernelWriter(f, context, warp, layout, file, placed, rules, exact, cpu.scatters)
    asked = dict(memory)
    if EXPAND in asked:
        expand(k.assembled, blocks, str(asked[EXPAND]))
    if PTXAS in asked:
        assemble(k.assembled, blocks, placed)
    k.outlines, k.watched = outlines(blocks), watched
    if watched:
        k.retried, k.awaited, k.flags = waiting.waits(blocks, kernel.variables)
    barriers = WarpFunction(k, blocks).run()
    release(module, layout, barriers, watched)
    parts = {
        **{"kernel": kernel, "blocks": blocks, "symbols": placed, "layout": layout},
        **{"sites": k.sites, "barriers": barriers, "instructions": k.instructions},
        **{"rules": rules, "assembled": k.assembled},
    }
    # What the warp's function calls is short, called often, and much the same in many kernels.
    first, *others = module.functions
    texts = [module.text(first), module.text(*others)] if quick else [module.text()]
    return parts, [object_code(text, cpu) for text in texts]


def _packed(parts: dict[str, Any], images: list[bytes]) -> bytes:
    """A translation for the cache. Blocks are linked by numbers: a chain of objects is too deep."""
    blocks: list[BasicBlock] = parts["blocks"]
    targets = [block.targets for block in blocks]
    numbers = [[target.index for target in one] for one in targets]
    for block in blocks:
        block.targets = []
    try:
        return pickle.dumps((parts, numbers, images), pickle.HIGHEST_PROTOCOL)
    finally:
        for block, own in zip(blocks, targets, strict=True):
            block.targets = own


@functools.cache
def _own_code() -> str:
    """A digest of the simulator's own source and tables: others may translate otherwise."""
    files = sorted(p for p in Path(__file__).parent.rglob("*") if p.suffix in (".py", ".toml"))
    return cache_key(file.read_bytes() for file in files)


@functools.cache
def _common(memory: tuple[tuple[str, int | str], ...], cpu: Cpu) -> bytes:
    return native.object_code(common_module(memory_rules(dict(memory))), cpu)
