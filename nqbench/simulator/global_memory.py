"""The simulated global memory: buffers and kernels' own variables."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from nqbench.errors import DeviceError
from nqbench.facts import SIMULATED_BYTES
from nqbench.plan import Buffer, Kernel
from nqbench.simulator.layout import GLOBAL_BASE, PAGE_BITS, UNDEFINED_WORD, align, pages
from nqbench.simulator.translation import Translation

NEAR: Final = 1 << 16
"""Bytes: an address this close to a buffer is described by it."""

GRID_SYNC: Final = Buffer("(grid sync)", "uint32", 16, zero=True)
"""What the blocks of a cooperative launch wait by."""


PARAMETERS: Final = "(parameters)"
"""A copy of a kernel's parameters, for kernels that take their address."""


def with_own(
    buffers: tuple[Buffer, ...], kernels: Iterable[Kernel], codes: Iterable[Translation]
) -> tuple[Buffer, ...]:
    """The buffers of a plan, and those that its kernels need besides."""
    own = [GRID_SYNC] if any(kernel.cooperative for kernel in kernels) else []
    copies = [c.kernel.parameter_bytes for c in codes if c.mentions(*c.kernel.parameters)]
    if copies:
        own.append(Buffer(PARAMETERS, "uint8", max(copies), zero=True))
    return (*buffers, *own)


@dataclass(frozen=True, slots=True)
class BufferSpan:
    """Where a buffer lies in simulated memory: offsets from ``GLOBAL_BASE``."""

    name: str
    low: int
    high: int


