"""JSON files of other programs: read, held against a model, refused in one sentence."""

from __future__ import annotations

import json
from collections.abc import Container
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from nqbench.errors import InterchangeError
from nqbench.system.suggest import shown

Root = TypeVar("Root", bound=BaseModel)


def read_json(path: Path, again: str = "") -> Any:
    """The contents of a file. ``again`` says how to write it again, at the end of every message.

    Raises ``InterchangeError`` for what cannot be read, or is not JSON.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InterchangeError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise InterchangeError(f"{path} is not JSON: {error}{again}") from None


def fitting(
    path: Path, data: Any, model: type[Root], kinds: Container[object], again: str = ""
) -> Root:
    """The data as ``model``. ``kinds`` are the model's words for the members of a union, which are
    no part of a place in the file.

    Raises ``InterchangeError`` with the first place that does not fit, and what is there.
    """
    try:
        return model.model_validate(data)
    except ValidationError as errors:
        first = errors.errors(include_url=False)[0]
        steps = (step for step in first["loc"] if step not in kinds)
        where = "".join(f"[{s}]" if isinstance(s, int) else f".{s}" for s in steps)
        where = where.removeprefix(".")
        if first["type"] == "missing":
            raise InterchangeError(f"{path}: {where} is missing{again}") from None
        said = f"{first['msg'][:1].lower()}{first['msg'][1:]}"
        raise wrong(path, where, first["input"], said, again) from None


def wrong(path: Path, where: str, value: object, why: str, again: str = "") -> InterchangeError:
    """The error for a field with a wrong value."""
    return InterchangeError(f"{path}: {where} is {shown(value)}: {why}{again}")
