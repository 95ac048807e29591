"""Fixtures of the simulator's tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from nqbench.simulator import translation
from nqbench.simulator.codegen import memory


@pytest.fixture(params=["inline", "called"])
def accesses(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Both forms of accesses to shared and local memory, which differ in nothing that is seen."""
    if request.param == "called":
        monkeypatch.setattr(memory, "MANY_ACCESSES", -1)
    translation.build.cache_clear()
    yield
    translation.build.cache_clear()
