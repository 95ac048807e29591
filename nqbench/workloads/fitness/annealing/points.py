"""Searches for a valid board by simulated annealing: points resolved, made executable and judged.

==============  ====================================================================================
``sa_cpu``      the fitness paper's search: propose, evaluate in full on the CPU, accept
``sa_gpu``      the same, evaluated by ``gpu_coarse``
``sa_delta``    the same walk on the CPU, each proposal evaluated in constant time
``sa_chains``   many such walks on a GPU, one warp each
==============  ====================================================================================

The walk depends on the seed, n and the schedule only. A search may end without a valid board; its
answer is the number of conflicts left, which is right if the reference walk ends with as many.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from nqbench.errors import InfeasibleError
from nqbench.facts import DeviceFacts
from nqbench.plan import CpuPlan, Outputs, Plan
from nqbench.point import FactorLevels
from nqbench.workloads.fitness import gpu
from nqbench.workloads.fitness.annealing.chains import NOTHING_FOUND, chains_plan, resolve_chains
from nqbench.workloads.fitness.annealing.cooling import Cooling, chain_key, resolve_schedule
from nqbench.workloads.fitness.boards import conflicts, is_board
from nqbench.workloads.levels import Levels, number

MIN_N: Final = 2
"""A move needs two queens."""

FALSE_CLAIM: Final = -1
"""The answer of a search whose board has other conflicts than reported; never a right answer."""

_USUAL_SHARE: Final = 0.66
"""Share of the schedule's proposals that a search makes, at n = 3000; see ``factors``."""
_USUAL_ATTACKED: Final = 8
"""Proposals per queen of a search with `proposal: attacked`."""

_WALKS: Final = "nqbench.workloads.fitness.annealing.walks"
_WARM_N: Final = 8


def resolve(levels: Levels, device: DeviceFacts) -> dict[str, int | float | str]:
    """Resolve ``auto`` in place; numbers that follow, of ``sa_gpu`` those of one evaluation.

    Raises ``InfeasibleError`` for what cannot run here.
    """
    n, scheme = number(levels, "n"), levels["scheme"]
    if n < MIN_N:
        raise InfeasibleError(f"n: {n} has no two queens to exchange; use n from {MIN_N}", "n")
    resolve_schedule(levels)
    cooling = Cooling.from_levels(levels)
    derived: dict[str, int | float | str] = {
        "temperatures": len(cooling.temperatures),
        "evaluation_limit": cooling.limit(n),
    }
    if scheme == "sa_chains":
        derived |= resolve_chains(levels, device)
    elif scheme == "sa_gpu":
        own = _evaluation(levels)
        derived |= gpu.resolve_scheme(own, device)
        levels["block_size"] = own["block_size"]
    return derived


def _evaluation(levels: FactorLevels) -> Levels:
    """The point that a search on a GPU evaluates its boards as."""
    return {**levels, "scheme": "gpu_coarse"}


def make_plan(levels: Levels, device: DeviceFacts) -> Plan:
    """The plan of a search."""
    about = {**resolve(levels, device), "task": "anneal", "seed": number(levels, "seed")}
    plan = _plan(levels, device)
    return replace(plan, about={**plan.about, **about})


def _plan(levels: Levels, device: DeviceFacts) -> Plan:
    n, key = number(levels, "n"), chain_key(number(levels, "seed"))
    cooling, scheme = Cooling.from_levels(levels), levels["scheme"]
    if scheme == "sa_chains":
        return chains_plan(levels, device)

    def search(function: str, *rest: object) -> CpuPlan:
        found = f"{_WALKS}:{function}"
        return CpuPlan(f"fitness.{function}", found, (n, *rest), (_WARM_N, *rest))

    if scheme == "sa_delta":
        return search("anneal_delta", key, cooling)
    if scheme == "sa_cpu":
        return search("anneal_full", key, cooling)
    from nqbench.workloads.fitness.annealing.walks import EVALUATION, compile_walk

    compile_walk()
    start = np.arange(n, dtype=np.int32)[np.newaxis, :]
    base = gpu.program_plan(_evaluation(levels), start, device)
    return replace(
        base,
        name="fitness.anneal",
        function=f"{_WALKS}:anneal",
        arguments=(n, key, cooling, *base.arguments),
        groups=(EVALUATION,),
    )


