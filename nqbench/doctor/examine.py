"""The examination: choose the device, gather the facts, make every row."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from nqbench.doctor import facts, probe
from nqbench.doctor.report import CHECKS, Report, row_of
from nqbench.errors import DeviceUnavailable
from nqbench.facts import DeviceKind
from nqbench.system.files import cache_folder


@dataclass(frozen=True)
class Surroundings:
    """What is examined; tests substitute their own.

    ``root``     where ``/proc`` and ``/sys`` are
    ``results``  folder that results would go to
    ``ask``      gives the answers of all questions, see ``probe``
    """

    root: Path = Path("/")
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    results: Path = Path("results")
    ask: Callable[[], probe.ProbeResults] = lambda: probe.ask_all()
    load_1min: Callable[[], float] = lambda: os.getloadavg()[0]


def examine(device: str = "auto", around: Surroundings | None = None) -> Report:
    """Look at everything; ``device`` is ``auto``, ``cuda``, ``cuda:N``, ``sim``, ``cpu``.

    ``auto`` is the GPU where there is a sign of one (driver, kernel module or card), even if it
    cannot be used, else the simulator. Raises ``DeviceUnavailable`` for anything else.
    """
    if not re.fullmatch(r"cuda(:\d+)?|sim(:.*)?|cpu|auto", device):
        raise DeviceUnavailable(
            f"doctor knows no device {device!r}; write --device auto, cuda:0, sim or cpu"
        )
    around = around or Surroundings()
    # The load is read first: the questions themselves are work.
    load_1min = around.load_1min()
    answers = around.ask()
    path, cache = around.environment.get("PATH"), cache_folder() / "kernels"
    seen = {
        **facts.of_software(answers),
        **facts.of_driver(answers, around.root, around.environment),
        **facts.of_profiler(around.root, path),
        **facts.of_system(around.root, load_1min, cache, around.results),
    }
    kind, why = cast("DeviceKind", device.partition(":")[0]), "asked for"
    if device == "auto":
        kind, why = _auto(seen)
        device = {"cuda": "cuda:0"}.get(kind, kind)
    if kind == "cuda":
        count = answers["driver"].value.get("count", 0)
        seen |= {"device": device, **facts.of_wanted_gpu(device, count, around.results)}
    gpus = map(facts.of_gpu, answers["nvml"].value.get("gpus", ()))
    groups = [("software", seen), ("driver", seen), *(("gpu", gpu) for gpu in gpus)]
    groups += [("profiler", seen), ("system", seen)]
    found = (row_of(check, known) for group, known in groups for check in CHECKS[group])
    return Report(device, kind, why, tuple(filter(None, found)))


def _auto(seen: Mapping[str, object]) -> tuple[DeviceKind, str]:
    if seen["driver_ok"]:
        return "cuda", "there is an NVIDIA driver"
    if seen["kernel_module"] or seen["card"]:
        return "cuda", "there is an NVIDIA GPU"
    return "sim", "there is no sign of an NVIDIA GPU"
