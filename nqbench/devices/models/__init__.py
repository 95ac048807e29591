"""Models of GPUs: YAML files with the facts and memory rules that the simulator and reports use.

A model file has three keys: ``about`` (the chip it represents and where its facts come from),
``facts`` (fields of :class:`nqbench.facts.DeviceFacts`) and ``memory`` (rules of shared memory and
of off-chip transactions). Your own file can be used as ``sim:path/to/model.yaml``.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, fields, replace
from pathlib import Path
from typing import Any, Final

from nqbench.errors import DeviceUnavailable, StudyError
from nqbench.facts import DeviceFacts
from nqbench.system.suggest import suggestion

DEFAULT_MODEL: Final = "mini"
ROUND_ROBIN: Final = "round_robin"
ORDERS: Final = (ROUND_ROBIN, "reverse", "greedy")
"""Which warp the simulator runs next: all in turn, all in turn backwards, or each until it must
wait."""
MEMORY_RULES: Final = ("sectors",)

_FOLDER: Final = Path(__file__).parent
_KEYS: Final = ("about", "facts", "memory")
_MEMORY_KEYS: Final = ("rules", "shared_banks", "bank_bytes", "sector_bytes")
_GIVEN: Final = ("kind",)  # not in the file: every model is simulated
_FACTS: Final = {f.name: f for f in fields(DeviceFacts) if f.name not in _GIVEN}


@dataclass(frozen=True, slots=True)
class Model:
    """A simulated GPU.

    ``memory`` holds ``rules`` (one of ``MEMORY_RULES``), ``shared_banks``, ``bank_bytes`` and
    ``sector_bytes``.
    """

    name: str
    about: str
    facts: DeviceFacts
    memory: Mapping[str, int | str]


def model_names() -> tuple[str, ...]:
    """Names of the models that come with nqbench, by compute capability, the default first."""
    others = sorted((p.stem for p in _FOLDER.glob("sm_*.yaml")), key=lambda name: int(name[3:]))
    return (DEFAULT_MODEL, *others)


@functools.cache
def load_model(name: str = DEFAULT_MODEL) -> Model:
    """A model by name (``sm_90``, ``mini``) or by the path of a YAML file.

    Raises ``DeviceUnavailable`` if there is none of that name or the file is not a model.
    """
    import yaml

    path = Path(name) if name.endswith((".yaml", ".yml")) else _FOLDER / f"{name}.yaml"
    if path.parent == _FOLDER and name not in model_names():
        raise DeviceUnavailable(
            f"no simulator model is called {name!r}; {suggestion(name, model_names())}"
            " (a model of your own is the path of a .yaml file)"
        )
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DeviceUnavailable(f"model file {path} cannot be read: {error.strerror}") from error
    except yaml.YAMLError as error:
        first = str(error).replace("\n", " ")
        raise DeviceUnavailable(f"model file {path} is not YAML: {first}") from error
    return _model(path, data)


def chips(archs: Iterable[str]) -> list[DeviceFacts]:
    """Facts of the chips that the models of ``archs`` (``sm_90``) describe, each once, in order.

    Raises ``StudyError`` for an architecture without a model, and if there is none at all.
    """
    known = [name for name in model_names() if name != DEFAULT_MODEL]
    wanted = list(dict.fromkeys(archs))
    if not wanted:
        raise StudyError(f"--arch names no architecture; known: {', '.join(known)}")
    for arch in wanted:
        if arch not in known:
            raise StudyError(
                f"--arch: no architecture is called {arch!r}; {suggestion(arch, known)}"
            )
    # A model describes a simulated device; here it describes the chip itself.
    return [replace(load_model(arch).facts, kind="cuda") for arch in wanted]


def _model(path: Path, data: Any) -> Model:
    whole = _section(path, "the file", data, _KEYS, _KEYS)
    needed = [name for name, field in _FACTS.items() if field.default is MISSING]
    facts = _section(path, "facts", whole["facts"], tuple(_FACTS), needed)
    memory = _section(path, "memory", whole["memory"], _MEMORY_KEYS, _MEMORY_KEYS)
    if memory["rules"] not in MEMORY_RULES:
        raise DeviceUnavailable(
            f"model file {path}: memory rules {memory['rules']!r} are not known"
            f"; {suggestion(memory['rules'], MEMORY_RULES)}"
        )
    for key in _MEMORY_KEYS[1:]:
        _number(path, f"memory.{key}", memory[key], minimum=1)
    values = {key: _fact(path, key, value) for key, value in facts.items()}
    about = " ".join(str(whole["about"]).split())
    return Model(path.stem, about, DeviceFacts(kind="sim", **values), memory)


def _fact(path: Path, key: str, value: Any) -> Any:
    if key == "name":
        return str(value)
    if key not in ("compute_capability", "shared_carveouts"):
        return _number(path, f"facts.{key}", value)
    if not isinstance(value, list) or (key == "compute_capability" and len(value) != 2):
        shape = "[major, minor]" if key == "compute_capability" else "a list of sizes in bytes"
        raise DeviceUnavailable(f"model file {path}: facts.{key} is {value!r}; write {shape}")
    return tuple(_number(path, f"facts.{key}", item) for item in value)


def _number(path: Path, key: str, value: Any, minimum: int = 0) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < minimum:
        raise DeviceUnavailable(
            f"model file {path}: {key} is {value!r}; it must be a whole number of at least"
            f" {minimum}"
        )
    return value


def _section(
    path: Path, where: str, data: Any, known: tuple[str, ...], needed: Iterable[str]
) -> dict[str, Any]:
    """``data`` as a mapping with only known keys and all needed ones."""
    if not isinstance(data, dict):
        raise DeviceUnavailable(
            f"model file {path}: {where} must be a mapping with the keys {', '.join(known)}"
        )
    for key in data:
        if key not in known:
            raise DeviceUnavailable(
                f"model file {path}: unknown key {key!r} in {where}; {suggestion(key, known)}"
            )
    missing = [key for key in needed if key not in data]
    if missing:
        raise DeviceUnavailable(f"model file {path}: {where} lacks {', '.join(missing)}")
    return data
