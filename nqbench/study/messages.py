"""pydantic's findings as sentences about a study file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ValidationError

from nqbench.errors import StudyError
from nqbench.study.model import NAME_RULE
from nqbench.study.schema import MeasureFile, ReportFile, StudyFile, SweepFile, SweepKeys
from nqbench.study.yaml_marks import KeyPath, Source
from nqbench.system.suggest import listing, nearest, shown


def study_error(error: ValidationError, source: Source) -> StudyError:
    """The first mistake in the file, in the order of its lines."""
    found = [(tuple(item["loc"]), item) for item in error.errors(include_url=False)]
    ordered = sorted(found, key=lambda pair: source.place(pair[0]).line)
    path, item = ordered[0]
    return source.error(_sentence(path, item), path)


def _sentence(path: KeyPath, item: Mapping[str, Any]) -> str:
    key = next((part for part in reversed(path) if isinstance(part, str)), "the study")
    value = item.get("input")
    context: Mapping[str, Any] = item.get("ctx", {})
    match item["type"]:
        case "extra_forbidden":
            return _unknown_key(str(path[-1]), path[:-1])
        case "missing":
            return f"{_where(path[:-1])} needs the key '{path[-1]}'"
        case "literal_error":
            close = nearest(value, ("error", "skip"))
            hint = f"; did you mean '{close}'?" if close else ""
            return f"'{key}' takes {context['expected']}, not {shown(value)}{hint}"
        case "string_type":
            quoted = isinstance(value, int | float)
            hint = "; put it in quotes" if quoted else ""
            return f"'{key}' takes text, not {_what(value)}{hint}"
        case "string_pattern_mismatch":
            return f"'{key}' is {shown(value)}, but {NAME_RULE}"
        case "int_type" | "int_parsing" | "int_from_float" | "int_parsing_size":
            return f"'{key}' takes a whole number, not {_what(value)}"
        case "greater_than_equal":
            return f"'{key}' is {value}, but must be at least {context['ge']}"
        case "less_than_equal":
            return f"'{key}' is {value}, but must be at most {context['le']}"
        case "list_type":
            return (
                f"'{key}' takes a list of entries (lines that begin with '- '), not {_what(value)}"
            )
        case "dict_type" | "model_type" | "model_attributes_type" | "mapping_type":
            entry = "an entry of " if path and isinstance(path[-1], int) else ""
            return f"{entry}'{key}' takes keys with values (key: value), not {_what(value)}"
        case _:
            return f"'{key}' is wrong: {item['msg']}"


def _unknown_key(key: str, parent: KeyPath) -> str:
    keys = _keys(parent)
    close = nearest(key, keys)
    if close:
        return f"unknown key '{key}' in {_where(parent)}; did you mean '{close}'?"
    factors = "; factors go under fixed, matrix or zip" if "matrix" in keys else ""
    return f"unknown key '{key}' in {_where(parent)}; it takes {listing(keys, 'and')}{factors}"


def _keys(parent: KeyPath) -> list[str]:
    models: dict[str, type[BaseModel]] = {
        "sweeps": SweepFile,
        "measure": MeasureFile,
        "report": ReportFile,
    }
    chosen = models.get(str(parent[0]), StudyFile) if parent else StudyFile
    own_first = sorted(chosen.model_fields, key=lambda name: name in SweepKeys.model_fields)
    return own_first if issubclass(chosen, SweepKeys) else list(chosen.model_fields)


def _where(parent: KeyPath) -> str:
    names = {"sweeps": "a sweep", "measure": "'measure'", "report": "a report entry"}
    return names.get(str(parent[0]), "the study") if parent else "the study"


def _what(value: object) -> str:
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    if isinstance(value, float):
        return f"{value:g}"
    return shown(value)
