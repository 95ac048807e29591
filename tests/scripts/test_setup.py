"""Set-up: which packages fit which driver, when it is done again, what a failure says."""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "setup.py"


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(SCRIPT.parent))
    return importlib.import_module("setup_gpu")


@pytest.fixture
def setup(gpu: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    spec = importlib.util.spec_from_file_location("nqbench_setup", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("cuda", "capability", "extra", "runtime"),
    [
        ((13, 0), (9, 0), "", "nvidia-cuda-runtime>=13.0,<13.1"),
        ((13, 2), (7, 5), "", "nvidia-cuda-runtime>=13.0,<13.3"),
        # Volta: CUDA 13 no longer compiles for it
        ((13, 1), (7, 0), "cuda12", "nvidia-cuda-runtime-cu12>=12.0,<12.100"),
        ((12, 4), (9, 0), "cuda12", "nvidia-cuda-runtime-cu12>=12.0,<12.5"),
        ((12, 0), (6, 1), "cuda12", "nvidia-cuda-runtime-cu12>=12.0,<12.1"),
    ],
)
def test_compiler_and_headers_fit_driver_and_chip(
    gpu: Any, cuda: tuple[int, int], capability: tuple[int, int], extra: str, runtime: str
) -> None:
    """Headers are not newer than the driver; without a driver the newest compiler is taken."""
    driver = gpu.Driver("/lib/libcuda.so.1", cuda, capability)
    assert (gpu.compiler_extra(driver), gpu.compiler_extra(None)) == (extra, "")
    packages = gpu.header_packages(driver)
    assert packages[0] == runtime
    assert packages[1].startswith("nvidia-cuda-profiler-api")


def test_build_needs_no_toolkit(gpu: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    toolkit = tmp_path / "cuda" / "bin"
    toolkit.mkdir(parents=True)
    (toolkit / "nvcc").touch()
    monkeypatch.setenv("PATH", f"{toolkit}{os.pathsep}/usr/bin")
    include = tmp_path / "headers" / "nvidia" / "cu13" / "include"
    include.mkdir(parents=True)
    (include / "cuda.h").touch()
    library = tmp_path / "libcuda.so.1"
    library.touch()
    folder = tmp_path / "build"
    folder.mkdir()
    driver = gpu.Driver(str(library), (13, 0), (9, 0))
    environment = gpu.build_environment(folder, tmp_path / "headers", driver)
    assert environment["PATH"] == "/usr/bin"
    assert environment["CPATH"].split(os.pathsep)[0] == str(include)
    links = Path(environment["LIBRARY_PATH"].split(os.pathsep)[0])
    assert (links / "libcuda.so").resolve() == library
    settings = Path(environment["HOME"]) / ".aksetup-defaults.py"
    assert "CUDA_ENABLE_CURAND = False" in settings.read_text()
    assert "setup" not in os.environ.get("HOME", "")  # only the build has another home


def test_what_the_build_lacks_is_one_sentence(gpu: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "LIBRARY", "libcuda-that-is-nowhere.so.1")
    assert gpu.find_driver() is None, "no driver is no error"
    monkeypatch.setattr(gpu.shutil, "which", lambda name: None)
    monkeypatch.setattr(gpu.sysconfig, "get_path", lambda name: "/nowhere")
    assert gpu.lacking() == (
        "PyCUDA needs g++ and the Python headers (python3-dev); install and run make again"
    )
    monkeypatch.setattr(gpu.shutil, "which", lambda name: "/usr/bin/g++")
    assert "g++" not in gpu.lacking()


def test_a_gpu_that_cannot_be_used_stops_nothing(
    setup: Any, gpu: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to(sys.executable)
    driver = gpu.Driver("/lib/libcuda.so.1", (13, 0), (9, 0))
    sentence = setup.add_pycuda(tmp_path, driver, "PyCUDA needs g++; install and run make again")
    assert sentence == "no GPU will be used: PyCUDA needs g++; install and run make again"
    assert capsys.readouterr().err == f"setup: {sentence}\n"
    old = gpu.Driver("/lib/libcuda.so.1", (11, 4), (8, 0), "the NVIDIA driver serves CUDA 11.4")
    assert "serves CUDA 11.4" in setup.add_pycuda(tmp_path, old, "")


@pytest.mark.parametrize(
    ("output", "said"),
    [
        ("WARNING: ... NewConnectionError('...')\nERROR: No matching", "cannot be reached"),
        ("OSError: [Errno 28] No space left on device", "the disk is full"),
        ("x\nERROR: Could not find a version\nmore", "pip failed: ERROR: Could not find a version"),
        ("x\nlast words\n\n", "pip failed: last words"),
    ],
)
def test_a_failure_of_pip_is_one_sentence(setup: Any, output: str, said: str) -> None:
    sentence = setup.why_pip_failed(output, Path("/venv/log"))
    assert said in sentence
    assert "/venv/log" in sentence
    assert "\n" not in sentence


def test_an_old_python_starts_a_newer_one_or_says_so(
    setup: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    started: list[list[str]] = []

    def call(command: list[str]) -> int:
        started.append(command)
        return 0

    monkeypatch.setattr(setup, "OLDEST", (99, 0))
    monkeypatch.setattr(setup.subprocess, "call", call)
    monkeypatch.setattr(setup.shutil, "which", lambda name: f"/usr/bin/{name}")
    assert setup.main([]) == 0
    assert started[0][0] == "/usr/bin/python3.13"
    monkeypatch.setattr(setup.shutil, "which", lambda name: None)
    assert setup.main([]) == 1
    assert "needs Python 3.11 or later" in capsys.readouterr().err


def test_nothing_is_done_twice(
    setup: Any, gpu: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed: list[list[str]] = []
    monkeypatch.setattr(gpu, "find_driver", lambda: None)
    monkeypatch.setattr(setup, "make_venv", lambda venv: venv.mkdir(exist_ok=True))
    monkeypatch.setattr(setup, "install", lambda venv, what: installed.append(what))
    venv = tmp_path / "venv"
    setup.prepare(venv, dev=False)
    setup.prepare(venv, dev=False)
    assert [what[1:] for what in installed] == [[str(ROOT)]]
    setup.prepare(venv, dev=True)
    setup.prepare(venv, dev=True)
    setup.prepare(venv, dev=False)  # the development packages include the others
    assert [what[1:] for what in installed] == [[str(ROOT)], [f"{ROOT}[dev]"]]
    stamp = json.loads((venv / setup.STAMP).read_text())
    (venv / setup.STAMP).write_text(json.dumps(stamp | {"key": "of another pyproject.toml"}))
    setup.prepare(venv, dev=False)
    assert len(installed) == 3

    def interrupted(venv: Path, what: list[str]) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(setup, "install", interrupted)
    with pytest.raises(KeyboardInterrupt):
        setup.prepare(tmp_path / "other", dev=False)
    assert setup.read_stamp(tmp_path / "other") == {}, "it is done again"
    assert installed[2][1].endswith("[dev]")  # what was there stays


PIP = "#!/bin/sh\n[ $1 = -c ] || { echo $0: NewConnectionError: refused; exit 1; }\n"


def test_without_a_network_the_script_says_so(tmp_path: Path) -> None:
    """The real script, in an environment whose pip reaches no package index."""
    python = tmp_path / "venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(PIP)
    python.chmod(0o755)
    command = [sys.executable, str(SCRIPT), "--venv", str(tmp_path / "venv")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "the package index cannot be reached" in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr


def test_a_python_without_venv_is_told_what_to_install(
    setup: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_ensurepip(command: list[str], **more: object) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(command, 1, "ensurepip is not available\n", "")

    monkeypatch.setattr(setup.subprocess, "run", no_ensurepip)
    with pytest.raises(setup.SetupError, match=r"venv module is not installed.*apt-get install"):
        setup.make_venv(tmp_path / "venv")
