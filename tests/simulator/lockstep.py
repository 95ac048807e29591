"""A warp in lock step, in plain Python: what the counters of nested loops must be.

32 lanes, structured control flow; lanes that leave a branch or a loop wait for the others where
the structure ends.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

Lanes = frozenset[int]


@dataclass
class Warp:
    """Counts loop iterations per loop and splits per branch."""

    iterations: dict[str, int] = field(default_factory=dict)
    splits: dict[str, int] = field(default_factory=dict)

    def branch(self, name: str, lanes: Lanes, test: Callable[[int], bool]) -> tuple[Lanes, Lanes]:
        """Lanes for which the test holds, and the others."""
        yes = frozenset(t for t in lanes if test(t))
        if yes and yes != lanes:
            self.splits[name] = self.splits.get(name, 0) + 1
        return yes, lanes - yes

    def again(self, name: str) -> None:
        """One more iteration of a loop by at least one lane."""
        self.iterations[name] = self.iterations.get(name, 0) + 1


def wrap(value: int) -> int:
    value &= 0xFFFFFFFF
    return value - (1 << 32) if value >> 31 else value


def remainder(a: int, b: int) -> int:
    """C's ``%``: the sign of the dividend."""
    return -(-a % b) if a < 0 else a % b


def nested(values: list[int], rounds: int) -> tuple[list[int], Warp]:
    """``nested`` of ``flow.cu`` for one warp, with ``break`` and the loop's bound tested apart."""
    warp, total = Warp(), list(values)
    everyone: Lanes = frozenset(range(32))

    def odd(i: int) -> Callable[[int], bool]:
        return lambda t: (total[t] ^ i) & 1 == 1

    def within(j: int) -> Callable[[int], bool]:
        return lambda t: j < t % 7

    for i in range(rounds):
        skip, rest = warp.branch("odd", everyone, odd(i))
        for t in skip:
            total[t] = wrap(total[t] + 3)
        inside, j = rest, 0
        inside, _ = warp.branch("bound", inside, within(0))
        while inside:
            _, inside = warp.branch("break", inside, lambda t: remainder(total[t], 5) == 0)
            for t in inside:
                total[t] = wrap(total[t] * 3 + j)
            j += 1
            inside, _ = warp.branch("bound", inside, within(j))
            if inside:
                warp.again("inner")
        for t in rest:
            total[t] = wrap(total[t] ^ i)
        if i + 1 < rounds:
            warp.again("outer")
    return total, warp
