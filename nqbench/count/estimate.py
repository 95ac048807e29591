"""What a count would cost on one GPU and on many, by the growth of the search."""

from __future__ import annotations

from typing import Final

from nqbench.count.choice import choice_for, recorded_choice
from nqbench.count.solutions import MIN_KERNEL_N, choose
from nqbench.devices.registry import facts_for
from nqbench.errors import StudyError
from nqbench.workloads.counting.factors import MAX_N
from nqbench.workloads.counting.known import solutions

MAX_ESTIMATED_N: Final = 28
"""One more than can be counted: the growth is extrapolated by its trend."""
GPUS: Final = (8, 1000)
SPANS: Final = ((31_557_600.0, "years"), (86_400.0, "days"), (3600.0, "h"), (60.0, "min"))


def estimate(n: int, spec: str = "auto") -> str:
    """What ``n`` queens (5 to 28) would cost on 1, 8 and 1,000 GPUs like ``spec``, and the recorded
    run that says so. ``auto`` without a GPU: GPUs like the recorded one.

    Raises ``StudyError`` for another size, or a device that is no GPU.
    """
    if not MIN_KERNEL_N <= n <= MAX_ESTIMATED_N:
        raise StudyError(
            f"--estimate takes {MIN_KERNEL_N} to {MAX_ESTIMATED_N} queens, not {n}: nobody knows"
            " how the search grows beyond"
        )
    device = None
    if (chosen := choose(spec).spec).startswith("cuda"):
        device = facts_for(chosen)
        choice, _ = choice_for(device, min(n, MAX_N))
    elif spec == "auto":
        choice = recorded_choice(min(n, MAX_N))
    else:
        raise StudyError(f"--estimate is about GPUs, not --device {spec}; leave --device out")
    seconds, gpu = choice.seconds(n, device), device.name if device else choice.gpu
    many = ", ".join(f"{span(seconds / gpus)} on {gpus:,}" for gpus in GPUS)
    lines = [f"a({n}) would take {span(seconds)} on one {gpu}, {many} that share its chunks"]
    if choice.kernel_s is None:
        return f"{lines[0]}\nguessed: {choice.system} was not measured yet"
    by_solutions = seconds * solutions(n) / solutions(choice.n)
    by_solutions *= choice.seconds(choice.n, device) / seconds
    lines.append(
        f"predicted from a recorded run: {choice.system} took {choice.kernel_s} s at N ="
        f" {choice.n} on one {choice.gpu} with {choice.multiprocessors} multiprocessors"
        f" ({choice.date}, study {choice.study}), times the growth of the nodes of the search tree;"
        f" by the growth of the solutions it is {span(by_solutions)}"
    )
    return "\n".join(lines)


def span(seconds: float) -> str:
    """A time in the largest unit that it has two of: ``3.25 days``."""
    unit_s, name = next((u for u in SPANS if seconds >= 2 * u[0]), (1.0, "s"))
    count = seconds / unit_s
    return f"{count:,.0f} {name}" if count >= 1000 else f"{count:.3g} {name}"
