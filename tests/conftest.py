"""What every test needs of its surroundings."""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock
from hypothesis import settings
from numba.core import compiler_lock

from nqbench.errors import AnalysisError

CACHE = "NQBENCH_CACHE_DIR"
settings.register_profile("any machine", deadline=None)  # an example is not late on a busy one
settings.load_profile("any machine")
GPU_TESTS = Path(__file__).with_name("gpu")


def pytest_configure(config: pytest.Config) -> None:
    """One compile cache for the whole run, and Ctrl-C for the programs that tests start.

    The cache lies beside pytest's own, so that a second run finds what the first compiled;
    pytest-xdist's workers inherit the variable. Tests start some hundred processes, and without
    bytecode each would compile all modules again. A shell that starts pytest in the background
    makes it ignore Ctrl-C; its children inherit that, and a test that sends SIGINT would fail.
    """
    cache = getattr(config, "cache", None)
    if CACHE not in os.environ and cache is not None:
        os.environ[CACHE] = str(cache.mkdir("nqbench"))
    gc.disable()  # until all tests are collected
    sys.dont_write_bytecode = False
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    if "PYTEST_XDIST_WORKER" in os.environ and cache is not None:
        numbas: Any = compiler_lock.global_compiler_lock
        numbas._lock = OneCompiles(cache.mkdir("nqbench") / "lock")
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish() -> None:
    """What is there by now stays: without it, collections of garbage take a tenth of the time."""
    gc.freeze()
    gc.enable()


class OneCompiles:
    """numba's lock, for all of pytest-xdist's workers: what one compiles the others find on disk
    when they get it, and do not compile at the same time."""

    def __init__(self, file: Path) -> None:
        self._thread, self._worker = threading.RLock(), FileLock(file, thread_local=False)

    def acquire(self) -> None:
        self._thread.acquire()
        self._worker.acquire()

    def release(self) -> None:
        self._worker.release()
        self._thread.release()

    def _is_owned(self) -> bool:
        return self._worker.is_locked


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave tests/gpu out where there is no GPU, unless it is asked for: 500 skips take seconds."""
    return True if collection_path == GPU_TESTS and _lacks_gpu(config) else None


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Say what was left out."""
    if _lacks_gpu(config):
        terminalreporter.write_line("tests/gpu was left out: no CUDA GPU here (make test-gpu)")


def _lacks_gpu(config: pytest.Config) -> bool:
    asked = [config.invocation_params.dir / arg.partition("::")[0] for arg in config.args]
    above = any(path in GPU_TESTS.parents for path in asked)
    return above and not any(Path("/dev").glob("nvidia[0-9]*")) and not Path("/dev/dxg").exists()


@pytest.fixture
def no_walks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Deterministic counts take seconds to minutes; tests with this fixture are not about them."""
    from nqbench.workloads.counting import counts

    def refuse(*args: object, **kwargs: object) -> None:
        raise AnalysisError("not here")

    monkeypatch.setattr(counts, "count", refuse)


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures are made and saved empty: how they look is the subject of tests/report."""
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    def saved(_: Figure, to: Any, **options: Any) -> None:
        if hasattr(to, "write"):
            to.write('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9"/>')
        else:
            Path(to).touch()

    monkeypatch.setattr(Figure, "savefig", saved)
    monkeypatch.setattr(ConstrainedLayoutEngine, "execute", lambda *_: None)
