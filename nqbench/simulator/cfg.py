"""Control flow: basic blocks in loop-nested topological order, one synthetic latch per loop.

A warp always runs its earliest non-empty block. With loop bodies contiguous and loop exits after
them, lanes that leave a branch or a loop early wait where the others will come by, which is where
a GPU lets them meet again (the immediate post-dominator, or earlier). All jumps back to a loop's
head go through a latch placed last in the loop: without it, lanes that ``continue`` early would
start the next iteration alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from nqbench.simulator.ptx import Instruction, Label, Name, PtxKernel, UnsupportedPtx, Vector

Ending = Literal["jump", "branch", "switch", "exit", "barrier"]


@dataclass(slots=True, eq=False)
class BasicBlock:
    """A basic block.

    ``targets``  jump: (next,); branch: (taken, otherwise); switch: the table; barrier: (next,)
    ``closing``  the branch, switch, exit or barrier instruction (also counted in the block)
    ``latch``    synthetic, without instructions
    ``gathers``  starts with a collective that waits for its member lanes
    """

    index: int = -1
    instructions: list[Instruction] = field(default_factory=list)
    ending: Ending = "jump"
    targets: list[BasicBlock] = field(default_factory=list)
    closing: Instruction | None = None
    latch: bool = False
    gathers: bool = False

    @property
    def code(self) -> list[Instruction]:
        """All instructions of the block, the closing one included."""
        return self.instructions if self.closing is None else [*self.instructions, self.closing]


BARRIER_OPCODES = ("bar", "barrier")


def is_barrier(instruction: Instruction) -> bool:
    """Whether the instruction waits for other warps of the block."""
    return instruction.opcode in BARRIER_OPCODES and not {"warp", "arrive"} & {
        *instruction.modifiers
    }


def is_collective(instruction: Instruction) -> bool:
    """Whether the instruction waits for member lanes of its own warp."""
    if instruction.opcode in BARRIER_OPCODES:
        return "warp" in instruction.modifiers
    return instruction.opcode in ("shfl", "vote", "match", "redux", "elect") and (
        "sync" in instruction.modifiers
    )


def build(kernel: PtxKernel) -> list[BasicBlock]:
    """The kernel's blocks in execution order; ``blocks[i].index == i`` and ``blocks[0]`` enters."""
    entry = _Splitter(kernel).run()
    reachable: dict[BasicBlock, None] = {entry: None}
    stack = [entry]
    while stack:
        for target in stack.pop().targets:
            if target not in reachable:
                reachable[target] = None
                stack.append(target)
    ordered = _order(list(reachable), entry)
    for index, block in enumerate(ordered):
        block.index = index
    return ordered


class _Splitter:
    def __init__(self, kernel: PtxKernel) -> None:
        self.kernel = kernel
        self.labels = {item.name: BasicBlock() for item in kernel.body if isinstance(item, Label)}
        self.leave = BasicBlock(ending="exit")
        self.current = BasicBlock()

    def run(self) -> BasicBlock:
        """The first block."""
        entry = self.current
        for item in self.kernel.body:
            if isinstance(item, Label):
                self._go_on(self.labels[item.name])
            elif is_collective(item):
                if self.current.instructions:  # its own block: it waits for its members
                    self._go_on(BasicBlock())
                self.current.gathers = True
                self.current.instructions.append(item)
                self._go_on(BasicBlock())
            elif not self._closes(item):
                self.current.instructions.append(item)
        if not self.current.targets and self.current.ending == "jump":
            self.current.ending = "exit"
        return entry

    def _go_on(self, into: BasicBlock) -> None:
        """Continue in another block, which the current one falls into."""
        if not self.current.targets and self.current.ending == "jump":
            self.current.targets = [into]
        self.current = into

    def _closes(self, item: Instruction) -> bool:
        """Whether the instruction ended the current block; then another one is current."""
        block, following = self.current, BasicBlock()
        if item.opcode == "bra":
            label = item.operands[0] if item.operands else None
            if not isinstance(label, Name):
                raise UnsupportedPtx("a branch without a label", item.where)
            self._branch(block, item, self._target(label.name, item), following)
        elif item.opcode in ("ret", "exit"):
            self._branch(block, item, None, following)
        elif item.opcode == "brx":
            if item.guard is not None:
                raise UnsupportedPtx("predicated brx", item.where)
            block.ending = "switch"
            block.targets = [self._target(name, item) for name in _table(self.kernel, item)]
        elif is_barrier(item):
            block.ending, block.targets = "barrier", [following]
        else:
            return False
        block.closing = item
        self.current = following
        return True

    def _branch(
        self, block: BasicBlock, item: Instruction, target: BasicBlock | None, following: BasicBlock
    ) -> None:
        if item.guard is not None:
            block.ending, block.targets = "branch", [target or self.leave, following]
        elif target is None:
            block.ending = "exit"
        else:
            block.targets = [target]

    def _target(self, name: str, at: Instruction) -> BasicBlock:
        if name not in self.labels:
            raise UnsupportedPtx(f"jump to {name}, which does not exist", at.where)
        return self.labels[name]


