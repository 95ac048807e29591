"""Reads YAML as plain data with the line of every key and value, and checks it against a form.

YAML 1.1 silently converts words (``on`` to true, ``010`` to 8, ``1:30`` to 90). No value in a study
is a date or an octal number, and outside ``kernel`` none is a truth value, so all of these are
refused here. In a paper's file every value stays text, as printed.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar, get_args

import yaml
from yaml.composer import Composer
from yaml.constructor import SafeConstructor
from yaml.resolver import Resolver

from nqbench.errors import FileLine, StudyError
from nqbench.system.files import open_at_once
from nqbench.system.suggest import listing, nearest, nearest_file, shown

if TYPE_CHECKING:
    from pydantic import BaseModel

FormT = TypeVar("FormT", bound="BaseModel")

Key = str | int
KeyPath = tuple[Key, ...]

MAX_BYTES: Final = 1_000_000
"""A study is a page or two, a paper twenty; beyond this it is another file given by mistake."""

MAX_NODES: Final = 100_000
"""Values in a file after its anchors are expanded: a few nested anchors can make billions."""

FLAGS_UNDER: Final = ("kernel",)
"""The part of a study that has flags: ``true`` and ``false``, written so."""

MAY_BE_EMPTY: Final = ("report", "l1_holds", "shared_carveouts")
"""Keys whose list may have no entries."""

_UNION: Final = ("int", "float", "str")

_READINGS: Final = {
    "bool": "a truth value; put it in quotes if it is a name, or write 0 and 1",
    "timestamp": "a date; put it in quotes if it is text",
    "int": "a number in base 2, 8 or 60; write a plain decimal number",
    "float": "a number in base 60; write a plain decimal number",
}
_TAG: Final = "tag:yaml.org,2002:"
_LONG_INT: Final = re.compile(r"[-+]?([1-9][0-9_]*|0x[0-9a-fA-F]+)")
_SCIENTIFIC: Final = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d+")
"""``1e-4``: YAML 1.1 takes it for text, as it lacks a point or a sign; YAML 1.2 for a number."""
_PLAIN_INT: Final = re.compile(r"[-+]?(0|[1-9][0-9_]{0,18})|0x[0-9a-fA-F]{1,15}")


@dataclass(frozen=True, slots=True)
class ParsedFile:
    """A parsed file. ``lines`` maps the path of a key or list item to its line, from 1.

    ``in_memory``: it was a dictionary, whose places are keys (``study['n'][1]``). ``words``: it
    was a command line, whose places are its options.
    """

    path: Path
    text: str
    data: Mapping[str, Any]
    lines: Mapping[KeyPath, int]
    noun: str = "study"
    in_memory: bool = False
    words: Mapping[KeyPath, str] = field(default_factory=dict)

    def place(self, path: KeyPath = ()) -> FileLine:
        """Where ``path`` is written; the nearest enclosing key if it is not written itself."""
        while path and path not in (self.words or self.lines):
            path = path[:-1]
        if path in self.words:
            return FileLine(self.words[path], 0)
        if self.in_memory:
            return FileLine(Path(f"{self.path}{''.join(f'[{key!r}]' for key in path)}"), 0)
        return FileLine(self.path, self.lines.get(path, 1))

    def error(self, message: str, path: KeyPath = ()) -> StudyError:
        """A ``StudyError`` that points at ``path``."""
        if path and self.words:  # which name what is wrong
            message = re.sub(rf"^'?{innermost(path)}'?: ", "", message)
        return StudyError(message, self.place(path))

    @contextmanager
    def at(self, path: KeyPath, prefix: str = "") -> Iterator[None]:
        """Give a ``StudyError`` that has no place yet the place of ``path``."""
        try:
            yield
        except StudyError as error:
            if error.place is not None:
                raise
            raise self.error(prefix + error.message, path) from error


def read(path: Path, noun: str = "study", *, as_text: bool = False) -> ParsedFile:
    """Read and parse a file. ``noun`` says what it holds; ``as_text`` leaves every value as it is
    written. Raises ``StudyError`` with file:line."""
    return parse(path, _text(path, noun), noun, as_text=as_text)


def parse(path: Path, text: str, noun: str = "study", *, as_text: bool = False) -> ParsedFile:
    """Parse the text of a file, as :func:`read`. Raises ``StudyError`` with file:line."""
    try:
        node = _composed(text)
    except yaml.YAMLError as error:
        raise _syntax_error(path, text, error, noun) from error
    except RecursionError as error:
        said = f"the file is nested too deeply to be a {noun}"
        raise StudyError(said, FileLine(path, 1)) from error
    if node is None or (isinstance(node, yaml.ScalarNode) and not node.value):
        raise StudyError(f"the file is empty; a {noun} is keys with values", FileLine(path, 1))
    if not isinstance(node, yaml.MappingNode):
        raise StudyError(
            f"a {noun} is a mapping of keys to values (key: value), but this file holds"
            f" {'a list' if isinstance(node, yaml.SequenceNode) else 'a single value'}",
            FileLine(path, node.start_mark.line + 1),
        )
    reader = _NodeReader(path, as_text)
    data = reader.value(node, ())
    assert isinstance(data, dict)
    return ParsedFile(path, text, data, reader.lines, noun)


if yaml.__with_libyaml__:
    from yaml._yaml import CParser

    class _FastLoader(Composer, CParser, Resolver):
        """libyaml's parser, several times as fast as Python's, below Python's composer, which
        notices when nodes are nested too deeply."""

        def __init__(self, text: str) -> None:
            CParser.__init__(self, text)
            Composer.__init__(self)
            Resolver.__init__(self)


def _composed(text: str) -> yaml.Node | None:
    """The file's nodes. What libyaml refuses goes to Python's parser: its sentences are better."""
    if yaml.__with_libyaml__ and "\t" not in text:  # libyaml lets tabs pass in more places
        with suppress(yaml.YAMLError):
            return _FastLoader(text).get_single_node()
    return yaml.compose(text, Loader=yaml.SafeLoader)


def _text(path: Path, noun: str) -> str:
    if path.is_dir():
        inside = sorted(p.name for p in path.glob("*.y*ml"))
        hint = f"name one of its files: {', '.join(inside[:5])}" if inside else "name a YAML file"
        raise StudyError(f"{path} is a folder, not a {noun}; {hint}")
    try:
        with open(path, "rb", opener=open_at_once) as file:
            raw = file.read(MAX_BYTES + 1)
    except FileNotFoundError as error:
        close = nearest_file(path, ".yaml", ".yml")
        hint = f"; did you mean {close}?" if close else ""
        raise StudyError(f"there is no {noun} file {path}{hint}") from error
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise StudyError(f"the {noun} file {path} cannot be read: {reason}") from error
    if len(raw) > MAX_BYTES:
        raise StudyError(f"the file is larger than {MAX_BYTES:,} bytes", FileLine(path, 1))
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        said = f"the file is not UTF-8 text (byte 0x{raw[error.start]:02x}); save it as UTF-8"
        raise StudyError(said, FileLine(path, line)) from error


def _syntax_error(path: Path, text: str, error: yaml.YAMLError, noun: str) -> StudyError:
    if isinstance(error, yaml.reader.ReaderError):
        line = text[: error.position].count("\n") + 1
        return StudyError(
            f"the file holds a control character (U+{ord(text[error.position]):04X})"
            " that YAML does not allow; delete it",
            FileLine(path, line),
        )
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    problem = str(getattr(error, "problem", None) or error)
    context = getattr(error, "context", None)
    if "'\\t'" in problem:
        message = "a tab is used for indentation; YAML takes only spaces"
    elif "single document" in str(context):
        message = f"a second YAML document starts here; one file holds one {noun}"
    else:
        message = (
            f"this is not valid YAML: {problem}{f' ({context})' if context else ''}; check brackets"
            " and indentation, write a space after each colon, and quote text that holds ': ' or"
            " ',' or begins with a brace"
        )
    return StudyError(message, FileLine(path, mark.line + 1 if mark else 1))


class _NodeReader:
    """Turns YAML nodes into plain data and records their lines."""

    def __init__(self, path: Path, as_text: bool) -> None:
        self.path, self.as_text = path, as_text
        self.lines: dict[KeyPath, int] = {(): 1}
        self.open: set[int] = set()
        self.nodes = 0

    def error(self, message: str, node: yaml.Node, keys: KeyPath = ()) -> StudyError:
        return StudyError(message, FileLine(self.path, node.start_mark.line + 1), keys=keys)

    def value(self, node: yaml.Node, path: KeyPath) -> Any:
        self.nodes += 1
        if self.nodes > MAX_NODES:
            raise self.error(f"the file holds more than {MAX_NODES:,} values", node, path)
        if isinstance(node, yaml.ScalarNode):
            return self.scalar(node, path)
        if id(node) in self.open:
            raise self.error("an anchor refers to itself, so the file would never end", node, path)
        if node.tag not in (_TAG + "map", _TAG + "seq"):
            raise self.error(f"the YAML tag {shown(node.tag)} has no meaning here", node, path)
        if not node.value and not self.as_text and innermost(path) not in MAY_BE_EMPTY:
            said = f"'{innermost(path)}' is empty; give it a value or delete it"
            raise self.error(said, node, path)
        self.open.add(id(node))
        try:
            return self.mapping(node, path) if node.tag == _TAG + "map" else self.items(node, path)
        finally:
            self.open.discard(id(node))

    def items(self, node: yaml.Node, path: KeyPath) -> list[Any]:
        result = []
        for index, item in enumerate(node.value):
            self.lines[*path, index] = item.start_mark.line + 1
            result.append(self.value(item, (*path, index)))
        return result

    def mapping(self, node: yaml.Node, path: KeyPath) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = self.key(key_node)
            line, scalar = key_node.start_mark.line + 1, isinstance(value_node, yaml.ScalarNode)
            if key in result:
                raise self.error(
                    f"the key '{key}' is given twice (first on line {self.lines[*path, key]});"
                    " keep one of them",
                    key_node,
                )
            self.lines[*path, key] = max(line, value_node.start_mark.line + 1) if scalar else line
            result[key] = self.value(value_node, (*path, key))
        return result

    def key(self, node: yaml.Node) -> str:
        if not isinstance(node, yaml.ScalarNode):
            raise self.error("a key must be a word, not a list or a mapping", node)
        if node.tag == _TAG + "merge":
            raise self.error("there are no merge keys (<<): write the keys of that mapping", node)
        return str(node.value)

    def scalar(self, node: yaml.ScalarNode, path: KeyPath) -> str | int | float | bool:
        kind = node.tag.removeprefix(_TAG)
        written = node.value
        if self.as_text or kind in ("str", "value"):
            number = not self.as_text and not node.style and _SCIENTIFIC.fullmatch(written)
            return float(written) if number else str(written)
        if kind == "null":
            hint = "give it one, delete it, or put the text that it is part of in quotes"
            raise self.error(f"'{innermost(path)}' has no value; {hint}", node, path)
        if kind == "int" and _PLAIN_INT.fullmatch(written):
            return int(written.replace("_", ""), 16 if "x" in written else 10)
        if kind == "int" and _LONG_INT.fullmatch(written):
            said = f"{shown(written)} at '{innermost(path)}' is too large a number"
            raise self.error(said, node, path)
        if kind == "float":
            number = SafeConstructor().construct_object(node)
            if isinstance(number, float) and ":" not in written:
                return number
        if kind == "bool" and path[:1] == FLAGS_UNDER and written in ("true", "false"):
            return str(written) == "true"
        if kind in _READINGS:
            said = f"YAML reads {written} at '{innermost(path)}' as {_READINGS[kind]}"
            raise self.error(said, node, path)
        raise self.error(f"the YAML tag {shown(node.tag)} has no meaning here", node, path)


def innermost(path: KeyPath) -> str:
    """The innermost key of a path, for a sentence."""
    return next((part for part in reversed(path) if isinstance(part, str)), "the file")


def fit(source: ParsedFile, form: type[FormT], at: KeyPath = ()) -> FormT:
    """The file's data (the part below ``at``) in its form. Raises ``StudyError`` for the first
    mistake, by line.

    A misspelt key also leaves a key missing: the unknown one is the better message.
    """
    from pydantic import ValidationError

    data: Any = source.data
    for key in at:
        data = data[key]
    try:
        return form.model_validate(data)
    except ValidationError as error:
        found = [((*at, *item["loc"]), item) for item in error.errors(include_url=False)]
        path, item = min(
            found, key=lambda pair: (pair[1]["type"] == "missing", source.place(pair[0]).line)
        )
        if path not in source.lines and path[-1] in _UNION:  # pydantic's names of a union's parts
            parts = {loc[-1] for loc, _ in found if loc[:-1] == path[:-1]}
            what = "a number or text" if "float" in parts else "a whole number or text"
            said = f"'{innermost(path[:-1])}' takes {what}, not {_what(item.get('input'))}"
            raise source.error(said, path[:-1]) from error
        holder = _form_at(form, path[len(at) : -1])
        raise source.error(_sentence(source, holder, path, item), path) from error


def _sentence(
    source: ParsedFile, holder: type[BaseModel], path: KeyPath, item: Mapping[str, Any]
) -> str:
    where = f"the {source.noun}"
    if above := path[:-1]:
        where = f"{'an entry of ' * isinstance(above[-1], int)}'{innermost(above)}'"
    if item["type"] == "extra_forbidden":
        if former := getattr(holder, "FORMER", {}).get(path[-1]):
            return str(former)
        keys = [field.alias or name for name, field in holder.model_fields.items()]
        if close := nearest(path[-1], keys):
            return f"unknown key '{path[-1]}' in {where}; did you mean '{close}'?"
        factors = "; factors go under fixed, matrix or zip" if "matrix" in keys else ""
        return f"unknown key '{path[-1]}' in {where}; it takes {listing(keys, 'and')}{factors}"
    value, context = item.get("input"), item.get("ctx", {})
    close = nearest(value, re.findall(r"'([^']*)'", str(context.get("expected"))))
    field = holder.model_fields.get(str(path[-1])) if path else None
    message = str(item["msg"])
    facts = {
        **context,
        "where": where,
        "last": path[-1] if path else "",
        "key": innermost(path),
        "value": value,
        "given": shown(value),
        "kind": _what(value),
        "near": f"; did you mean '{close}'?" if close else "",
        "quotes": "; put it in quotes" if isinstance(value, int | float) else "",
        "entry": "an entry of " if path and isinstance(path[-1], int) else "",
        "about": " ".join(str(field and field.description).partition(";")[0].rstrip(".").split()),
        "said": message[:1].lower() + message[1:],
    }
    told = tomllib.loads(Path(__file__).with_name("sentences.toml").read_text(encoding="utf-8"))
    rules = {kind: rule for kinds, rule in told.items() for kind in kinds.split()}
    return str(rules.get(item["type"], "'{key}' is {given}, but {said}")).format_map(facts)


def _form_at(form: type[BaseModel], path: KeyPath) -> type[BaseModel]:
    for key in path:
        field = form.model_fields.get(str(key))
        inside: list[Any] = [field.annotation] if field else []
        while inside and not hasattr(inside[0], "model_fields"):
            inside = [*getattr(inside[0], "__args__", ()), *inside[1:]]
            inside = [part for part in inside if hasattr(part, "model_fields") or get_args(part)]
        form = inside[0] if inside else form
    return form


def _what(value: object) -> str:
    if isinstance(value, dict | list):
        return "a mapping" if isinstance(value, dict) else "a list"
    return f"{value:g}" if isinstance(value, float) else shown(value)
