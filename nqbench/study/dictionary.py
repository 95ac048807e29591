"""A study given as a dictionary: checked as a file is; mistakes are located by their keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from nqbench.errors import FileLine, StudyError
from nqbench.system.suggest import shown
from nqbench.system.yaml_marks import Key, KeyPath, Source, parse

STUDY: Final = Path("study")
"""Its name in messages: ``study['n'][1]``."""


@dataclass(frozen=True, slots=True)
class DictKeys(FileLine):
    """A position in a dictionary: the keys that lead there."""

    keys: KeyPath = ()

    def __str__(self) -> str:
        return str(self.path) + "".join(f"[{key!r}]" for key in self.keys)


@dataclass(frozen=True, slots=True)
class DictSource(Source):
    """A dictionary; ``text`` is its form in a file."""

    def place(self, path: KeyPath = ()) -> FileLine:
        """The keys of the nearest enclosing value that exists."""
        while path and path not in self.lines:
            path = path[:-1]
        return DictKeys(self.path, self.lines.get(path, 1), path)


def read_dict(data: Mapping[str, Any]) -> Source:
    """Read a study from a dictionary. Raises ``StudyError`` that names the keys of a mistake."""
    if not data:
        raise StudyError(f"the {STUDY} is empty; it is keys with values, as in a file")
    try:
        text = yaml.safe_dump(dict(data), sort_keys=False, allow_unicode=True)
    except yaml.representer.RepresenterError as error:
        value = error.args[-1]
        raise StudyError(
            f"{STUDY} holds {shown(repr(value))}, of type {type(value).__name__}; it takes numbers,"
            " text, lists and dictionaries"
        ) from error
    except RecursionError as error:
        raise StudyError(f"{STUDY} is nested too deeply") from error
    try:
        source = parse(STUDY, text)
    except StudyError as error:
        line = error.place.line if error.place else 1
        raise StudyError(error.message, DictKeys(STUDY, line, _keys_at(text, line))) from error
    return DictSource(source.path, source.text, source.data, source.lines)


def _keys_at(text: str, line: int) -> KeyPath:
    """The keys of the value on a line of what ``safe_dump`` wrote."""
    seen: set[int] = set()  # for a value in several places, or inside itself

    def walk(node: yaml.Node, keys: KeyPath) -> KeyPath:
        if not node.value or isinstance(node, yaml.ScalarNode):
            return keys if node.start_mark.line + 1 == line else ()
        if id(node) in seen:
            return ()
        seen.add(id(node))
        inside: list[tuple[Key, yaml.Node]] = []
        if isinstance(node, yaml.MappingNode):
            inside = [(str(key.value), value) for key, value in node.value]
        elif isinstance(node, yaml.SequenceNode):
            inside = list(enumerate(node.value))
        return next((found for key, item in inside if (found := walk(item, (*keys, key)))), ())

    root = yaml.compose(text, Loader=yaml.SafeLoader)
    return () if root is None else walk(root, ())
