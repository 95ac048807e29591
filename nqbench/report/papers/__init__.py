"""The papers made again: their tables and figures with fresh numbers, and verdicts on claims.

``write_paper`` writes everything for one paper; the other modules build one kind of thing each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nqbench.report.papers.write import write_paper

__all__ = ["write_paper"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from nqbench.report.papers import write

        return getattr(write, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
