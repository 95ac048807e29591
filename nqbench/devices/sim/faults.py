"""Faults that the generated code can find, and the sentence each becomes."""

from __future__ import annotations

from enum import IntEnum


class Fault(IntEnum):
    """Kinds of fault, as recorded in the context."""

    NONE = 0
    OUT_OF_BOUNDS = 1
    MISALIGNED = 2
    UNWRITTEN = 3
    DIVISION = 4
    BARRIER_SPLIT = 5
    STUCK = 6
    MEMBERS = 7
    INACTIVE_SOURCE = 8
    TRAP = 9
    BARRIER_COUNT = 10
    SPACE = 11


TEXT = {
    Fault.OUT_OF_BOUNDS: "access outside every buffer",
    Fault.MISALIGNED: "misaligned access",
    Fault.UNWRITTEN: "reads shared memory that was never written",
    Fault.DIVISION: "integer division by zero",
    Fault.BARRIER_SPLIT: "lanes of one warp wait at different bar.sync instructions",
    Fault.STUCK: "deadlock",
    Fault.MEMBERS: "a lane is not in the member mask of its own .sync instruction",
    Fault.INACTIVE_SOURCE: "reads the value of a lane that does not take part",
    Fault.TRAP: "trap",
    Fault.BARRIER_COUNT: "bad number of threads for a barrier",
    Fault.SPACE: "address outside the memory space of the instruction",
}
