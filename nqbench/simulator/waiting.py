"""Which accesses wait for other threads, as far as the code itself tells: for the checked mode."""

from __future__ import annotations

from collections.abc import Collection

from nqbench.simulator import ptx
from nqbench.simulator.cfg import BasicBlock
from nqbench.simulator.liveness import by_register, results, targets
from nqbench.simulator.ptx import Immediate, Instruction

STRONG = frozenset({"relaxed", "acquire", "release", "mmio"})


def changes(i: Instruction) -> bool:
    """Whether an instruction writes memory; ``atomicAdd(p, 0)`` only asks."""
    asks = i.opcode == "atom" and not {"add", "or", "xor"}.isdisjoint(i.modifiers)
    return i.opcode in ("st", *ptx.ATOMICS) and not (asks and i.operands[-1] == Immediate(0))


def waits(blocks: list[BasicBlock], variables: Collection[str]) -> list[set[Instruction]]:
    """Reads that are tried again until the value is right, so that one which comes late does no
    harm; accesses after which a thread relies on what others did before: the read that a loop
    waits with, a lock that is taken, a counter of which one number matters; and volatile accesses
    to the variables of these."""
    made, users = by_register(blocks)
    loops = [blocks[b.targets[0].index : b.index] for b in blocks if b.latch]
    code = [(b, i) for b in blocks for i in b.instructions if i.opcode in ("ld", "atom")]
    inside = (i for loop in loops for b in loop for i in b.instructions)
    looped = {_place(i) for i in inside if i.opcode == "atom"}
    swapped = {i.operands[1] for _, i in code if "cas" in i.modifiers}
    retried, awaited = set[object](), set[object]()
    for block, i in code:
        strong = i.opcode == "atom" or not {"volatile", *STRONG}.isdisjoint(i.modifiers)
        if not strong and i.operands[1] not in swapped:
            continue
        felt, pending = set[Instruction](), results(i)
        while pending:  # to where its value comes, but through memory
            more = set(users.get(pending.pop(), ())) - felt
            felt |= more
            pending += [r for u in more if u.opcode not in ("ld", "atom") for r in results(u)]
        left = [loop for loop in loops if strong and block in loop and _leaves(loop, felt)]
        if "cas" in i.modifiers:  # a lock; else it guesses what is there
            expected = [w for r in ptx.registers(i.operands[2]) for w in made.get(r, ())]
            awaits = all(
                w.opcode == "mov" and isinstance(w.operands[1], Immediate) for w in expected
            )
        elif changes(i) and _place(i) in looped:  # it may take any job, one after the other
            awaits = any(_compares(u) for r in results(i) for u in users.get(r, ()))
        elif changes(i):
            awaits = any(
                _compares(u) or u.opcode == "shfl" or "shared" in u.modifiers for u in felt
            )
        else:
            awaits = any(_only_waits(loop, i) for loop in left)
            if left or any("cas" in u.modifiers and u.operands[1] == i.operands[1] for u in felt):
                retried.add(_place(i))
        awaited |= {_place(i)} if awaits else set()
    every = [i for _, i in code]
    again, relied = ({i for i in every if _place(i) in of} for of in (retried, awaited))
    of = targets(blocks, variables)
    flags = {of[i] for i in relied & of.keys()}
    return [again, relied, {i for i in of if of[i] in flags and "volatile" in i.modifiers}]


def _place(i: Instruction) -> object:
    """Line and address, which the copy of a loop's first turn before the loop has, too."""
    return i.where.file, i.where.source_line, i.operands[1]


def _compares(i: Instruction) -> bool:
    return i.opcode == "setp" and not {"eq", "ne"}.isdisjoint(i.modifiers)


def _leaves(loop: list[BasicBlock], felt: set[Instruction]) -> bool:
    """Whether a branch out of the loop is among these."""
    inside = range(loop[0].index, loop[-1].index + 2)
    return any(b.closing in felt and any(t.index not in inside for t in b.targets) for b in loop)


def _only_waits(loop: list[BasicBlock], i: Instruction) -> bool:
    """Whether a loop writes no memory, and reads the same place each time."""
    inside, place = [u for b in loop for u in b.instructions], ptx.registers(i.operands[1])
    return not any(changes(u) or set(place) & {*results(u)} for u in inside)
