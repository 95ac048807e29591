"""What the papers print: their systems, tables, figures and claims, read from ``experiments/``.

``load_paper(name)`` gives a checked :class:`~nqbench.papers.schema.Paper`; ``paper_names()`` lists
them. Nothing here knows records or devices.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nqbench.papers.load import load_paper, paper_folder, paper_names, read_paper
    from nqbench.papers.schema import Paper

__all__ = ["Paper", "load_paper", "paper_folder", "paper_names", "read_paper"]


def __getattr__(name: str) -> Any:
    if name == "Paper":
        from nqbench.papers.schema import Paper

        return Paper
    if name in __all__:
        from nqbench.papers import load

        return getattr(load, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
