"""External programs alone: nothing is known of what they compute, and their factors are free.

A study of this workload lists programs under ``systems``. Any name under ``fixed``, ``matrix`` or
``zip`` is a factor that their commands may use; no answer is known, so none is compared.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from nqbench.errors import InfeasibleError
from nqbench.facts import DeviceFacts
from nqbench.plan import Plan
from nqbench.point import FactorLevels
from nqbench.workloads.base import Factor, Resolved, Workload

WHOLE: Final = (-(2**63), 2**63 - 1)


class FreeFactors(dict[str, Factor]):
    """``n``, and a factor of any level under any other name."""

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str)

    def __missing__(self, name: str) -> Factor:
        return Factor(name, "a word of the programs' commands", number=WHOLE, text=True)


class Programs(Workload):
    """See ``workloads.base.Workload`` for what each member means."""

    name = "programs"
    factors: Mapping[str, Factor] = FreeFactors(n=Factor("n", "a size", number=(0, WHOLE[1])))
    no_variants = "has no kernels, only external programs"

    def resolve(self, given: FactorLevels, system: str | None, device: DeviceFacts) -> Resolved:
        """Refused: only external programs have points here."""
        raise InfeasibleError(
            "the workload programs computes nothing itself: list programs under `systems`, each"
            " with a name and a command"
        )

    def plan(self, factors: FactorLevels, system: str | None, device: DeviceFacts) -> Plan:
        """Refused, as ``resolve`` does."""
        raise InfeasibleError("the workload programs has no plans of its own")


WORKLOAD: Final = Programs()
