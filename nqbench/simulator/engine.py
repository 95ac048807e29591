"""Runs a kernel: resident blocks, counts, the loop around the native code."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from nqbench.errors import DeviceError
from nqbench.plan import with_addresses
from nqbench.simulator.codegen.caches import CONTENDED, L1_WAYS, L2_WAYS, set_bytes
from nqbench.simulator.codegen.caches import CacheCount as CacheCount
from nqbench.simulator.codegen.kernel import BLOCK_STRIDE
from nqbench.simulator.codegen.watch import Field
from nqbench.simulator.codegen.writer import SITE_FIELDS
from nqbench.simulator.global_memory import GRID_SYNC, PARAMETERS, GlobalMemory
from nqbench.simulator.ir import LANES
from nqbench.simulator.layout import (
    CACHE_LINE,
    PRINT_RECORD,
    UNWRITTEN_BYTE,
    BlockSlot,
    Context,
    LaunchShape,
    Outcome,
    align,
)
from nqbench.simulator.ptx import ATOMICS
from nqbench.simulator.rules import LINE_BITS
from nqbench.simulator.sanitizer import LaunchWatch
from nqbench.simulator.translation import Translation

STEPS_PER_SLICE: Final = 1 << 20
"""Loop iterations between two looks at the clock and at Ctrl-C: about a tenth of a second."""
WATCHED_SLICE: Final = 1 << 16
"""The same in the checked mode, which also looks whether anything changes any more."""

IDLE_WORK: Final = 1 << 28
"""Loop iterations, and ``POLL_WORK`` for each strong access, without a change in memory or at a
barrier after which a launch counts as endless: less than 10 s. Warps that wait without counting how
often are found out earlier: all is again as it was."""
POLL_WORK: Final = 128

MAX_COUNT_BYTES: Final = 1 << 31
"""Of counters, where every warp of the grid has its own: some 700,000 warps."""

PRINT_ROOM: Final = 4096
"""Calls of ``printf`` in a launch whose text is kept."""


class SimLaunch:
    """One launch, or several of the same kernel in a row: its state, its counters.

    With ``per_warp`` every warp of the grid has counters of its own.
    """

    def __init__(
        self, code: Translation, memory: GlobalMemory, parameters: bytes, geometry: LaunchShape, *,
        per_warp: bool = False,
    ) -> None:  # fmt: skip
        self.code = code
        self.memory = memory
        self.geometry = g = geometry
        layout = code.layout
        self.context = np.zeros(len(Context) + 8, np.int64)
        self.counted_warps = int(np.prod(g.grid)) * g.warps if per_warp else 1
        self.block_stride = len(code.blocks) * BLOCK_STRIDE
        self.site_stride = max(len(code.sites), 1) * 8 * len(SITE_FIELDS)
        if self.counted_warps * (self.block_stride + self.site_stride) > MAX_COUNT_BYTES:
            raise DeviceError(
                f"{self.counted_warps} warps are too many to keep counters of each, which the"
                " modelled time needs; use a smaller board, fewer jobs or fewer blocks"
            )
        self._arrays: list[NDArray[Any]] = []
        self.block_counts = self._zeros(
            Context.BLOCK_COUNTS, self.counted_warps * self.block_stride
        )
        self.site_counts = self._zeros(Context.SITE_COUNTS, self.counted_warps * self.site_stride)
        self.parameters = self._zeros(Context.PARAMETERS, len(parameters) + 8)
        self.parameters[: len(parameters)] = np.frombuffer(parameters, np.uint8)
        stride = align(g.threads, LANES)
        indices = self._zeros(Context.THREAD_INDICES, 4 * 3 * stride).view(np.int32)
        thread = np.arange(g.threads)
        x, y, _ = g.block
        for row, index in enumerate((thread % x, thread // x % y, thread // (x * y))):
            indices[row * stride : row * stride + g.threads] = index
        self.shared_stride = 2 * align(max(g.shared_bytes, 1))
        self._zeros(Context.SHARED, g.resident_blocks * self.shared_stride)
        self.slot_stride = align(8 * BlockSlot.END)
        self._zeros(Context.SLOTS, g.resident_blocks * self.slot_stride)
        self.warps = self._zeros(Context.WARPS, g.resident_blocks * g.warps * layout.nbytes)
        self.prints = self._zeros(Context.PRINTS, PRINT_ROOM * PRINT_RECORD * code.prints)
        l1, l2 = g.caches or (0, 0)
        sets = (l1 // (L1_WAYS << LINE_BITS), l2 // (L2_WAYS << LINE_BITS))
        self.l1 = self._zeros(Context.L1, g.multiprocessors * sets[0] * set_bytes(L1_WAYS))
        self.l2 = self._zeros(Context.L2, sets[1] * set_bytes(L2_WAYS))
        self.cache_counts = self._zeros(Context.CACHE_COUNTS, 8 * CacheCount.END).view(np.int64)
        atomics = code.rules.timed and any(s.instruction.opcode in ATOMICS for s in code.sites)
        self.contended = self._zeros(Context.CONTENDED, 16 * CONTENDED * atomics).view(np.int64)
        self._describe(stride)
        self.fill_shared(UNWRITTEN_BYTE, known=False)
        self.watch: LaunchWatch | None = None
        self.idle = 0
        """Loop iterations since the last change, if the launch ended for that (checked mode)."""
        if code.watched:
            self.watch = LaunchWatch(code, memory, g)
            self.context[Context.WATCH] = self.watch.header.ctypes.data
            # A warp that waits for ever must not keep the others from running.
            self.context[Context.QUANTUM] = min(g.quantum, WATCHED_SLICE)

    def _zeros(self, field: Context, nbytes: int) -> NDArray[np.uint8]:
        """Zeroed bytes that start on a cache line, as the generated code assumes, and their address
        in the context."""
        raw = np.zeros(nbytes + CACHE_LINE, np.uint8)
        shift = -raw.ctypes.data % CACHE_LINE
        self._arrays.append(raw)
        self.context[field] = raw.ctypes.data + shift
        return raw[shift : shift + nbytes]

    def _describe(self, stride: int) -> None:
        g, m, layout = self.geometry, self.memory, self.code.layout
        values: dict[int, int] = {
            Context.GLOBAL: m.data.ctypes.data,
            Context.PAGE_LOW: m.low.ctypes.data,
            Context.PAGE_HIGH: m.high.ctypes.data,
            Context.PAGES: len(m.low),
            Context.THREAD_STRIDE: stride,
            Context.SHARED_BYTES: g.shared_bytes,
            Context.DYNAMIC_SHARED_BYTES: g.dynamic_shared_bytes,
            Context.WARP_STRIDE: layout.nbytes,
            Context.WARPS_PER_BLOCK: g.warps,
            Context.SLOT_STRIDE: self.slot_stride,
            Context.SLOT_COUNT: g.resident_blocks,
            Context.SHARED_STRIDE: self.shared_stride,
            Context.TOTAL_BLOCKS: int(np.prod(g.grid)),
            Context.THREADS_PER_BLOCK: g.threads,
            Context.QUANTUM: g.quantum,
            Context.REVERSE: int(g.order == "reverse"),
            Context.MULTIPROCESSORS: g.multiprocessors,
            Context.WARP_MASKS: layout.masks,
            Context.WARP_LOCAL: layout.local,
            Context.WARP_LOCAL_BYTES: LANES * layout.local_bytes,
            Context.PRINT_ROOM: len(self.prints) // PRINT_RECORD,
            Context.L1_BYTES: len(self.l1) // g.multiprocessors,
            Context.L2_BYTES: len(self.l2),
        }
        if self.counted_warps > 1:
            values[Context.BLOCK_COUNTS_STRIDE] = self.block_stride
            values[Context.SITE_COUNTS_STRIDE] = self.site_stride
        if PARAMETERS in m.by_name:
            values[Context.PARAMETER_COPY] = m.address(PARAMETERS)
            self._show_parameters()
        if g.cooperative:
            values[Context.GRID_SYNC] = m.address(GRID_SYNC.name)
        for field, number in values.items():
            self.context[field] = number
        self.context[Context.GRID_X : Context.GRID_Z + 1] = g.grid
        self.context[Context.BLOCK_X : Context.BLOCK_Z + 1] = g.block

    def _show_parameters(self) -> None:
        """Copy the parameters to where a kernel that takes their address finds them."""
        if PARAMETERS in self.memory.by_name:
            copy = self.memory.bytes_of(PARAMETERS)
            copy[: len(self.parameters)] = self.parameters[: len(copy)]

    def fill_shared(self, byte: int, *, known: bool) -> None:
        """What shared memory holds when a block starts; ``known``: it may be read."""
        self.context[Context.SHARED_FILL], self.context[Context.SHADOW_FILL] = byte, known

    def again(self, parameters: bytes) -> None:
        """Make ready for another launch; counts continue from where they are."""
        self.parameters[: len(parameters)] = np.frombuffer(parameters, np.uint8)
        self._show_parameters()
        self.l1[:] = self.l2[:] = 0
        self.context[Context.NEXT_BLOCK : Context.PRINTED + 1] = 0

    def counts(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Counts of basic blocks, shape (warps, blocks, ``BLOCK_STRIDE // 8``), and of sites, shape
        (warps, sites, ``len(SITE_FIELDS)``); one row for all warps unless ``per_warp``."""
        blocks = self.block_counts.view(np.int64)
        sites = self.site_counts.view(np.int64)
        rows = self.counted_warps
        return (
            blocks.reshape(rows, -1, BLOCK_STRIDE // 8),
            sites.reshape(rows, -1, len(SITE_FIELDS)),
        )

    def forget(self) -> None:
        """Set all counts to zero."""
        self.block_counts[:] = 0
        self.site_counts[:] = 0
        self.cache_counts[:] = 0
        self.contended[:] = 0

    def go(self, max_steps: int, timeout_s: float | None) -> Outcome:
        """Run to the end, a fault, a deadlock, or (``PAUSE``) a limit."""
        native, context = self.code.native, self.context.ctypes.data
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        slice_ = STEPS_PER_SLICE
        if self.watch is not None:
            self.watch.begin()
            slice_ = WATCHED_SLICE
        native.start(context)
        outcome = Outcome.PAUSE
        waiting = Waiting(self)
        while outcome is Outcome.PAUSE:
            outcome = Outcome(native.run(context, min(slice_, max_steps)))
            self.idle = waiting.steps() if outcome is Outcome.PAUSE else 0
            late = deadline is not None and time.monotonic() > deadline
            if late or self.idle or self.steps >= max_steps:
                break
        return outcome

    @property
    def steps(self) -> int:
        """Turns and loop iterations so far."""
        return int(self.context[Context.STEPS])


class Waiting:
    """Whether a launch in the checked mode goes on without getting anywhere, by what it does and
    not by the clock: how fast this computer is does not matter."""

    def __init__(self, run: SimLaunch) -> None:
        self._run = run
        self._changes = -1
        self._since = self._began = 0
        self._seen: Counter[int] = Counter()

    def steps(self) -> int:
        """Loop iterations since memory or a barrier changed, if nothing will ever change; else 0.

        With the same memory, warps that are as they were become what they became. A first atomic on
        a word may change it unnoticed, the same one again does not.
        """
        run, watch = self._run, self._run.watch
        if watch is None:
            return 0
        changes, polls = (int(watch.header[of]) for of in (Field.CHANGES, Field.POLLS))
        work = run.steps + POLL_WORK * polls
        if changes != self._changes:
            self._changes, self._since, self._began = changes, work, run.steps
            self._seen.clear()
            return 0
        state = hash(run.warps.tobytes())
        self._seen[state] += 1
        ended = self._seen[state] > 2 or work - self._since > IDLE_WORK
        return run.steps - self._began if ended else 0


def parameter_bytes(code: Translation, arguments: tuple[Any, ...], memory: GlobalMemory) -> bytes:
    """The kernel's parameter memory. Raises ``DeviceError`` for a buffer that is not there."""
    found = bytearray(code.kernel.parameter_bytes)
    places = zip(code.kernel.parameters.values(), arguments, strict=True)
    for number, ((offset, nbytes), argument) in enumerate(places, 1):
        if not isinstance(argument, str):
            data = with_addresses(argument, memory.address).tobytes()
        elif argument in memory.by_name:
            data = memory.address(argument).to_bytes(8, "little")
        else:
            raise DeviceError(f"argument {number} names buffer {argument!r}, which is not there")
        found[offset : offset + nbytes] = data
    return bytes(found)
