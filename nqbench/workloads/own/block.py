"""A study's block ``kernel`` as plain data: its parts in one form each, and the files it names."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from numpy.typing import NDArray

from nqbench.errors import StudyError
from nqbench.system.files import written
from nqbench.workloads.base import Factor

NOT_COMPUTED: Final = ("factors", "systems", "metrics")
"""Keys of the block that change no number: levels are part of a point anyway."""
BRACES: Final = re.compile(r"\{([^{}]*)\}")
NUMPY_FILE: Final = ".npy"
MAX_LEVEL: Final = 2**31 - 1
MAX_SIZE: Final = 2**63 - 1
Part = Mapping[str, Any]


class Block:
    """The block of one study, as its YAML has it; ``nqbench.study.own_kernel`` has checked it."""

    def __init__(self, data: Part, folder: Path | None, lines: Part | None = None) -> None:
        """``folder`` is that of the study; ``None`` where only the block is known. ``lines`` are
        where it gives the arguments, by name: ``conv.yaml:9``."""
        self.data, self.lines = data, lines or {}
        self._folder = folder
        self.variables: Mapping[str, Part] = data.get("variables", {})
        self.values: Mapping[str, Any] = data.get("values", {})
        self.contents: Mapping[str, NDArray[Any]] = {}
        """A caller's arrays in place of the contents that the block describes."""
        self.arguments: dict[str, Part] = {
            n: {"dtype": given, "value": n} if isinstance(given, str) else _pointers(given)
            for n, given in data.get("arguments", {}).items()
        }
        """Buffers, scalars and structs in the order in which the kernel takes them."""
        self.buffers = {
            n: given
            for n, given in self.arguments.items()
            if not {"value", "fields"} & given.keys()
        }
        self.scalars = {n: given for n, given in self.arguments.items() if n not in self.buffers}
        steps = enumerate(data.get("steps", ()))
        self.launches: list[tuple[tuple[str | int, ...], Part]] = [
            (("steps", number), step) for number, step in steps
        ] or [((), data)]
        """What is launched, one after the other, with the keys that lead there."""
        self.checks: dict[str, Part] = {
            n: given if isinstance(given, Mapping) else {"equals": given}
            for n, given in data.get("check", {}).items()
        }
        """How each checked buffer is checked."""
        self.factors: dict[str, Part] = {
            n: {"levels": given} if isinstance(given, list) else given
            for n, given in {"n": {}, **data.get("factors", {})}.items()
        }
        """Factors with what is said of each, ``n`` included."""

    @property
    def folder(self) -> Path:
        """The study's folder. Raises ``StudyError`` where only its block is known."""
        if self._folder is None:
            raise StudyError("the folder of this kernel's study is not known here")
        return self._folder

    @cached_property
    def written(self) -> Path | None:
        """The file of a kernel that the block holds as text, in nqbench's cache; ``None`` where it
        names a file."""
        text = str(self.data["source"])
        return self.write(text, "kernel.cu") if is_text(text) else None

    def write(self, text: str, name: str) -> Path:
        """A source in nqbench's cache."""
        digest = hashlib.sha256(text.encode()).hexdigest()[:16]
        return written(f"sources/{digest}/{name}", text.encode())

    def arrays(self) -> Iterator[tuple[str, Part]]:
        """Buffers and module variables."""
        yield from self.buffers.items()
        yield from self.variables.items()

    def keys(self, name: str) -> tuple[str, str]:
        """The keys of an argument or variable."""
        return ("arguments" if name in self.arguments else "variables", name)

    def factor(self, name: str) -> Factor:
        """A factor as workloads have it."""
        about = self.factors[name]
        levels = about.get("levels", ())
        numbers = [level for level in levels if isinstance(level, int)]
        ends = (min(numbers), max(numbers)) if numbers else None
        if "range" in about:
            ends = (about["range"][0], about["range"][1])
        elif not levels:
            ends = (1, MAX_SIZE) if name == "n" else (0, MAX_LEVEL)
        return Factor(
            name,
            str(about.get("meaning", "size of the problem" if name == "n" else name)),
            tuple(level for level in levels if isinstance(level, str)),
            ends,
            launch=bool(about.get("launch", False)),
            only=tuple(numbers),
        )

    def named(self) -> Iterator[tuple[tuple[str | int, ...], str]]:
        """The files and folders that the block names, with the keys that lead to them."""
        if not is_text(str(self.data["source"])):
            yield ("source",), str(self.data["source"])
        for key in ("sources", "include"):
            for index, name in enumerate(self.data.get(key, ())):
                yield (key, index), name
        for name, given in self.arrays():
            if is_file(given.get("contents")):
                yield (*self.keys(name), "contents"), given["contents"]
        for name, given in self.checks.items():
            for key in given.keys() & {"file", "function"}:
                yield ("check", name, key), str(given[key]).partition(":")[0]

    def files(self) -> list[Path]:
        """The source, the data files, and the Python files in the folders of its functions."""
        found = [self.written] if self.written else []
        for keys, name in self.named():
            if keys[0] == "include":
                continue
            pattern = BRACES.sub("*", name)  # whatever stands in the braces
            if keys[-1] == "function":
                pattern = str(Path(pattern).parent / "*.py")
            root = Path(pattern).anchor  # of an absolute path
            matching = Path(root or self.folder).glob(pattern.removeprefix(root))
            found += sorted(matching) if "*" in pattern else [self.folder / pattern]
        return list(dict.fromkeys(path.resolve() for path in found))


def _pointers(given: Part) -> Part:
    """An argument; one of pointers with a list of what they point to, and their number."""
    if not given.get("points_to"):
        return given
    to = [given["points_to"]] if isinstance(given["points_to"], str) else given["points_to"]
    sized = {"length", "shape"} & given.keys()
    return {"dtype": "uint64", **({} if sized else {"length": len(to)}), **given, "points_to": to}


def is_file(what: object) -> bool:
    """Whether contents are a file's."""
    return isinstance(what, str) and what.endswith(NUMPY_FILE)


def is_text(source: str) -> bool:
    """Whether the key ``source`` holds the kernel itself, not the name of its file."""
    return "\n" in source or "__global__" in source
