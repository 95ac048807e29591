"""Figures that nobody looks at."""

from __future__ import annotations

from typing import Any

import pytest
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

EMPTY = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9"/>'


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures are made and saved empty: how they look is the subject of tests/report."""

    def saved(_: Figure, to: Any, **options: Any) -> None:
        if hasattr(to, "write"):
            to.write(EMPTY)
        else:
            to.touch()

    monkeypatch.setattr(Figure, "savefig", saved)
    monkeypatch.setattr(ConstrainedLayoutEngine, "execute", lambda *_: None)
