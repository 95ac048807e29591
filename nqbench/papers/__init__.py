"""The papers: their systems, tables, figures and claims, read from ``experiments/``.

``load_paper(name)`` gives a checked :class:`~nqbench.papers.schema.Paper`; ``paper_names()`` lists
them. Nothing here knows records or devices.
"""

from nqbench.papers.load import load_paper, paper_folder, paper_names, read_paper
from nqbench.papers.schema import Paper

__all__ = ["Paper", "load_paper", "paper_folder", "paper_names", "read_paper"]
