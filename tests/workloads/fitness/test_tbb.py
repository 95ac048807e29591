"""Where installers put TBB's library: all of them are found, and a lost one is told as such."""

from __future__ import annotations

import site
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from nqbench.errors import DeviceError, WrongDeviceError
from nqbench.workloads.fitness import WORKLOAD
from nqbench.workloads.fitness.boards import random_board
from nqbench.workloads.fitness.cpu import evaluators
from nqbench.workloads.fitness.cpu import tbb as cpu_tbb
from tests.workloads.running import CPU

NAME = "libtbb_of_a_test.so.12"
SITE = "lib/python3/site-packages"


@pytest.fixture
def prefix(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """An empty prefix of Python, with a library that the system's loader cannot know."""
    for name in ("prefix", "base_prefix"):
        monkeypatch.setattr(sys, name, str(tmp_path))
    monkeypatch.setattr(site, "getuserbase", lambda: str(tmp_path / "home/.local"))
    monkeypatch.setattr(cpu_tbb, "FOLDER", "lib")
    monkeypatch.setitem(cpu_tbb.LIBRARIES, sys.platform, NAME)
    for function in (cpu_tbb.tbb_library, cpu_tbb.load_tbb):
        function.cache_clear()
    yield tmp_path
    for function in (cpu_tbb.tbb_library, cpu_tbb.load_tbb):
        function.cache_clear()


def install(folder: Path, listed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package ``tbb`` in a folder of the import path; its list names the library so."""
    info = folder / "tbb-2099.1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: tbb\nVersion: 2099.1\n")
    (info / "RECORD").write_text(f"{listed},,\n")
    monkeypatch.syspath_prepend(str(folder))


def put(file: Path) -> Path:
    """A file that is no library, but is there."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("not a library")
    return file


@pytest.mark.parametrize(
    ("packages", "listed", "library"),
    [
        (SITE, f"../../{NAME}", f"lib/{NAME}"),  # a virtual environment
        (f"home/.local/{SITE}", f"../../{NAME}", f"home/.local/lib/{NAME}"),  # pip install --user
        ("target", f"../{NAME}", f"target/lib/{NAME}"),  # pip install --target: the list is wrong
        ("links", f"../../../{NAME}", f"lib/{NAME}"),  # linked from another environment
    ],
)
def test_the_library_of_the_package_is_found(
    packages: str, listed: str, library: str, prefix: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(prefix / packages, listed, monkeypatch)
    file = put(prefix / library)
    assert cpu_tbb.tbb_library() == file
    assert cpu_tbb.load_tbb().startswith(f"{file} cannot be loaded (")


def test_without_the_package_it_is_refused_in_a_sentence(
    prefix: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cpu_tbb, "_package", lambda: None)
    with pytest.raises(WrongDeviceError, match=r"package tbb is not installed \(pip install tbb"):
        WORKLOAD.resolve({"n": 10}, "fitness_schemes.cpu_tbb", CPU)
    with pytest.raises(DeviceError, match="cpu_tbb cannot run: the package tbb is not"):
        evaluators.tbb(random_board(10, 1))
    cpu_tbb.tbb_library.cache_clear()
    file = put(prefix / "lib" / NAME)  # conda has the library without a package
    assert cpu_tbb.tbb_library() == file


def test_a_package_without_its_library_is_not_called_absent(
    prefix: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(prefix / "target", f"../{NAME}", monkeypatch)
    said = cpu_tbb.load_tbb()
    assert said.startswith(
        f"the package tbb 2099.1 is installed, but its library {NAME} is neither"
    )
    looked = said.partition(" in ")[2].partition(" nor ")[0].split(", ")
    assert {str(prefix / "target/lib"), str(prefix / "lib")} <= set(looked)
    assert "pip install --force-reinstall tbb" in said
