"""What the commands print. Its modules are loaded when they are first used: help needs none."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from nqbench.cli.show import answer, console, listings, progress, results

__all__: Final = ["answer", "console", "listings", "progress", "results"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
