"""Python files of a user's, loaded as modules."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from nqbench.errors import StudyError
from nqbench.system.crash import where_raised
from nqbench.system.suggest import nearest_file, shown, suggestion

_stamps: dict[str, tuple[str, int]] = {}
"""Which file each of them was loaded from, and when that was changed last."""


def module_name(path: Path) -> str:
    """What the module of a file is called: after the file, and never like a library."""
    return "study_file_" + path.stem.replace(".", "_")


def load_file(path: Path) -> ModuleType:
    """The module of a file, loaded again once the file has changed. Raises ``StudyError`` if it is
    missing or raises."""
    path = path.resolve()
    name = module_name(path)
    stamp = (str(path), path.stat().st_mtime_ns if path.is_file() else 0)
    if name in sys.modules and _stamps.get(name) == stamp:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not path.is_file():
        close = nearest_file(path, ".py")
        hint = f"; did you mean {close.name}?" if close else ""
        raise StudyError(f"there is no Python file {path.name}{hint}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise StudyError(where_raised(error)) from error
    _stamps[name] = stamp
    return module


def load_function(path: Path, name: str) -> Callable[..., Any]:
    """A function of a file. Raises ``StudyError`` if there is none of that name."""
    module = load_file(path)
    found = getattr(module, name, None)
    if not callable(found):
        named = [n for n, value in vars(module).items() if callable(value) and n[:1] != "_"]
        hint = f"; {suggestion(name, named)}" if named else ""
        raise StudyError(f"{path.name} has no function {shown(name)}{hint}")
    function: Callable[..., Any] = found
    return function
