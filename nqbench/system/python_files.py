"""Python files of a user's, loaded as modules; their mistakes as sentences with file and line."""

from __future__ import annotations

import importlib.util
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from nqbench.errors import StudyError
from nqbench.system.suggest import nearest_file, shown, suggestion
from nqbench.system.versions import PACKAGE

PREFIX: Final = "study_file_"
"""Modules of such files are called after them, and never like a library."""
_stamps: dict[str, tuple[str, int]] = {}
"""Which file each of them was loaded from, and when that was changed last."""


def module_name(path: Path) -> str:
    """What the module of a file is called."""
    return PREFIX + path.stem.replace(".", "_")


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


def where_raised(error: BaseException) -> str:
    """An exception in one sentence, with the last line of the user's own that it passed."""
    if isinstance(error, SyntaxError):
        file = Path(error.filename or "").name
        return f"{file}:{error.lineno}: {type(error).__name__}: {error.msg}"
    frames = [f for f in traceback.extract_tb(error.__traceback__) if _is_own(f.filename)]
    place = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}: " if frames else ""
    said = str(error).splitlines()[0] if str(error) else ""
    return f"{place}{type(error).__name__}" + (f": {said}" if said else "")


def _is_own(file: str) -> bool:
    path = Path(file)
    inside = PACKAGE in path.parents or "site-packages" in path.parts or file.startswith("<")
    return not inside and not path.is_relative_to(Path(traceback.__file__).parent)
