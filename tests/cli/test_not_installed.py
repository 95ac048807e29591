"""From a source folder on the import path, without installation: ``PYTHONPATH=... -m nqbench``."""

from __future__ import annotations

import os
import subprocess
import sysconfig
import venv
from collections.abc import Callable
from pathlib import Path

import pytest

import nqbench
from nqbench.runs.reading import read_records

ROOT = Path(nqbench.__file__).parent.parent
STUDY = """\
name: bare
workload: {workload}
n: [{n}]
systems: [{systems}]
measure: {{rounds: 1, budget: 100ms}}
"""
ZHANG = "experiments/zhang2011"

Bare = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python that has every package of this one but nqbench: no metadata, no path to it."""
    folder = tmp_path_factory.mktemp("python")
    venv.EnvBuilder(symlinks=True).create(folder)
    packages = next(folder.glob("lib/python3*/site-packages"))
    for entry in Path(sysconfig.get_path("purelib")).iterdir():
        if "nqbench" not in entry.name:
            (packages / entry.name).symlink_to(entry)
    return folder / "bin" / "python"


@pytest.fixture(scope="module")
def bare(python: Path, tmp_path_factory: pytest.TempPathFactory) -> Bare:
    """The command line from the source folder, in an empty folder."""
    work = tmp_path_factory.mktemp("work")
    kept = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "NQBENCH_CACHE_DIR")}
    around = kept | {"PYTHONPATH": str(ROOT), "NQBENCH_CACHE_DIR": str(work / "cache")}

    def call(*words: object, program: str = "") -> subprocess.CompletedProcess[str]:
        what = ["-c", program] if program else ["-m", "nqbench", *map(str, words)]
        done = subprocess.run(
            [str(python), *what], cwd=work, env=around, capture_output=True, text=True, check=False
        )
        assert "Traceback" not in done.stdout + done.stderr, done.stderr
        return done

    return call


def test_there_is_no_metadata(bare: Bare) -> None:
    """The other tests rely on it."""
    names = "i('nqbench'), i('numba') is None"
    program = f"from nqbench.system.versions import installed as i; print({names})"
    assert bare(program=program).stdout == "None False\n"


def test_help_version_and_lists(bare: Bare) -> None:
    assert bare("--help").returncode == 0
    assert bare("--version").stdout == f"nqbench {nqbench.__version__}\n"
    for command in ("devices", "kernels", "schema"):
        assert bare(command).returncode == 0


def test_doctor_checks_the_requirements_of_the_source_folder(bare: Bare) -> None:
    said = bare("doctor", "--device", "cpu")
    assert said.returncode == 0, said.stdout
    line = next(line for line in said.stdout.splitlines() if "Python packages" in line)
    assert line.startswith("ok"), line
    assert "requirements met" in line


def test_cpu_points_that_look_up_thread_counts(bare: Bare, tmp_path: Path) -> None:
    systems = "fitness_schemes.cpu_serial, fitness_schemes.cpu_threads"
    (tmp_path / "s.yaml").write_text(STUDY.format(workload="fitness", n=100, systems=systems))
    done = bare("run", tmp_path / "s.yaml", "-d", "cpu", "-o", tmp_path / "r", "--no-report")
    assert done.returncode == 0, done.stderr
    records = read_records(tmp_path / "r").records
    assert [record.status for record in records] == ["ok"] * 4
    assert bare("report", tmp_path / "r", "--format", "html").returncode == 0


def test_a_point_in_the_simulator(bare: Bare, tmp_path: Path) -> None:
    study = STUDY.format(workload="counting", n=6, systems="zhang2011.low_divergence")
    (tmp_path / "s.yaml").write_text(study)
    done = bare("run", tmp_path / "s.yaml", "-d", "sim", "-o", tmp_path / "r", "--no-report")
    assert done.returncode == 0, done.stderr
    assert [record.status for record in read_records(tmp_path / "r").records] == ["ok"]
