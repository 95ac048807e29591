"""Answers, findings and expected answers of plans and points."""

from __future__ import annotations

from collections.abc import Mapping

from nqbench.plan import Outputs, Plan
from nqbench.point import Level
from nqbench.workloads.local_search.answer import answer_of, checksum, findings_of
from nqbench.workloads.local_search.instance import Instance, load_instance
from nqbench.workloads.local_search.reference import reference_search

LEXICOGRAPHIC = "quadratic"
"""A mapping with the order in which every kernel but those of the rectangle breaks ties."""


def answer(plan: Plan, outputs: Outputs) -> int:
    """See ``answer.answer_of``."""
    return answer_of(_instance(plan), outputs)


def findings(plan: Plan, outputs: Outputs) -> Mapping[str, int | float | str]:
    """See ``answer.findings_of``; empty for a part of a kernel, which ends no search."""
    if "evaluations" not in outputs:
        return {}
    moves = int(plan.about["moves_per_iteration"])
    return findings_of(_instance(plan), outputs, moves)


def expected(factors: Mapping[str, Level]) -> int:
    """Checksum of the tour of a search with the same order among equally good moves."""
    mapping = str(factors["mapping"])
    found = reference_search(
        str(factors["instance"]),
        int(str(factors["n"])),
        int(str(factors["seed"])),
        int(str(factors["iterations"])),
        mapping if mapping != "-" else LEXICOGRAPHIC,
    )
    return checksum(found.tour)


def _instance(plan: Plan) -> Instance:
    about = plan.about
    return load_instance(str(about["instance"]), int(about["n"]), int(about["seed"]))
