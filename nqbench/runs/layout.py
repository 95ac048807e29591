"""Where runs live: ``results/reference`` for those of the project, ``results/local`` for a user's.

Each run has the folder ``DEVICE/STUDY`` there; its report goes to the same place under ``plots``.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from nqbench.runs.reading import MANIFEST

RESULTS: Final = Path("results")
PLOTS: Final = Path("plots")
KINDS: Final = ("reference", "local")
"""Runs that are part of the project, and a user's own."""


def local_folder(study: str, spec: str) -> Path:
    """Where a user's run of a study on a device goes: ``results/local/DEVICE/STUDY``."""
    return RESULTS / "local" / re.sub(r"[^\w.-]+", "-", spec) / study


def recorded_runs(study: str, kind: str) -> list[Path]:
    """Every run of a study under ``results/KIND/DEVICE``, in order of the devices' names."""
    found = (RESULTS / kind).glob(f"*/{study}/{MANIFEST}")
    return sorted(manifest.parent for manifest in found)


def default_out(run: Path) -> Path:
    """Where the report of a run goes.

    ``results/local/DEVICE/STUDY`` -> ``plots/local/DEVICE/STUDY``, the same under
    ``results/reference``; any other run folder -> ``RUN/report``.
    """
    run = Path(run)
    for path in (run, run.resolve()):
        parts = path.parts
        for i in range(len(parts) - 2, -1, -1):
            if parts[i] == "results" and parts[i + 1] in {"local", "reference"}:
                return Path(*parts[:i], "plots", *parts[i + 1 :])
    return run / "report"
