"""The examination: choose the device, then make every row."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from nqbench.devices.cuda.driver import VISIBLE
from nqbench.doctor import gpu, probe, software, system
from nqbench.doctor.probe import QUESTIONS, Answer, Answers
from nqbench.doctor.report import Report, Row
from nqbench.errors import DeviceUnavailable
from nqbench.facts import DeviceKind
from nqbench.system.files import cache_folder


def _ask() -> Answers:
    return probe.ask({name: probe.command(name) for name in QUESTIONS})


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
    ask: Callable[[], Answers] = _ask
    load_1min: Callable[[], float] = lambda: os.getloadavg()[0]


def examine(device: str = "auto", around: Surroundings | None = None) -> Report:
    """Look at everything; ``device`` is ``auto``, ``cuda``, ``cuda:N``, ``sim``, ``cpu``.

    ``auto`` is the GPU where there is a sign of one (driver, kernel module or card), even if it
    cannot be used, else the simulator. Raises ``DeviceUnavailable`` for anything else.
    """
    around = around or Surroundings()
    kind = _kind(device)
    # The load is read first: the questions themselves are work.
    load_1min = around.load_1min()
    answers = around.ask()
    if kind is None:
        kind, why = _auto(answers["driver"], around.root)
        device = {"cuda": "cuda:0"}.get(kind, kind)
    else:
        why = "asked for"
    rows = [*_software(answers), *_gpu(answers, around), *_system(around, load_1min)]
    if kind == "cuda":
        rows.append(system.ceilings(around.results))
        rows += _index(device, answers["driver"])
    return Report(device, kind, why, tuple(rows))


def _kind(device: str) -> DeviceKind | None:
    word, _, rest = device.partition(":")
    if word == "cuda" and (not rest or rest.isdecimal()):
        return "cuda"
    if word == "sim":
        return "sim"
    if device == "cpu":
        return "cpu"
    if device == "auto":
        return None
    raise DeviceUnavailable(
        f"doctor knows no device {device!r}; write --device auto, cuda:0, sim or cpu"
    )


def _auto(driver: Answer, root: Path) -> tuple[DeviceKind, str]:
    if driver.ok:
        return "cuda", "there is an NVIDIA driver"
    if gpu.has_kernel_module(root) or gpu.has_nvidia_card(root):
        return "cuda", "there is an NVIDIA GPU"
    return "sim", "there is no sign of an NVIDIA GPU"


def _software(answers: Answers) -> Iterator[Row]:
    yield software.python(sys.version_info[:3])
    yield software.packages(answers["packages"])
    yield software.compiler(answers["compiler"])
    yield software.linker(answers["linker"])
    yield software.llvmlite(answers["llvmlite"])
    yield software.numba(answers["numba"])


def _gpu(answers: Answers, around: Surroundings) -> Iterator[Row]:
    driver, nvml = answers["driver"], answers["nvml"]
    yield gpu.driver(driver, nvml, around.root)
    chosen = around.environment.get(VISIBLE)
    if chosen is not None and driver.ok:
        yield gpu.visible(chosen)
    yield software.pycuda(answers["pycuda"], driver)
    fits = gpu.compiler_fits(answers["compiler"], driver, nvml)
    if fits is not None:
        yield fits
    yield gpu.telemetry(nvml, driver)
    yield from gpu.gpus(nvml)
    yield gpu.ncu(around.root, around.environment.get("PATH"))
    if gpu.has_kernel_module(around.root):
        yield gpu.permission(around.root)
    yield software.nvbench(answers["nvbench"])


def _system(around: Surroundings, load_1min: float) -> Iterator[Row]:
    cores = os.cpu_count() or 1
    yield system.load(cores, len(os.sched_getaffinity(0)), load_1min)
    yield system.governor(around.root)
    yield system.cache(cache_folder() / "kernels")
    yield system.results(around.results)


def _index(device: str, driver: Answer) -> Iterator[Row]:
    """A row if the driver does not have the GPU that was asked for."""
    count = driver.value.get("count", 0) if driver.ok else 0
    index = int(device.partition(":")[2] or 0)
    if count and index >= count:
        found = f"the driver has {count}: cuda:0 to cuda:{count - 1}"
        yield Row(device, "missing", found, "gpu", "nqbench devices")
