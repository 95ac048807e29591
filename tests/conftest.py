"""What every test needs of its surroundings."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from nqbench.errors import AnalysisError

CACHE = "NQBENCH_CACHE_DIR"
GPU_TESTS = Path(__file__).with_name("gpu")


def pytest_configure(config: pytest.Config) -> None:
    """One compile cache for the whole run, and Ctrl-C for the programs that tests start.

    The cache lies beside pytest's own, so that a second run finds what the first compiled;
    pytest-xdist's workers inherit the variable. A shell that starts pytest in the background makes
    it ignore Ctrl-C; its children inherit that, and a test that sends SIGINT would fail.
    """
    cache = getattr(config, "cache", None)
    if CACHE not in os.environ and cache is not None:
        os.environ[CACHE] = str(cache.mkdir("nqbench"))
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


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