def _table(kernel: PtxKernel, branch: Instruction) -> Iterable[str]:
    table = branch.operands[-1]
    if isinstance(table, Vector):
        return [item.name for item in table.items if isinstance(item, Name)]
    if isinstance(table, Name) and table.name in kernel.targets:
        return kernel.targets[table.name]
    raise UnsupportedPtx("an indexed branch without a table", branch.where)


def _order(nodes: Iterable[BasicBlock], entry: BasicBlock) -> list[BasicBlock]:
    """Topological order of ``nodes`` with every loop contiguous and closed by its latch."""
    inside = set(nodes)
    ordered: list[BasicBlock] = []
    for component in reversed(_components(inside, entry)):
        loops = len(component) > 1 or component[0] in component[0].targets
        if not loops:
            ordered.append(component[0])
            continue
        members = set(component)
        # A loop with several entries (not from structured code) takes the first found.
        entries = {entry} | {t for b in inside - members for t in b.targets}
        head = entry if entry in members else next(b for b in component[::-1] if b in entries)
        latch = BasicBlock(latch=True, targets=[head])
        for block in component:
            block.targets = [latch if target is head else target for target in block.targets]
        ordered += [*_order(component, head), latch]
    return ordered


def _components(inside: set[BasicBlock], entry: BasicBlock) -> list[list[BasicBlock]]:
    """Strongly connected components in reverse topological order (Tarjan, without recursion)."""
    number: dict[BasicBlock, int] = {entry: 0}
    low: dict[BasicBlock, int] = {entry: 0}
    path, on_path = [entry], {entry}
    work = [(entry, iter([t for t in entry.targets if t in inside]))]
    found: list[list[BasicBlock]] = []
    while work:
        block, targets = work[-1]
        for target in targets:
            if target not in number:
                number[target] = low[target] = len(number)
                path.append(target)
                on_path.add(target)
                work.append((target, iter([t for t in target.targets if t in inside])))
                break
            if target in on_path:
                low[block] = min(low[block], number[target])
        else:
            work.pop()
            if work:
                low[work[-1][0]] = min(low[work[-1][0]], low[block])
            if low[block] == number[block]:
                cut = path.index(block)
                component, path = path[cut:], path[:cut]
                on_path -= set(component)
                found.append(component[::-1])
    return found


def skipping(blocks: list[BasicBlock]) -> dict[int, list[tuple[int, int]]]:
    """Ways past a barrier of the whole block: jumps from code that may still reach it to code
    behind it. By the barrier's basic block; a way to the kernel's end alone is none."""
    found = {}
    for barrier in blocks:
        closing = barrier.closing
        if barrier.ending != "barrier" or closing is None:
            continue
        if len(closing.operands) > (3 if "red" in closing.modifiers else 1):
            continue  # it is for a given number of threads
        behind = _ahead(blocks, barrier.targets[0].index, None)
        ahead = _ahead(blocks, 0, barrier.index)
        ways = [
            (source, target.index)
            for source in sorted(ahead - behind - {barrier.index})
            for target in dict.fromkeys(blocks[source].targets)
            if target.index in behind
            and target.index > source
            and (target.instructions or target.ending != "exit")
        ]
        if ways:
            found[barrier.index] = ways
    return found


def _ahead(blocks: list[BasicBlock], start: int, closed: int | None) -> set[int]:
    """Blocks that a lane may reach without starting a loop anew, and not through ``closed``."""
    found = {start}
    for index in range(start, len(blocks)):
        if index in found and index != closed:
            found |= {t.index for t in blocks[index].targets if t.index > index}
    return found
