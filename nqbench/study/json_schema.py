"""The grammar as JSON Schema, with the factors and systems of the workloads spelt out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from nqbench.study.schema import StudyFile
from nqbench.workloads.base import Factor, Workload

VALUE_OF: Final = {"fixed": "FixedValue", "matrix": "AxisValues", "zip": "AxisValues"}
"""Under which name the form of a factor's value stands in ``$defs``: written out at each factor, it
would make up nearly all of the schema."""


def schema(workloads: Iterable[Workload] | None = None) -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of a study file, for editors and as reference.

    Factor and system names of ``workloads`` (default: all of nqbench's) are spelt out with their
    meanings and levels.
    """
    if workloads is None:
        from nqbench import workloads as registry

        workloads = [registry.get(name) for name in registry.names()]
    known = list(workloads)
    result = StudyFile.model_json_schema()
    result["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    result["title"] = "nqbench study"
    sweep = result["$defs"]["SweepFile"]
    for holder in (result, sweep):
        _name_factors(holder["properties"], result["$defs"], known)
    result["properties"]["workload"]["enum"] = [workload.name for workload in known]
    _tidy(result)
    return result


def _name_factors(
    properties: dict[str, Any], defs: dict[str, Any], workloads: list[Workload]
) -> None:
    """Spell out the factors (and systems) of the workloads in ``fixed``, ``matrix`` and ``zip``."""
    meanings = _meanings(workloads)
    for key, value in VALUE_OF.items():
        form = properties[key]
        defs[value] = form.pop("additionalProperties")
        reference = {"$ref": f"#/$defs/{value}"}
        names = [name for name in meanings if not (key == "fixed" and name == "system")]
        form["properties"] = {name: {"description": meanings[name], **reference} for name in names}
        form["additionalProperties"] = False


def _meanings(workloads: list[Workload]) -> dict[str, str]:
    """What each factor means. Where workloads give a name different meanings or levels, all of
    these stand there, with their workloads."""
    systems = sorted({system for workload in workloads for system in workload.systems})
    told: dict[str, dict[str, list[str]]] = {}
    for workload in workloads:
        for factor in workload.factors.values():
            told.setdefault(factor.name, {}).setdefault(_meaning(factor), []).append(workload.name)
    return {"system": f"A named system: {', '.join(systems)}."} | {
        name: next(iter(texts))
        if len(texts) == 1
        else " ".join(f"{', '.join(who)}: {text}" for text, who in texts.items())
        for name, texts in told.items()
    }


def _meaning(factor: Factor) -> str:
    levels = [*factor.levels, *(["auto"] if factor.auto else [])]
    if factor.number:
        levels.append(f"{factor.number[0]}..{factor.number[1]}")
    if factor.text:
        levels.append("the name of a file")
    return f"{factor.meaning}. Levels: {', '.join(levels)}."


def _tidy(node: Any) -> None:
    """Drop what pydantic adds and no reader needs: generated titles and ``null`` alternatives."""
    if isinstance(node, list):
        for item in node:
            _tidy(item)
    if not isinstance(node, dict):
        return
    if isinstance(node.get("title"), str) and node.get("title") != "nqbench study":
        del node["title"]
    if node.get("default", 0) is None:
        del node["default"]
    options = node.get("anyOf")
    if isinstance(options, list) and {"type": "null"} in options:
        rest = [option for option in options if option != {"type": "null"}]
        del node["anyOf"]
        node.update(rest[0] if len(rest) == 1 else {"anyOf": rest})
    for item in list(node.values()):
        _tidy(item)
