"""nqbench: reproducible benchmarks and ablations of irregular search on GPUs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nqbench.system.versions import __version__

if TYPE_CHECKING:
    from nqbench.runs.folder import load as load

__all__ = ["__version__", "load"]


def __getattr__(name: str) -> Any:
    """Public functions, imported when first used: ``import nqbench`` stays quick."""
    if name == "load":
        from nqbench.runs.folder import load

        return load
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
