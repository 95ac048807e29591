"""CUDA without a GPU: compiles CUDA C++ to PTX and the PTX to native code that runs whole warps,
counts what a profiler would, and finds races and stray accesses.

The simulator stands on its own: it knows plans, the compiler and nothing of studies or records.
README.md beside this file says how it works and what its counters mean.

    from nqbench import simulator
    with simulator.compile(plan, "h100") as loaded:
        print(loaded.launch().counters["bank_conflicts"], loaded.fetch()["out"])
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nqbench.device import Launch
    from nqbench.plan import Kernel, KernelPlan, MultiLaunchPlan
    from nqbench.simulator.findings import Finding
    from nqbench.simulator.launching import SimPlan

__all__ = ["check", "compile", "launch"]


def compile(plan: KernelPlan | MultiLaunchPlan, model: str = "mini", **settings: Any) -> SimPlan:
    """A plan compiled and loaded, to be launched any number of times; close it after use.

    ``model`` is a name (``nqbench devices`` lists them) or the path of a YAML file; ``settings``
    and errors are those of :func:`nqbench.simulator.simulation.simulation`. Also raises
    ``CompileError``, and ``KernelFault`` for PTX that is not simulated.
    """
    from nqbench.simulator.launching import prepare
    from nqbench.simulator.simulation import simulation

    return prepare(simulation(model, **settings), plan)


def launch(
    plan: KernelPlan | MultiLaunchPlan,
    model: str = "mini",
    *,
    timeout_s: float | None = None,
    **settings: Any,
) -> Launch:
    """Compile a plan and run it once: its counters, and counters per memory access and branch.

    Raises what ``compile`` raises, ``KernelFault`` for a stray access or a deadlock, and
    ``LaunchTimeout`` after ``timeout_s`` seconds or too many loop iterations.
    """
    with compile(plan, model, **settings) as loaded:
        return loaded.launch(timeout_s)


def check(
    plan: KernelPlan | MultiLaunchPlan, model: str = "mini", **settings: Any
) -> list[tuple[Kernel, Finding]]:
    """What is wrong with a plan's kernels: races, stray, misaligned and uninitialised accesses,
    divergent barriers, deadlocks; empty if one launch shows nothing.

    Raises what ``compile`` raises, and ``LaunchTimeout``.
    """
    from nqbench.simulator.mistakes import run_checked
    from nqbench.simulator.simulation import simulation

    return list(run_checked(plan, simulation(model, checked=True, **settings)))
