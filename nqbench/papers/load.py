"""Reading ``experiments/PAPER/published.yaml``: marks for every mistake, digits as printed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import yaml
from pydantic import ValidationError

from nqbench.errors import Place, StudyError
from nqbench.papers.schema import Paper
from nqbench.study.packaged import papers_with
from nqbench.system.suggest import listing, nearest, suggestion

PUBLISHED: Final = "published.yaml"
Key = str | int


@dataclass(frozen=True, slots=True)
class Marked:
    """A file as plain text values; ``lines`` maps a path of keys to its line, from 1."""

    path: Path
    data: Any
    lines: dict[tuple[Key, ...], int]

    def error(self, message: str, path: Iterable[Key] = ()) -> StudyError:
        """A ``StudyError`` at the line of a path, or of what encloses it."""
        where = tuple(path)
        while where and where not in self.lines:
            where = where[:-1]
        return StudyError(message, Place(self.path, self.lines.get(where, 1)))


def paper_names() -> tuple[str, ...]:
    """Names of the papers there are: those in ``./experiments``, and those of nqbench."""
    return tuple(sorted(papers_with(PUBLISHED)))


def paper_folder(name: str) -> Path:
    """The folder of a paper. Raises ``StudyError`` with the nearest name for an unknown one."""
    found = papers_with(PUBLISHED)
    if name not in found:
        raise StudyError(f"there is no paper '{name}'; {suggestion(name, sorted(found))}")
    return found[name]


def load_paper(name: str) -> Paper:
    """A paper by name. Raises ``StudyError``: no such paper, or a mistake in its file."""
    file = paper_folder(name) / PUBLISHED
    changed = max(part.stat().st_mtime_ns for part in (file, *file.parent.glob("*.csv")))
    return _cached(file.resolve(), changed)


@lru_cache(maxsize=16)
def _cached(file: Path, modified_ns: int) -> Paper:  # noqa: ARG001 (an edited file is another one)
    return read_paper(file)


def read_paper(file: Path) -> Paper:
    """Read and check one file. Raises ``StudyError`` with file:line for the first mistake."""
    from nqbench.papers.check import check
    from nqbench.papers.data import with_data

    marked = _read(Path(file))
    try:
        paper = Paper.model_validate(marked.data)
    except ValidationError as error:
        raise _form_error(error, marked) from error
    check(paper, marked)
    return with_data(paper, marked)


def _read(path: Path) -> Marked:
    try:
        node = yaml.compose(path.read_text(encoding="utf-8"), Loader=yaml.BaseLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or "it cannot be read"
        raise StudyError(
            f"this is not valid YAML: {problem}", Place(path, mark.line + 1 if mark else 1)
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        raise StudyError(f"{path} cannot be read: {error}") from error
    if not isinstance(node, yaml.MappingNode):
        raise StudyError("a paper's file is a mapping of keys to values", Place(path, 1))
    lines: dict[tuple[Key, ...], int] = {}
    return Marked(path, _plain(node, (), lines, path, set()), lines)


def _plain(
    node: yaml.Node,
    at: tuple[Key, ...],
    lines: dict[tuple[Key, ...], int],
    path: Path,
    seen: set[int],
) -> Any:
    lines.setdefault(at, node.start_mark.line + 1)
    if isinstance(node, yaml.ScalarNode):
        return node.value
    if id(node) in seen:
        raise StudyError("anchors have no use here; write it out", Place(path, lines[at]))
    seen.add(id(node))
    if isinstance(node, yaml.SequenceNode):
        return [_plain(item, (*at, i), lines, path, seen) for i, item in enumerate(node.value)]
    result: dict[str, Any] = {}
    for key_node, value_node in node.value:
        key = str(key_node.value)
        line = key_node.start_mark.line + 1
        if key in result:
            raise StudyError(f"the key '{key}' is given twice; keep one of them", Place(path, line))
        lines[*at, key] = line
        result[key] = _plain(value_node, (*at, key), lines, path, seen)
    return result


def _form_error(error: ValidationError, marked: Marked) -> StudyError:
    """pydantic's first finding as a sentence.

    A misspelt key is also a missing one: what is there and unknown says more.
    """
    found = error.errors(include_url=False)
    item = next((e for e in found if e["type"] == "extra_forbidden"), found[0])
    path = tuple(item["loc"])
    key = next((part for part in reversed(path) if isinstance(part, str)), "the file")
    if item["type"] == "extra_forbidden":
        known = _keys(path[:-1])
        close = nearest(key, known)
        hint = f"; did you mean '{close}'?" if close else f"; it takes {listing(known, 'and')}"
        return marked.error(f"unknown key '{key}'{hint}", path)
    if item["type"] == "missing":
        return marked.error(f"the key '{key}' is missing", path)
    said = str(item["msg"])[:1].lower() + str(item["msg"])[1:]
    return marked.error(f"'{key}' is {item.get('input')!r}, but {said}", path)


def _keys(path: tuple[Key, ...]) -> list[str]:
    """Keys that the part at a path may hold."""
    model: Any = Paper
    for part in path:
        if isinstance(part, str) and part in getattr(model, "model_fields", {}):
            found = [model.model_fields[part].annotation]
            while found and not hasattr(found[0], "model_fields"):
                found = list(getattr(found[0], "__args__", ())) + found[1:]
                found = [f for f in found if hasattr(f, "model_fields") or hasattr(f, "__args__")]
            model = found[0] if found else model
    return [field.alias or name for name, field in model.model_fields.items()]
