"""The CUDA libraries that cuda-bindings calls: how they are loaded, and what pip brings them."""

from __future__ import annotations

import importlib
from typing import Any

from nqbench.system.versions import installed


class NotLoaded(Exception):
    """A library that cannot be loaded, with the first line of the reason."""


def load_bindings(name: str, first_call: str) -> Any:
    """The module ``cuda.bindings.NAME`` with its library loaded. Raises ``NotLoaded``."""
    try:
        module = importlib.import_module(f"cuda.bindings.{name}")
        getattr(module, first_call)()  # the first call loads the library
    except (ImportError, RuntimeError, OSError) as error:
        reason = str(error).strip()
        raise NotLoaded(reason.splitlines()[0] if reason else repr(error)) from error
    return module


def requirements(*packages: str) -> tuple[str, ...]:
    """What pip is to install of NVIDIA's ``packages``, to fit the cuda-bindings that are here."""
    major = (installed("cuda-bindings") or "13").partition(".")[0]
    if major == "12":
        return tuple(f"{name}-cu12>=12.6,<13" for name in packages)
    return tuple(f"{name}>={major},<{int(major) + 1}" for name in packages)
