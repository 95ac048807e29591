"""Searches for a valid board by simulated annealing: points resolved, made executable and judged.

==============  ====================================================================================
``sa_cpu``      the fitness paper's search: propose, evaluate in full on the CPU, accept
``sa_gpu``      the same with a GPU scheme as its evaluator
``sa_delta``    the same walk on the CPU, each proposal evaluated in constant time
``sa_chains``   many such walks on a GPU, one warp each
==============  ====================================================================================

The walk depends on the seed, n and the schedule only. A search may end without a valid board; its
answer is the number of conflicts left, which is right if the reference walk ends with as many.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, replace
from functools import lru_cache
from typing import Final

import numpy as np

from nqbench.errors import InfeasibleError
from nqbench.facts import DeviceFacts
from nqbench.plan import CpuPlan, Outputs, Plan
from nqbench.point import Level
from nqbench.workloads.fitness.annealing import evaluated
from nqbench.workloads.fitness.annealing.chains import (
    chains_plan,
    resolve_chains,
    winner,
    winner_is_consistent,
)
from nqbench.workloads.fitness.annealing.cooling import Cooling, chain_key, reference_walk
from nqbench.workloads.fitness.boards import conflicts, is_board
from nqbench.workloads.fitness.search_factors import resolve_schedule
from nqbench.workloads.levels import Levels, number

MIN_N: Final = 2
"""A move needs two queens."""

FALSE_CLAIM: Final = -1
"""The answer of a search whose board has other conflicts than reported; never a right answer."""

_USUAL_SHARE: Final = 0.66
"""Share of the schedule's proposals that a search makes, at n = 3000; see ``search_factors``."""
_USUAL_ATTACKED: Final = 8
"""Proposals per queen of a search with `proposal: attacked`."""

_DELTA: Final = "nqbench.workloads.fitness.annealing.evaluated:anneal_delta"
_WARM_N: Final = 8


def resolve(levels: Levels, device: DeviceFacts) -> dict[str, int | float | str]:
    """Resolve ``auto`` in place; numbers that follow. Raises ``InfeasibleError``."""
    n = number(levels, "n")
    if n < MIN_N:
        raise InfeasibleError(f"n: {n} has no two queens to exchange; use n from {MIN_N}", "n")
    resolve_schedule(levels)
    cooling = Cooling.from_levels(levels)
    derived: dict[str, int | float | str] = {
        "temperatures": len(cooling.temperatures),
        "evaluation_limit": cooling.limit(n),
    }
    if levels["scheme"] == "sa_chains":
        return derived | resolve_chains(levels, device)
    if levels["scheme"] == "sa_delta":
        return derived
    return derived | evaluated.resolve_evaluator(levels, device)


def make_plan(levels: Levels, device: DeviceFacts) -> Plan:
    """The plan of a search."""
    derived = resolve(levels, device)
    n, key = number(levels, "n"), chain_key(number(levels, "seed"))
    cooling = Cooling.from_levels(levels)
    about = {**derived, "task": "anneal", "seed": number(levels, "seed")}
    plan: Plan
    if levels["scheme"] == "sa_delta":
        rest = (key, *astuple(cooling))
        return CpuPlan("fitness.anneal_delta", _DELTA, (n, *rest), (_WARM_N, *rest), about)
    if levels["scheme"] == "sa_cpu":
        plan = evaluated.search_on_cpu(levels, key, cooling)
    elif levels["scheme"] == "sa_chains":
        plan = chains_plan(levels, device)
    else:
        plan = evaluated.search_with_gpu(levels, device)
    return replace(plan, about={**plan.about, **about})


def answer(outputs: Outputs) -> int:
    """Conflicts of the board that the search ended with, counted again on the CPU.

    ``FALSE_CLAIM`` if a board is not a permutation or has other conflicts than its search reports,
    or if the reported winner is not that of the chains.
    """
    claims = outputs["conflicts"]
    boards = outputs["boards"].reshape(claims.size, -1)
    chosen = winner(outputs)
    if not winner_is_consistent(outputs):
        return FALSE_CLAIM
    judged = [chosen, *np.flatnonzero(claims == 0).tolist()]
    if any(not is_board(boards[k]) or conflicts(boards[k]) != claims[k] for k in judged):
        return FALSE_CLAIM
    return int(claims[chosen])


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


def full_length(levels: Mapping[str, Level]) -> int:
    """Evaluations of the whole walk, for a search that ``max_evaluations`` cuts short.

    Exact, since the incremental walk is the same. With the time per evaluation it predicts the time
    of a whole run.
    """
    cooling = Cooling.from_levels({**levels, "max_evaluations": 0})
    walk = reference_walk(number(levels, "n"), chain_key(number(levels, "seed")), cooling)
    return walk.evaluations


def expected(levels: Mapping[str, Level]) -> int:
    """Conflicts at the end of the reference walk; of many chains, those of the best."""
    chains = levels.get("chains")
    cooling = Cooling.from_levels(levels)
    count = chains if isinstance(chains, int) else 1
    return _expected(number(levels, "n"), number(levels, "seed"), count, cooling)


@lru_cache(maxsize=256)
def _expected(n: int, seed: int, chains: int, cooling: Cooling) -> int:
    least = conflicts_left = reference_walk(n, chain_key(seed), cooling).conflicts
    for chain in range(1, chains):
        if conflicts_left == 0:
            break
        conflicts_left = reference_walk(n, chain_key(seed, chain), cooling).conflicts
        least = min(least, conflicts_left)
    return least


def work(levels: Mapping[str, Level]) -> float:
    """Proposals that a search usually needs, times the comparisons of each."""
    n, cooling = number(levels, "n"), Cooling.from_levels(levels)
    usual = _USUAL_ATTACKED * n if cooling.attacked else _USUAL_SHARE * cooling.full_length(n)
    proposals = min(usual, cooling.limit(n))
    evaluator = levels.get("evaluator", "-")
    linear = evaluator in ("-", "histogram", "cpu_histogram")
    return float(proposals) * (1.0 if linear else n * (n - 1) / 2)
