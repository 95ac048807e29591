"""What the shell completes: studies, systems, devices, papers, run folders.

Where nothing fits, the shell completes names of files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from pathlib import Path

Complete = Callable[[str], list[str]]
"""Given the beginning of a word, the words that it may become."""


def _words(found: Callable[[], Iterable[str]]) -> Complete:
    return lambda incomplete: [word for word in found() if word.startswith(incomplete)]


def _packaged() -> Iterable[str]:
    return import_module("nqbench.study.packaged").studies()  # type: ignore[no-any-return]


def _system_names() -> Iterator[str]:
    for workload in import_module("nqbench.workloads").with_systems():
        yield from workload.systems


def _models() -> list[str]:
    return import_module("nqbench.simulator.models").model_names()  # type: ignore[no-any-return]


def _device_names() -> list[str]:
    """GPUs of this computer, models of the simulator, the CPU."""
    gpus = sorted(Path("/proc/driver/nvidia/gpus").glob("*"))  # without starting the driver
    cuda = [f"cuda:{index}" for index in range(len(gpus))]
    return ["auto", *cuda, *(f"sim:{model}" for model in _models()), "cpu"]


studies = _words(_packaged)
systems_or_studies = _words(lambda: (*_system_names(), *_packaged()))
systems = _words(_system_names)
devices = _words(_device_names)
simulators = _words(lambda: (name for name in _device_names() if name.startswith("sim")))
models = _words(_models)
papers = _words(lambda: import_module("nqbench.papers").paper_names())
runs = _words(lambda: [str(f.parent) for f in sorted(Path().glob("results/*/*/*/manifest.json"))])
formats = _words(
    lambda: (*(e := import_module("nqbench.report.exporters")).EXPORTERS, *e.FIGURE_FORMATS, e.HTML)
)
