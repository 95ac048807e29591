"""nqbench: which change makes a CUDA kernel faster, by how much, and is its answer right?

The public interface is what ``dir(nqbench)`` lists, and the exceptions of ``nqbench.errors``;
docs/library.md shows it in use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nqbench.system.versions import __version__

if TYPE_CHECKING:
    from nqbench.api import Run, check, compare, expand, explain, judge, launch, load, run, static
    from nqbench.measure.launch import Launched
    from nqbench.study import Study, load_study

__all__ = [
    "Launched",
    "Run",
    "Study",
    "__version__",
    "check",
    "compare",
    "expand",
    "explain",
    "judge",
    "launch",
    "load",
    "load_study",
    "run",
    "static",
]


def __getattr__(name: str) -> Any:
    """Public names, imported when first used: ``import nqbench`` stays quick."""
    if name in __all__:
        from nqbench import api

        return getattr(api, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