def answer(outputs: Outputs) -> int:
    """Conflicts of the board that the search ended with, counted again on the CPU.

    ``FALSE_CLAIM`` if a board is not a permutation or has other conflicts than its search reports,
    or if the reported winner is not that of the chains.
    """
    claims = outputs["conflicts"]
    boards, found = outputs["boards"].reshape(claims.size, -1), np.flatnonzero(claims == 0)
    chosen = winner(outputs)
    if "best" in outputs:  # a single walk has none
        keys = (int(outputs["steps"][chain]) << 32 | int(chain) for chain in found)
        if int(outputs["best"][0]) != min(keys, default=NOTHING_FOUND):
            return FALSE_CLAIM
    judged = [chosen, *found.tolist()]
    if any(not is_board(boards[k]) or conflicts(boards[k]) != claims[k] for k in judged):
        return FALSE_CLAIM
    return int(claims[chosen])


def winner(outputs: Outputs) -> int:
    """The chain that represents the run: the first to find a board, by proposals and not by time;
    if none did, the one with the fewest conflicts left."""
    if "best" in outputs:
        named = int(outputs["best"][0]) & 0xFFFFFFFF
        if named < outputs["conflicts"].size:  # not where nothing was found
            return named
    return int(np.lexsort((outputs["steps"], outputs["conflicts"]))[0])


def findings(outputs: Outputs) -> dict[str, int | float | str]:
    """Whether a board was found, and the effort: for ``Record.about``.

    ``found`` 1 or 0; ``boards_found`` of how many chains; ``evaluations`` and ``accepted_moves`` of
    the search that represents the run.
    """
    chosen = winner(outputs)
    return {
        "found": int(outputs["conflicts"][chosen] == 0),
        "boards_found": int(np.count_nonzero(outputs["conflicts"] == 0)),
        "evaluations": int(outputs["steps"][chosen]),
        "accepted_moves": int(outputs["accepted"][chosen]),
    }


def full_length(levels: FactorLevels) -> int:
    """Evaluations of the whole walk, for a search that ``max_evaluations`` cuts short.

    Exact, since the incremental walk is the same. With the time per evaluation it predicts the time
    of a whole run.
    """
    from nqbench.workloads.fitness.annealing.walks import reference  # numba: slow to import

    cooling = Cooling.from_levels({**levels, "max_evaluations": 0})
    return reference(number(levels, "n"), number(levels, "seed"), 0, cooling)[1]


def expected(levels: FactorLevels) -> int:
    """Conflicts at the end of the reference walk; of many chains, those of the best."""
    from nqbench.workloads.fitness.annealing.walks import reference  # numba: slow to import

    n, seed, cooling = number(levels, "n"), number(levels, "seed"), Cooling.from_levels(levels)
    least, chains = n * n, levels.get("chains")
    for chain in range(chains if isinstance(chains, int) else 1):
        least = min(least, reference(n, seed, chain, cooling)[0])
        if least == 0:
            break
    return least


def work(levels: FactorLevels) -> float:
    """Proposals that a search usually needs, times the comparisons of each."""
    n, cooling = number(levels, "n"), Cooling.from_levels(levels)
    usual = _USUAL_ATTACKED * n if cooling.attacked else _USUAL_SHARE * cooling.full_length(n)
    proposals = min(usual, cooling.limit(n))
    in_full = levels["scheme"] in ("sa_cpu", "sa_gpu")
    return float(proposals) * (n * (n - 1) / 2 if in_full else 1.0)
