"""From the counts of blocks and sites to the counters of a launch."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nqbench.simulator.cfg import BasicBlock
from nqbench.simulator.codegen.caches import CacheCount as CacheCount
from nqbench.simulator.codegen.kernel import BLOCK_FIELDS
from nqbench.simulator.codegen.writer import LEAST, SITE_FIELDS
from nqbench.simulator.engine import SimLaunch
from nqbench.simulator.ir import LANES
from nqbench.simulator.ptx import ATOMICS, FAMILIES, Instruction
from nqbench.simulator.rules import SECTOR_BITS
from nqbench.simulator.translation import Translation

SOURCE_COUNTS = (
    *("issue_slots", "warp_instructions", "thread_instructions", "branches", "divergent_branches"),
    *("shared_requests", "shared_passes", "bank_conflicts"),
    *("local_requests", "local_sectors", "global_requests", "global_sectors"),
)
"""Counters of a line of the source."""
LOADS, STORES = ("ld", "ldu", "cp"), ("st",)


class Tally:
    """A launch's counts, by block and by site."""

    def __init__(self, run: SimLaunch) -> None:
        self.code = run.code
        self.geometry = run.geometry
        self.cache_counts = run.cache_counts
        each_block, each_site = run.counts()
        blocks = each_block.sum(axis=0)
        self.executions, self.lanes, self.divergent = (
            blocks[:, i] for i in range(len(BLOCK_FIELDS))
        )
        self.issued = self.executions.copy()
        """Like ``executions``, but predicated code issues whenever a warp comes by."""
        for side, head in self.code.assembled.predicated.items():
            self.issued[side] = self.executions[head]
        sites = each_site.sum(axis=0)
        self.least = np.zeros(len(sites), np.int64)
        """Passes that the accesses of a site to shared memory take at least."""
        for site in self.code.sites:
            if site.always:
                sites[site.index, 0] = self.executions[site.block]
                sites[site.index, 1] = self.lanes[site.block]
            if site.space == "shared":
                place = SITE_FIELDS.index(LEAST)
                self.least[site.index] = sites[site.index, place] or sites[site.index, 0]
                sites[site.index, place] = 0
        self.sites: NDArray[np.int64] = sites
        self.missed = Counter[Instruction]()
        """Lanes whose guard does not hold, of predicated instructions."""
        self.idle = np.zeros(len(sites), np.int64)
        """Requests without lanes: predicated accesses of warps that all went the other way."""
        for site in self.code.sites:
            if site.space:
                self.idle[site.index] = self.issued[site.block] - self.executions[site.block]
            else:
                self.missed[site.instruction] += int(self.lanes[site.block] - sites[site.index, 1])

    def totals(self) -> dict[str, int | float]:
        """Every counter of ``vocabulary.COUNTERS``."""
        blocks = self.code.blocks
        assembled = self.code.assembled
        lengths = np.array([sum(map(assembled.length, assembled.left(b))) for b in blocks])
        warp = int(self.issued @ lengths)
        missed = sum(n * assembled.length(i) for i, n in self.missed.items())
        thread = int(self.lanes @ lengths) - missed
        done = [
            int(self.lanes @ _operations_of_blocks(self.code, of))
            - sum(n * of(i) for i, n in self.missed.items())
            for of in (float_operations, integer_operations)
        ]
        branches = [b.index for b in self._branches()]
        shared, local, global_ = (self._space(s) for s in ("shared", "local", "global"))
        again = shared["passes"] - shared["requests"]
        replays = sum(s["passes"] + s["idle"] - s["requests"] for s in (local, global_))
        return {
            "warp_instructions": warp,
            "thread_instructions": thread,
            "float_operations": done[0],
            "integer_operations": done[1],
            "issue_slots": warp + again + replays,
            "lane_efficiency": thread / (LANES * warp) if warp else 0.0,
            "branches": int(self.executions[branches].sum()),
            "divergent_branches": int(self.divergent[branches].sum()),
            "loop_iterations": int(self.executions[[b.index for b in blocks if b.latch]].sum()),
            "shared_requests": shared["requests"],
            "shared_passes": shared["passes"],
            "shared_replays": again,
            "bank_conflicts": shared["passes"] - shared["least"],
            "local_requests": local["requests"],
            "local_transactions": local[self.code.rules.transactions],
            "local_sectors": local["sectors"],
            "local_bytes": local["sectors"] << SECTOR_BITS,
            "global_requests": global_["requests"],
            "global_transactions": global_[self.code.rules.transactions],
            "global_sectors": global_["sectors"],
            "global_bytes": global_["sectors"] << SECTOR_BITS,
            "shared_atomics": self._space("shared", ATOMICS)["requests"],
            "global_atomics": self._space("global", ATOMICS)["requests"],
            "barriers": int(self.executions[[b.block for b in self.code.barriers]].sum()),
            **self._caches(),
        }

    def _caches(self) -> dict[str, int | float]:
        if self.geometry.caches is None:
            return {}
        counts = [int(count) for count in self.cache_counts]
        read, written = counts[CacheCount.READ], counts[CacheCount.WRITTEN]
        if not self.code.rules.caches:  # a chip without: all transactions go off the chip
            moved = {
                opcodes: sum(
                    self._space(space, opcodes)["sectors"] for space in ("local", "global")
                )
                for opcodes in (LOADS, STORES, ATOMICS)
            }
            read = moved[LOADS] + moved[ATOMICS]
            written = moved[STORES] + moved[ATOMICS]
        found: dict[str, int | float] = {
            "l1_hit_sectors": counts[CacheCount.L1_HITS],
            "l1_miss_sectors": counts[CacheCount.L1_MISSES],
            "l2_hit_sectors": counts[CacheCount.L2_HITS],
            "l2_miss_sectors": counts[CacheCount.L2_MISSES],
            "dram_read_bytes": read << SECTOR_BITS,
            "dram_write_bytes": written << SECTOR_BITS,
            "dram_bytes": read + written << SECTOR_BITS,
        }
        return found | _hit_percents(found)

    def _branches(self) -> list[BasicBlock]:
        """Blocks that end with a branch, unless it is predicated away."""
        gone = set(self.code.assembled.predicated.values())
        return [
            block for block in self.code.blocks
            if block.ending in ("branch", "switch") and block.index not in gone
        ]  # fmt: skip

    def _space(self, space: str, opcodes: tuple[str, ...] = ()) -> dict[str, int]:
        chosen = [
            s.index
            for s in self.code.sites
            if s.space == space and (not opcodes or s.instruction.opcode in opcodes)
        ]
        found = dict(zip(SITE_FIELDS, map(int, self.sites[chosen].sum(axis=0)), strict=True))
        idle = int(self.idle[chosen].sum())
        found["requests"] += idle
        if space == "shared":  # each takes a pass, as Nsight Compute counts
            found["passes"] += idle
        return {**found, "least": int(self.least[chosen].sum()) + idle, "idle": idle}

    def by_source(self) -> list[dict[str, Any]]:
        """What each line of the source costs: one entry per file and line, in this order, with
        ``SOURCE_COUNTS``. Their sums are the counters of the launch. Instructions of no line have
        an empty file."""
        found: dict[tuple[str, int], dict[str, int]] = {}
        assembled = self.code.assembled

        def at(instruction: Instruction) -> dict[str, int]:
            where = instruction.where
            place = (where.file, where.source_line if where.file else 0)
            return found.setdefault(place, dict.fromkeys(SOURCE_COUNTS, 0))

        for block in self.code.blocks:
            runs, lanes = int(self.issued[block.index]), int(self.lanes[block.index])
            for instruction in assembled.left(block):
                entry, length = at(instruction), assembled.length(instruction)
                entry["warp_instructions"] += runs * length
                entry["thread_instructions"] += lanes * length
        for block in self._branches():
            if block.closing is not None:
                at(block.closing)["branches"] += int(self.executions[block.index])
                at(block.closing)["divergent_branches"] += int(self.divergent[block.index])
        for i, missed in self.missed.items():
            at(i)["thread_instructions"] -= missed * assembled.length(i)
        for site in self.code.sites:
            entry = at(site.instruction)
            counts = dict(zip(SITE_FIELDS, map(int, self.sites[site.index]), strict=True))
            idle = int(self.idle[site.index])
            if site.space == "shared":
                entry["shared_requests"] += counts["requests"] + idle
                entry["shared_passes"] += counts["passes"] + idle
                entry["bank_conflicts"] += counts["passes"] - int(self.least[site.index])
            elif site.space:
                entry[f"{site.space}_requests"] += counts["requests"] + idle
                entry[f"{site.space}_sectors"] += counts["sectors"]
            if site.space:
                entry["issue_slots"] += counts["passes"] - counts["requests"]
        for entry in found.values():
            entry["issue_slots"] += entry["warp_instructions"]
        return [
            {"file": file, "line": line, **entry}
            for (file, line), entry in sorted(found.items())
            if entry["warp_instructions"]
        ]


