"""Deterministic counts for claims: what follows from N and the algorithm, without timing anything.

A workload has them in its module ``counts``. Those of counting come from an instrumented kernel of
one of the runs, or else from the enumeration on the host, which counts the same: the run comes
first, so that a page made from it is the same on every machine, whatever was enumerated there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, Final

from nqbench.analysis.claims.points import NotMeasured
from nqbench.analysis.claims.runs import Observed, probe_value
from nqbench.errors import AnalysisError
from nqbench.vocabulary import PROBE_COUNTERS

FULL: Final = "nqbench claims RUN --full"
"""The command that walks the large trees."""


def count(
    name: str,
    parameters: Mapping[str, Any],
    runs: Sequence[Observed] = (),
    *,
    full: bool = False,
    workload: str = "counting",
) -> tuple[Any, str]:
    """A count by name, and where it comes from if that is not the host's enumeration.

    ``parameters`` are those of ``nqbench.workloads.WORKLOAD.counts.count``; ``full`` walks trees
    that take minutes. Raises :class:`NotMeasured` where neither knows, ``StudyError`` for a name
    that does not exist.
    """
    found = _probed(name, parameters, runs)
    if found is not None:
        return found
    counts = import_module(f"nqbench.workloads.{workload}.counts")
    try:
        return counts.count(name, full=full, **parameters), ""
    except AnalysisError as error:
        raise NotMeasured(
            f"counting {name} at N={parameters.get('N')} walks the whole tree: `{FULL}` does it"
            " once (minutes), and so does a run of the study on a GPU"
        ) from error


def _probed(
    name: str, parameters: Mapping[str, Any], runs: Sequence[Observed]
) -> tuple[float, str] | None:
    stat = parameters.get("stat")
    counter = f"{name}_{stat}" if stat else name
    if counter not in PROBE_COUNTERS or "system" not in parameters:
        return None
    for run in runs:
        depth = parameters.get("depth", "own")
        found = probe_value(run, str(parameters["system"]), int(parameters["N"]), counter, depth)
        if found is not None:
            return found, f"counted by the instrumented kernel on {run.data.device_short}"
    return None
