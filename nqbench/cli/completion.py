"""What the shell completes: studies, systems, devices, papers, run folders.

Where nothing fits, the shell completes names of files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Final


def _systems() -> Iterator[str]:
    for workload in import_module("nqbench.workloads").with_systems():
        yield from workload.systems


def _models() -> Iterable[str]:
    return import_module("nqbench.simulator.models").model_names()  # type: ignore[no-any-return]


def _devices() -> Iterator[str]:
    """GPUs of this computer, models of the simulator, the CPU."""
    gpus = sorted(Path("/proc/driver/nvidia/gpus").glob("*"))  # without starting the driver
    yield from ("auto", *(f"cuda:{index}" for index in range(len(gpus))), *_simulators(), "cpu")


def _simulators() -> Iterator[str]:
    return (f"sim:{model}" for model in _models())


def _formats() -> Iterator[str]:
    exporters = import_module("nqbench.report.exporters")
    yield from (*exporters.EXPORTERS, *exporters.FIGURE_FORMATS, exporters.HTML)


WORDS: Final[Mapping[str, Callable[[], Iterable[str]]]] = {
    "CONFIG": lambda: import_module("nqbench.study.packaged").studies(),
    "SYSTEM": _systems,
    "DEVICE": _devices,
    "SIMULATOR": _simulators,
    "MODEL": _models,
    "PAPER": lambda: import_module("nqbench.papers").paper_names(),
    "RUN": lambda: (str(f.parent) for f in sorted(Path().glob("results/*/*/*/manifest.json"))),
    "FORMAT": _formats,
}
"""What an argument or option may be, by the word that stands for it in the help."""


def completed(form: str) -> Callable[[str], list[str]] | None:
    """What completes a value that the help calls ``SYSTEM|CONFIG``; ``None`` for other words."""
    found = [WORDS[word] for word in form.split("|") if word in WORDS]

    def complete(incomplete: str) -> list[str]:
        return [w for words in found for w in words() if w.startswith(incomplete)]

    return complete if found else None