class GlobalMemory:
    """All buffers and the kernel's own variables in one flat space, with empty pages between.

    Where several kernels share the buffers (``others``), the variables of each start at the same
    place, as those of a module do; ``use`` says whose are there.
    """

    def __init__(
        self, code: Translation, buffers: tuple[Buffer, ...], *others: Translation
    ) -> None:
        self.dtypes = {b.name: b.dtype for b in buffers}
        modules = [p.symbols.module for p in (code, *others)]
        first = max(1 + sum(pages(v.nbytes) for v in module) for module in modules)
        placed, end = _placed(first, [(b.name, b.nbytes) for b in buffers])
        if end << PAGE_BITS > SIMULATED_BYTES:
            raise DeviceError(
                f"the plan's buffers take {sum(b.nbytes for b in buffers):,} bytes; the simulator"
                f" has {SIMULATED_BYTES:,}. Use fewer threads or a smaller problem"
            )
        self.data = np.zeros(end << PAGE_BITS, np.uint8)
        self.low = np.zeros(end, np.int64)
        self.high = np.zeros(end, np.int64)
        self.known = np.ones(len(self.data), np.uint8) if code.watched else None
        """In the checked mode: whether each byte was written, by a kernel or by a copy."""
        self.first_thread = 1  # number of the next launch's first thread
        self.by_name = {span.name: span for span in placed}
        for span in placed:
            self._open(span)
        self._first = first
        self._left: dict[int, NDArray[np.uint8]] = {}
        self._install(code)
        self.renew_module()

    @property
    def spans(self) -> list[BufferSpan]:
        """Everything in memory: the kernel's own variables, then the buffers."""
        return [*self._module_spans, *self.by_name.values()]

    def near(self, address: int) -> tuple[str, str]:
        """The buffer that an address is in or near, and where it is: ``8 bytes beyond the end of
        buffer 'jobs' of 96 bytes``; both empty if no buffer is near."""
        offset = address - GLOBAL_BASE
        for span in self.spans:
            beyond, before = offset - span.high, span.low - offset
            if beyond >= NEAR or before >= NEAR // 2:
                continue
            where = f"byte {-before} of" if beyond < 0 else "right beyond the end of"
            where = f"{beyond} bytes beyond the end of" if beyond > 0 else where
            where = f"{before} bytes before" if before > 0 else where
            return span.name, f"{where} buffer {span.name!r} of {span.high - span.low} bytes"
        return "", ""

    def _open(self, span: BufferSpan) -> None:
        covered = _covered(span)
        self.low[covered], self.high[covered] = span.low, span.high

    def show(self, name: str) -> None:
        """Let kernels reach a buffer again."""
        self._open(self.by_name[name])

    def hide(self, name: str) -> None:
        """Make every access to a buffer one outside of all buffers, as after its release."""
        covered = _covered(self.by_name[name])
        self.low[covered] = self.high[covered] = 0

    def _install(self, code: Translation) -> None:
        self.module = code.symbols.module
        self._module_spans, _ = _placed(1, [(v.name, v.nbytes) for v in self.module])
        self.low[: self._first] = self.high[: self._first] = 0
        for span in self._module_spans:
            self._open(span)

    def use(self, code: Translation) -> None:
        """Put another kernel's own variables in place, as its last launch left them."""
        if code.symbols.module is self.module:
            return
        space = self.data[: self._first << PAGE_BITS]
        self._left[id(self.module)] = space.copy()
        self._install(code)
        left = self._left.get(id(self.module))
        if left is None:
            self._initialise()
        else:
            space[:] = left

    def renew_module(self) -> None:
        """Give the variables of every kernel their initial values. (A GPU does this when it loads
        the module; here every launch of a plan starts the same.)"""
        self._left.clear()
        self._initialise()

    def _initialise(self) -> None:
        for span, variable in zip(self._module_spans, self.module, strict=True):
            memory = self.data[span.low : span.high]
            memory[:] = 0
            memory[: len(variable.initial)] = np.frombuffer(variable.initial, np.uint8)

    def bytes_of(self, name: str) -> NDArray[np.uint8]:
        """A buffer's memory."""
        span = self.by_name[name]
        return self.data[span.low : span.high]

    def variable(self, symbol: str) -> NDArray[np.uint8]:
        """The memory of a module variable of the kernel that ran last."""
        names = [variable.name for variable in self.module]
        span = self._module_spans[names.index(symbol)]
        return self.data[span.low : span.high]

    def address(self, name: str) -> int:
        """A buffer's simulated address."""
        return GLOBAL_BASE + self.by_name[name].low

    def fill(self, name: str, data: NDArray[Any], dtype: str) -> None:
        """Copy an array into the start of a buffer."""
        raw = np.ascontiguousarray(data, dtype=dtype).reshape(-1).view(np.uint8)
        self.bytes_of(name)[: len(raw)] = raw
        self._know(name, 1, len(raw))

    def clear(self, name: str) -> None:
        """Set every byte of a buffer to zero."""
        self.bytes_of(name)[:] = 0
        self._know(name, 1)

    def _know(self, name: str, known: int, nbytes: int | None = None) -> None:
        """Note whether (the first bytes of) a buffer have contents."""
        if self.known is not None:
            span = self.by_name[name]
            high = span.high if nbytes is None else span.low + nbytes
            self.known[span.low : high] = known

    def begin(self, buffers: Iterable[Buffer], *, again: bool = False) -> None:
        """Contents before the first launch: the data, zeros, or what looks wrong; ``again``: with
        what a second launch has in its place."""
        for buffer in buffers:
            if buffer.data is not None:
                self.fill(buffer.name, buffer.placed(self.address, buffer.data), buffer.dtype)
            elif not buffer.zero:
                self.undefine(buffer.name, buffer.fill(again=True) if again else UNDEFINED_WORD)

    def undefine(self, name: str, word: int = UNDEFINED_WORD) -> None:
        """Fill a buffer with what a kernel must not read."""
        self._know(name, 0)
        span = self.by_name[name]  # no other buffer lies in its last page
        self.data[span.low : align(span.high, 4)].view(np.uint32)[:] = word

    def renew(self, buffers: tuple[Buffer, ...]) -> None:
        """Contents before every launch: what is ``zero`` or ``restore``."""
        for buffer in buffers:
            if buffer.zero:
                self.clear(buffer.name)
            elif buffer.restore and buffer.data is not None:
                self.fill(buffer.name, buffer.placed(self.address, buffer.data), buffer.dtype)

    def outputs(self, buffers: tuple[Buffer, ...]) -> dict[str, NDArray[Any]]:
        """Copies of the output buffers."""
        return {b.name: self.bytes_of(b.name).view(b.dtype).copy() for b in buffers if b.output}


def _placed(page: int, sizes: list[tuple[str, int]]) -> tuple[list[BufferSpan], int]:
    """Consecutive places from a page on, and the first page behind them."""
    spans = []
    for name, nbytes in sizes:
        low = page << PAGE_BITS
        spans.append(BufferSpan(name, low, low + nbytes))
        page += pages(nbytes)
    return spans, page


def _covered(span: BufferSpan) -> slice:
    return slice(span.low >> PAGE_BITS, -(-span.high // (1 << PAGE_BITS)))
