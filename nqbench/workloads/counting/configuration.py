"""One kernel configuration and the numbers that follow from it: words, bytes, template instance.

The word counts repeat what ``frame.cuh`` computes at compile time; the tests compare them with the
shared memory that the compiler reports.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, cast

from nqbench.plan import CachePreference
from nqbench.point import Level
from nqbench.workloads.counting.factors import CUDA_NAMES, MAX_BOARD, NOT_APPLICABLE
from nqbench.workloads.counting.jobs import ODD_RULES, Encoding, OddRule, Symmetry, words_per_job
from nqbench.workloads.counting.probe import PROBES, UNPROBED

WORD: Final = 4
_TOTAL: Final = 8
_QUANTITIES: Final = 4
_WARP: Final = 32


@dataclass(frozen=True, slots=True)
class Configuration:
    """Resolved factors with their types. ``None`` stands for a factor that does not apply."""

    n: int
    depth: int
    memory: str
    rows: str
    allocation: str
    storage: str
    layout: str
    loop: str
    assignment: str
    encoding: Encoding
    cache: CachePreference
    symmetry: Symmetry
    block_size: int
    blocks: Level
    pool_size: int | None
    jobs_per_thread: int | None
    max_board: int | None
    probe: str

    @classmethod
    def from_levels(cls, levels: Mapping[str, Level]) -> Configuration:
        """Typed view of factor levels in which nothing is missing or ``auto``."""

        def number(name: str) -> int | None:
            level = levels[name]
            return None if level == NOT_APPLICABLE else cast(int, level)

        def word(name: str) -> str:
            return cast(str, levels[name])

        return cls(
            n=cast(int, levels["n"]),
            depth=cast(int, levels["depth"]),
            memory=word("memory"),
            rows=word("rows"),
            allocation=word("allocation"),
            storage=word("storage"),
            layout=word("layout"),
            loop=word("loop"),
            assignment=word("assignment"),
            encoding=cast(Encoding, levels["encoding"]),
            cache=cast(CachePreference, levels["cache"]),
            symmetry=cast(Symmetry, levels["symmetry"]),
            block_size=cast(int, levels["block_size"]),
            blocks=levels["blocks"],
            pool_size=number("pool_size"),
            jobs_per_thread=number("jobs_per_thread"),
            max_board=number("max_board"),
            probe=word("probe"),
        )

    @property
    def rows_reserved(self) -> int:
        """Board rows that a thread's arrays hold."""
        if self.rows == "max":
            return self.max_board or MAX_BOARD
        return self.n if self.rows == "n" else self.n - self.depth

    @property
    def stack_extra(self) -> int:
        """Words by which feinbube2010 Listings 4 to 6 make the stack longer than the masks."""
        listed = self.loop == "somers" and self.rows == "max"
        return 2 if listed and self.storage not in ("chunk", "struct") else 0

    @property
    def words_per_block(self) -> int:
        """32-bit words of shared or global work space per block (0 for local memory)."""
        if self.memory == "local":
            return 0
        arrays = self.storage == "arrays"
        own = self.rows_reserved * (1 if arrays else _QUANTITIES)
        section = (own | 1 if self.layout == "padded" else own) * self.block_size
        sections = _QUANTITIES if arrays and self.memory != "shared_stack" else 1
        return sections * section + self.stack_extra * self.block_size

    @property
    def words_per_thread(self) -> int:
        """32-bit words of work space of one thread, wherever they are, padding included."""
        rows = self.rows_reserved
        local_rows = {"local": _QUANTITIES, "shared_stack": _QUANTITIES - 1}.get(self.memory, 0)
        local = local_rows * rows + (self.stack_extra if self.memory == "local" else 0)
        return local + self.words_per_block // self.block_size

    @property
    def _uses_shared(self) -> bool:
        return self.memory in ("shared", "shared_stack")

    @property
    def static_shared_bytes(self) -> int:
        """Shared memory the kernel declares: work space, pool index, sums of a block's warps."""
        words = self.words_per_block if self._uses_shared and self.allocation == "static" else 0
        words += self.assignment == "block_pool"
        warps = -(-self.block_size // _WARP)
        if self.loop in ("branchy", "irrc") and warps > 1:
            return -(-words * WORD // _TOTAL) * _TOTAL + warps * _TOTAL
        return words * WORD

    @property
    def dynamic_shared_bytes(self) -> int:
        """Shared memory asked for at launch."""
        dynamic = self._uses_shared and self.allocation == "dynamic"
        return self.words_per_block * WORD if dynamic else 0

    @property
    def shared_bytes(self) -> int:
        """Shared memory per block, static and dynamic."""
        return self.static_shared_bytes + self.dynamic_shared_bytes

    @property
    def scratch_bytes_per_block(self) -> int:
        """Global work space per block."""
        return self.words_per_block * WORD if self.memory == "global" else 0

    @property
    def odd_rule(self) -> OddRule:
        """How jobs treat the middle column of an odd board."""
        return ODD_RULES[self.encoding]

    @property
    def bytes_per_job(self) -> int:
        """Size of one encoded job."""
        return WORD * words_per_job(self.encoding, self.depth)

    @property
    def entry(self) -> str:
        """Name expression of the kernel instance."""
        arguments = [str(self.n), str(self.depth), str(self.block_size)]
        arguments.append(str(self.max_board or MAX_BOARD))
        for factor, (enumeration, renamed) in CUDA_NAMES.items():
            level = str(getattr(self, factor))
            name = "none" if level == NOT_APPLICABLE else renamed.get(level, level)
            arguments.append(f"{enumeration}::{name}")
        policy = f"Policy<{', '.join(arguments)}>"
        if self.probe == UNPROBED:
            return f"nqueens<{policy}>"
        return f"nqueens_probed<{policy}, {PROBES[self.probe].struct}>"
