"""nvbench's JSON (file version 1), read as a run.

``devices``: what was measured on. ``benchmarks``: each with ``states``, one per combination of
axis values; a state has ``axis_values`` and ``summaries``. A summary is a ``tag`` with ``data``, a
list of ``{name, type, value}``; 64-bit numbers are written as strings, infinities as null.

A state becomes a point, the benchmark's name its sweep, its axes its factors (``system`` and ``n``
or ``N`` keep their meaning). One file is one process, and so one round: several files of the same
benchmarks give the rounds that an interval needs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Final, Generic, Literal, TypeVar

import numpy as np
from pydantic import AliasPath, BaseModel, BeforeValidator, Field, StrictInt, ValidationError

from nqbench.errors import InterchangeError
from nqbench.record import LONGEST_S, MOST, SHORTEST_S, Record, size_fault
from nqbench.system.files import contents_of
from nqbench.system.suggest import shown

MEAN: Final = "nv/cold/time/gpu/mean"
MEDIAN: Final = "nv/cold/time/gpu/median"
SAMPLES: Final = "nv/json/bin:nv/cold/sample_times"
DEVICE: Final = "nvbench"
"""The device of such a run, as the command line would call it."""
WORKLOAD: Final = "counting"
"""The workload of such a run, so that the meaning of ``n`` and ``system`` is known."""
TYPES: Final = ("int64", "float64", "string")
_ANEW: Final = "; write the file again with `nvbench --json`"


def _not_bool(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError("a number is needed")
    return value


TypeT = TypeVar("TypeT", bound=str)
ValueT = TypeVar("ValueT", int, float, str)
_Empty = BeforeValidator(lambda value: [] if value is None else value)
_Number = BeforeValidator(_not_bool)


class _Typed(BaseModel, Generic[TypeT, ValueT]):
    type: TypeT
    name: str
    value: ValueT | None = None


_Named = Annotated[
    _Typed[Literal["int64"], Annotated[int, _Number]]
    | _Typed[Literal["float64"], Annotated[float, _Number]]
    | _Typed[Literal["string"], str],
    Field(discriminator="type"),
]


class _Summary(BaseModel):
    tag: str
    data: Annotated[list[_Named], _Empty] = []


class _State(BaseModel):
    device: StrictInt
    axis_values: Annotated[list[_Named], _Empty] = []
    summaries: Annotated[list[_Summary], _Empty] = []
    is_skipped: Annotated[bool, BeforeValidator(bool)] = False
    skip_reason: Annotated[str, BeforeValidator(lambda value: str(value) if value else "")] = ""


class _Benchmark(BaseModel):
    name: str
    states: Annotated[list[_State], _Empty] = []


class _Gpu(BaseModel):
    id: StrictInt
    name: str


class _Root(BaseModel):
    """A result file, as far as it is read; everything else in it is ignored."""

    version: Literal[1] = Field(1, validation_alias=AliasPath("meta", "version", "json", "major"))
    devices: Annotated[list[_Gpu], _Empty] = []
    benchmarks: Annotated[list[_Benchmark], _Empty]


@dataclass(slots=True)
class _NvbenchReader:
    """Collects the points and measurements of files, one after the other."""

    points: dict[str, dict[str, Any]] = field(default_factory=dict)
    records: list[Record] = field(default_factory=list)
    gpus: set[str] = field(default_factory=set)
    means: bool = False

    def add(self, path: Path, round_: int) -> None:
        """Read a file as one round. Raises ``InterchangeError``."""
        root = _load(path)
        states = [(bench.name, state) for bench in root.benchmarks for state in bench.states]
        if not states:
            said = f"{path} holds no benchmark with a state; write it with `nvbench --json FILE`"
            raise InterchangeError(said)
        names = {gpu.id: gpu.name for gpu in root.devices}
        used = list(dict.fromkeys(state.device for _, state in states))
        if len(used) > 1:
            listed = ", ".join(names.get(d, f"device {d}") for d in used)
            raise InterchangeError(
                f"{path} holds results of several devices ({listed}); run nvbench with"
                " `--devices 0`, one file per device"
            )
        self.gpus.add(names.get(used[0], "unknown GPU"))
        for name, state in states:
            self._state(path, name, state, round_)

    def _state(self, path: Path, name: str, state: _State, round_: int) -> None:
        levels = {"n" if k == "N" else k: v for k, v in _values(state.axis_values).items()}
        system, size = str(levels.pop("system", "")), levels.pop("n", 0)
        if size_fault((), {"factors": {"n": size}}):
            raise _wrong(path, f"axis 'n' of {name!r}", size, "a whole number is needed")
        factors = {"n": size, **levels}
        key = json.dumps([name, system, factors], sort_keys=True)
        label = f"{system or name} N={size}"
        point: dict[str, Any] = {"study": DEVICE, "sweep": name, "workload": WORKLOAD}
        point |= {"system": system or None, "label": label, "factors": factors}
        planned = self.points.setdefault(key, {"key": key, **point})
        if state.is_skipped:
            planned.setdefault("skip", state.skip_reason or "skipped by nvbench")
            return
        samples, value_s = self._times(path, f"benchmark {name!r}", state)
        times: dict[str, Any] = {"value_s": value_s, "samples_s": samples}
        self.records.append(Record(key, point, DEVICE, round_, "unchecked", **times))

    def _times(self, path: Path, where: str, state: _State) -> tuple[tuple[float, ...], float]:
        """The samples of a state and their median; without samples its median, else its mean."""
        summaries = {summary.tag: _values(summary.data) for summary in state.summaries}
        if SAMPLES in summaries:
            samples = _samples(path, f"{where} tag {SAMPLES!r}", summaries[SAMPLES])
            if samples:
                return samples, float(np.median(samples))
        tag = MEDIAN if MEDIAN in summaries else MEAN
        self.means |= tag == MEAN
        time_s = summaries.get(tag, {}).get("value")
        if not isinstance(time_s, float) or not SHORTEST_S <= time_s <= LONGEST_S:
            why = "a positive number of seconds (float64) is needed"
            raise _wrong(path, f"{where} tag {tag!r} value", time_s, why)
        return (), time_s


def read_files(paths: Sequence[Path], name: str) -> tuple[dict[str, Any], list[Record]]:
    """The manifest and the records of a run called ``name``, from files of the same benchmarks.

    Raises ``InterchangeError``.
    """
    reader = _NvbenchReader()
    for round_, path in enumerate(paths, 1):
        reader.add(path, round_)
    if len(reader.gpus) > 1:
        raise InterchangeError(
            f"{paths[0].parent}: its files were measured on different devices"
            f" ({', '.join(sorted(reader.gpus))}); put each device into a folder of its own"
        )
    return {
        "command": ["nvbench", "--json", str(paths[0])],
        "study": {"name": name, "workload": WORKLOAD},
        "device": {"spec": DEVICE, "kind": "cuda", "facts": {"name": reader.gpus.pop()}},
        "statistic": "mean" if reader.means else "median",
        "points": list(reader.points.values()),
    }, reader.records


def _load(path: Path) -> _Root:
    try:
        return _Root.model_validate_json(contents_of(path))
    except OSError as error:
        why = "no .json file is in it" if path.is_dir() else error.strerror
        raise InterchangeError(f"{path} cannot be read: {why}") from error
    except ValidationError as errors:
        first = errors.errors(include_url=False)[0]
    steps = (step for step in first["loc"] if step not in TYPES)  # which are no place in it
    where = "".join(f"[{s}]" if isinstance(s, int) else f".{s}" for s in steps)[1:]
    why = f"{first['msg'][:1].lower()}{first['msg'][1:]}"
    if first["type"] in ("json_invalid", "missing"):
        said = ": ".join(filter(None, ("is no result of nvbench", where, why)))
        raise InterchangeError(f"{path} {said}{_ANEW}")
    raise _wrong(path, where, first["input"], why)


def _wrong(path: Path, where: str, value: object, why: str) -> InterchangeError:
    return InterchangeError(f"{path}: {where} is {shown(value)}: {why}{_ANEW}")


def _values(named: Sequence[_Named]) -> dict[str, int | float | str]:
    """Values by name, without those that no record holds; infinities are null."""
    found = {one.name: one.value for one in named if one.value is not None}
    return {k: v for k, v in found.items() if isinstance(v, str) or -MOST <= v <= MOST}


def _samples(
    path: Path, where: str, data: Mapping[str, int | float | str]
) -> tuple[float, ...] | None:
    """The samples of ``--jsonbin`` in seconds; ``None`` if their file is missing."""
    name, size = data.get("filename"), data.get("size")
    if not isinstance(name, str):
        raise _wrong(path, f"{where} filename", name, "a string is needed")
    for file in (path.parent / name, path.parent.parent / name):
        if file.is_file():
            values = np.fromfile(file, dtype="<f4")
            if len(values) != size or not len(values):
                raise _wrong(path, f"{where} size", size, f"{name} holds {len(values)} samples")
            if not (np.isfinite(values).all() and (values > 0).all()):
                raise _wrong(path, f"{where} filename", name, "its times are not all positive")
            return tuple(values.astype(float).tolist())
    return None
