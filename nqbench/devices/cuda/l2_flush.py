"""A buffer that displaces everything else from the L2 cache when it is written."""

from __future__ import annotations

from typing import Any, Final

from nqbench.errors import DeviceError

FLUSH_TIMES: Final = 2
"""Bytes written to empty an L2 cache, over its size: caches place lines by a hash of the address
and replace them by approximate age, so that one pass over the size leaves some of the old lines."""


class L2Flush:
    """Empties the L2 cache. Raises ``DeviceError`` if its size is unknown or memory is short."""

    def __init__(self, cuda: Any, spec: str, l2_bytes: int) -> None:
        if l2_bytes <= 0:
            raise DeviceError(
                f"{spec} does not report the size of its L2 cache, so it cannot be flushed;"
                " measure with l2: hot"
            )
        self._cuda = cuda
        self.nbytes = FLUSH_TIMES * l2_bytes
        try:
            self._buffer = cuda.mem_alloc(self.nbytes)
        except cuda.MemoryError as error:
            raise DeviceError(
                f"{spec} has no {self.nbytes} bytes of memory left for flushing its L2 cache;"
                " measure with l2: hot, or a smaller configuration"
            ) from error

    def queue(self) -> None:
        """Write the buffer, in the order of the stream and without waiting."""
        self._cuda.memset_d8(self._buffer, 0, self.nbytes)