def combined(parts: Sequence[Mapping[str, int | float]]) -> dict[str, int | float]:
    """The counters of several launches or kernels as those of one."""
    names = dict.fromkeys(name for part in parts for name in part)
    total = {name: sum(part.get(name, 0) for part in parts) for name in names}
    if "lane_efficiency" in total:
        warp = total["warp_instructions"]
        total["lane_efficiency"] = total["thread_instructions"] / (LANES * warp) if warp else 0.0
    return total | _hit_percents(total)


def _hit_percents(counters: Mapping[str, int | float]) -> dict[str, float]:
    """How many of the sectors that were looked up were found, where caches are simulated."""
    found = {}
    for cache in ("l1", "l2"):
        if f"{cache}_hit_sectors" in counters:
            hits, misses = (counters[f"{cache}_{what}_sectors"] for what in ("hit", "miss"))
            found[f"{cache}_hit_percent"] = 100 * hits / (hits + misses) if hits + misses else 0.0
    return found


@functools.lru_cache(maxsize=128)
def _operations_of_blocks(code: Translation, of: Callable[[Instruction], int]) -> NDArray[np.int64]:
    """Operations of one execution of each block by one thread. Kept from launch to launch: they
    take as long to add up as a small launch takes."""
    return np.array([sum(map(of, block.instructions)) for block in code.blocks], np.int64)


FUSED, FLOAT, FLOAT_TYPES, INTEGER = (
    frozenset(FAMILIES[name]) for name in ("fused", "float", "float_types", "integer")
)


def float_operations(instruction: Instruction) -> int:
    """Floating-point operations of one execution by one thread."""
    if FLOAT_TYPES.isdisjoint(instruction.modifiers):
        return 0
    return 2 if instruction.opcode in FUSED else int(instruction.opcode in FLOAT)


def integer_operations(instruction: Instruction) -> int:
    """1 for an integer or logic instruction, else 0. Logic of predicates is none."""
    if instruction.opcode not in INTEGER or "pred" in instruction.modifiers:
        return 0
    return int(FLOAT_TYPES.isdisjoint(instruction.modifiers))
