"""Whether the limits of this process leave room for the libraries that nqbench loads."""

from __future__ import annotations

import mmap
from typing import Final

from nqbench.errors import DeviceUnavailable

ROOM_BYTES: Final = 700 << 20
"""Address space that a run in the simulator with its report takes (seen with two threads: with
0.67 GB it hung, with 0.77 it ended well). With less, OpenBLAS asks for its buffers for ever
while it loads, LLVM and the compiler abort, and the loader cannot map a file."""

LIST_BYTES: Final = 160 << 20
"""The same for commands that list and compute nothing: they load numpy. With 0.11 GB OpenBLAS ends
them by the signal of Ctrl-C, which it raises where it cannot start a thread; 0.16 are enough."""


def check_room(room_bytes: int = ROOM_BYTES) -> None:
    """Raise ``DeviceUnavailable`` where a limit (``ulimit -v``, ``ulimit -d``, no overcommitment)
    leaves less than ``room_bytes``. Reserves them for a moment and touches none."""
    try:
        mmap.mmap(-1, room_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS).close()
    except OSError as error:
        raise DeviceUnavailable(
            f"there is not enough memory: nqbench loads libraries that need {room_bytes >> 20} MB"
            " of address space, and a limit leaves less; raise ulimit -v and ulimit -d, or close"
            " programs"
        ) from error
