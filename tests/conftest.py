"""What every test needs of its surroundings."""

from __future__ import annotations

import os
import signal

import pytest

from nqbench.errors import AnalysisError

CACHE = "NQBENCH_CACHE_DIR"


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


@pytest.fixture
def no_walks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Deterministic counts take seconds to minutes; tests with this fixture are not about them."""
    from nqbench.workloads.counting import counts

    def refuse(*args: object, **kwargs: object) -> None:
        raise AnalysisError("not here")

    monkeypatch.setattr(counts, "count", refuse)
