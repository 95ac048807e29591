"""Do two tools agree about a kernel? Arithmetic and the page that shows it."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

RELATIVE_LIMIT: Final = 0.01
LIMIT_S: Final = 1e-6
"""Two medians agree within 1% or 1 microsecond, whichever is larger: below that, events, launch and
clocks differ from one process to the next anyway."""
SHORTEST_S: Final = 45e-6
LONGEST_S: Final = 1.1
"""Kernels that are compared: 50 microseconds to 1 second, with room for what a timer adds."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """One kernel, timed by both tools in several processes each.

    ``nqbench_s``, ``nvbench_s``  the medians of the processes, in seconds
    """

    name: str
    nqbench_s: tuple[float, ...]
    nvbench_s: tuple[float, ...]

    @property
    def ours_s(self) -> float:
        """Median of nqbench's medians."""
        return statistics.median(self.nqbench_s)

    @property
    def theirs_s(self) -> float:
        """Median of nvbench's medians."""
        return statistics.median(self.nvbench_s)

    @property
    def difference_s(self) -> float:
        """nqbench minus nvbench."""
        return self.ours_s - self.theirs_s

    @property
    def limit_s(self) -> float:
        """How far apart they may be."""
        return max(RELATIVE_LIMIT * self.theirs_s, LIMIT_S)

    @property
    def in_range(self) -> bool:
        """Whether the kernel is as long as those the check is about."""
        return SHORTEST_S <= self.theirs_s <= LONGEST_S

    @property
    def agrees(self) -> bool:
        """Whether the medians are within the limit of each other."""
        return abs(self.difference_s) <= self.limit_s

    def as_json(self) -> dict[str, Any]:
        """Plain form, with what is derived."""
        return {
            "kernel": self.name,
            "nqbench_s": list(self.nqbench_s),
            "nvbench_s": list(self.nvbench_s),
            "difference_s": self.difference_s,
            "limit_s": self.limit_s,
            "in_range": self.in_range,
            "agrees": self.agrees,
        }


def verdict(comparisons: Sequence[Comparison]) -> tuple[bool, str]:
    """Whether the tools agree, and one sentence. Kernels out of range do not count."""
    judged = [one for one in comparisons if one.in_range]
    if not judged:
        return False, "no kernel took between 50 microseconds and 1 second: nothing was compared"
    bad = [one for one in judged if not one.agrees]
    shortest = min(one.theirs_s for one in judged)
    longest = max(one.theirs_s for one in judged)
    span = f"{len(judged)} kernels from {microseconds(shortest)} to {microseconds(longest)} us"
    if bad:
        names = ", ".join(one.name for one in bad)
        return False, f"nqbench and nvbench disagree on {len(bad)} of {span}: {names}"
    worst = max(judged, key=lambda one: abs(one.difference_s) / one.limit_s)
    return True, (
        f"nqbench and nvbench agree on {span}; the largest difference, as a share of what is"
        f" allowed, is {abs(worst.difference_s) / worst.limit_s:.0%} ({worst.name})"
    )


def markdown(result: Mapping[str, Any], comparisons: Sequence[Comparison]) -> str:
    """The result as a page."""
    about = "\n".join(f"- {name}: {text}" for name, text in result["environment"].items())
    head = "| kernel | nqbench, us | nvbench, us | difference, us | allowed, us | spread, us | |"
    lines = [head, "|---|---:|---:|---:|---:|---:|---|", *(_line(one) for one in comparisons)]
    table = "\n".join(lines)
    return (
        f"# Cross-check with nvbench\n\n{result['verdict']}.\n\n{about}\n\n"
        "The same cubin, launched by both tools on one GPU, in turns. Each time is the median over"
        f" {result['rounds']} processes of the median of their samples; *spread* is the range of"
        " these medians, nqbench / nvbench. Allowed: 1% or 1 us, whichever is larger.\n\n"
        f"{table}\n\n    {result['command']}\n"
    )


def _line(one: Comparison) -> str:
    judged = "agree" if one.agrees else "DISAGREE"
    spreads = " / ".join(
        microseconds(max(values) - min(values)) for values in (one.nqbench_s, one.nvbench_s)
    )
    cells = (
        f"`{one.name}`",
        microseconds(one.ours_s),
        microseconds(one.theirs_s),
        f"{one.difference_s * 1e6:+,.2f}",
        microseconds(one.limit_s),
        spreads,
        judged if one.in_range else "out of range",
    )
    return f"| {' | '.join(cells)} |"


def microseconds(seconds: float) -> str:
    """Seconds as microseconds with two decimals."""
    return f"{seconds * 1e6:,.2f}"
