"""Models of GPUs: YAML files with the facts and memory rules that the simulator and reports use.

A model file has these keys:

``name``    what tables call it
``about``   one or two sentences
``like``    a compute capability (``cc_2_0``) or a model; what the file does not say is as there
``facts``   groups of facts, each with the ``source`` that states them, or with ``assumed: REASON``;
            a fact is a field of :class:`nqbench.facts.DeviceFacts` or of :class:`Chip`
``memory``  rules of shared memory and of off-chip transactions, a group of the same form

Your own file can be used as ``sim:path/to/model.yaml``.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from nqbench.errors import DeviceUnavailable, StudyError
from nqbench.facts import DeviceFacts
from nqbench.system.suggest import shown, suggestion

if TYPE_CHECKING:
    from pydantic import BaseModel

    from nqbench.system.yaml_marks import KeyPath, ParsedFile

DEFAULT_MODEL: Final = "mini"
ROUND_ROBIN: Final = "round_robin"
ORDERS: Final = (ROUND_ROBIN, "reverse", "greedy")
"""Which warp the simulator runs next: all in turn, all in turn backwards, or each until it must
wait."""
CACHE: Final = "cache"
EXPAND: Final = "expand"
PTXAS: Final = "ptxas"
TIME: Final = "time"
MODES: Final = (CACHE, EXPAND, PTXAS, TIME)
"""What a simulation may do besides: model the caches; count divisions and roots as the sequences
that they are; count as the assembler leaves the code, these included; model the time, so counted.
"""
MEMORY_RULES: Final = ("half_warp_strict", "half_warp_segments", "lines", "kepler", "sectors")
"""Of compute capability 1.0 and 1.1, 1.2 and 1.3, 2.x, 3.x, and 7.0 and later."""

OLDEST_COMPILED: Final = (7, 5)
"""The oldest compute capability that the compiler of CUDA 13 knows; kernels for older chips are
compiled for it."""

REPRESENTATIVES: Final[Mapping[str, str]] = {
    "sm_75": "t4", "sm_80": "a100", "sm_86": "rtx3090", "sm_89": "rtx4090", "sm_90": "h100",
    "sm_100": "b200", "sm_120": "rtx5090",
}  # fmt: skip
"""The model that stands for an architecture."""

_FOLDER: Final = Path(__file__).parent
_CAPABILITY: Final = "cc_"  # files of compute capabilities start so; they are no devices
_MEMORY_KEYS: Final = ("rules", "shared_banks", "bank_bytes", "sector_bytes")
_ORIGINS: Final = ("source", "assumed")


@dataclass(frozen=True, slots=True)
class Chip:
    """How fast a chip is, and its caches; ``None`` where a model of one's own does not say.

    ``clock_mhz``             of the cores (the shader clock on 1.x and 2.x)
    ``bandwidth_gb_per_s``    of the device memory, 1e9 bytes per second; ``memory_gb_per_s``: what
                              of it a kernel that copies gets, where that is measured
    ``schedulers``            of warps per multiprocessor; each issues ``issue_width`` instructions
                              of a warp every ``issue_clocks`` clocks
    ``float_per_clock``, ``integer_per_clock``  32-bit results per clock and multiprocessor;
    ``double_per_clock``  of 64-bit floats; where a chip has none, they cost nothing of their own
    ``shared_clocks_per_pass``  clocks of one pass through the shared-memory banks
    ``l1_shared_bytes``       storage of L1 cache and shared memory per multiprocessor; 0: no L1
    ``l1_holds``              what L1 caches: ``local``, ``global``
    ``l1_transactions_per_clock``  that an L1 cache (without one: the memory pipe) works through
    ``l2_bytes``              0: no L2 cache
    ``l2_gb_per_s``           of the L2 cache; where nobody states it, nothing is bounded by it
    ``l2_partial_cost``       of writing a part of a sector in L2, in whole sectors
    ``atomic_clocks``         from an atomic on a word of global memory to the next on that word;
    ``integer_atomic_clocks`` of whole numbers, in the same 512 bytes
    ``block_clocks``          from the start of a block to that of the next on the whole chip;
    ``warp_clocks``           of a warp, on one multiprocessor; ``restart_clocks``: from the end of
                              a block to the first instruction of the next in its place
    ``divergence_clocks``     that a warp loses when its lanes part; ``yield_clocks`` and
                              ``bsync_clocks``: of these instructions, beyond their stall
    ``launch_us``             of an empty kernel, from event to event
    latencies                 clocks from an instruction to its result; ``predicate``: to a branch
                              that depends on it; ``branch``: to the next instruction;
                              ``reconvergence``: of the instruction where lanes meet again, if it is
                              one of its own (7.0 and later)
    """

    clock_mhz: float | None = None
    bandwidth_gb_per_s: float | None = None
    memory_gb_per_s: float | None = None
    schedulers: int | None = None
    issue_width: int | None = None
    issue_clocks: int | None = None
    float_per_clock: int | None = None
    integer_per_clock: int | None = None
    double_per_clock: int | None = None
    shared_clocks_per_pass: int | None = None
    l1_shared_bytes: int | None = None
    l1_line_bytes: int | None = None
    l1_holds: tuple[str, ...] | None = None
    l2_bytes: int | None = None
    l1_transactions_per_clock: float | None = None
    l2_gb_per_s: float | None = None
    l2_partial_cost: float | None = None
    atomic_clocks: float | None = None
    integer_atomic_clocks: float | None = None
    block_clocks: float | None = None
    warp_clocks: float | None = None
    restart_clocks: float | None = None
    divergence_clocks: float | None = None
    yield_clocks: float | None = None
    bsync_clocks: float | None = None
    launch_us: float | None = None
    arithmetic_latency: float | None = None
    predicate_latency: float | None = None
    branch_latency: float | None = None
    reconvergence_latency: float | None = None
    shared_latency: float | None = None
    l1_latency: float | None = None
    l2_latency: float | None = None
    memory_latency: float | None = None


@dataclass(frozen=True, slots=True)
class Fact:
    """A value and where it comes from: ``assumed: REASON`` where no document states it."""

    value: Any
    source: str

    def as_json(self) -> dict[str, str]:
        """Both as text."""
        values = self.value if isinstance(self.value, tuple) else (self.value,)
        return {"value": ", ".join(map(str, values)), "source": self.source}


@dataclass(frozen=True, slots=True)
class Model:
    """A simulated GPU.

    ``memory`` holds ``rules`` (one of ``MEMORY_RULES``), ``shared_banks``, ``bank_bytes`` and
    ``sector_bytes``; ``stated`` every fact and memory rule by key, with its source.
    """

    name: str
    about: str
    facts: DeviceFacts
    chip: Chip
    memory: Mapping[str, int | str]
    stated: Mapping[str, Fact]

    @property
    def remark(self) -> str:
        """What counters of this model are of, where its own architecture no longer compiles."""
        if not self.facts.compiled_for:
            return ""
        capability = ".".join(map(str, self.facts.compute_capability))
        return f"PTX for {self.facts.arch}, limits and memory rules of {capability}"


_GIVEN: Final = ("kind", "name", "compiled_for", "warp_size")  # fields that no fact sets
_FACTS: Final = {f.name: f for f in fields(DeviceFacts) if f.name not in _GIVEN}
_CHIP: Final = tuple(f.name for f in fields(Chip))
_NEEDED: Final = tuple(name for name, field in _FACTS.items() if field.default is MISSING)
_MAY_BE_0: Final = (
    *("shared_reserved_per_block", "memory_bytes", "l1_shared_bytes", "l2_bytes"),
    *(name for name in _CHIP if name.endswith("_latency")),
)


@functools.cache
def model_names() -> tuple[str, ...]:
    """Names of the models that come with nqbench: the default, then by compute capability.

    ``REPRESENTATIVES`` has further names of some of them.
    """
    stems = {path.stem for path in _FOLDER.glob("*.yaml")}
    chips = {stem for stem in stems if not stem.startswith(_CAPABILITY)} - {DEFAULT_MODEL}
    order = {name: (load_model(name).facts.compute_capability, name) for name in chips}
    return (DEFAULT_MODEL, *sorted(chips, key=lambda name: order[name]))


def is_model(name: str) -> bool:
    """Whether a model that comes with nqbench is called so."""
    return name in REPRESENTATIVES or (
        not name.startswith(_CAPABILITY) and (_FOLDER / f"{name}.yaml").is_file()
    )


@functools.cache
def load_model(name: str = DEFAULT_MODEL) -> Model:
    """A model by name (``gtx480``, ``sm_90``, ``mini``) or by the path of a YAML file.

    Raises ``DeviceUnavailable`` if there is none of that name or the file is not a model.
    """
    if name.endswith((".yaml", ".yml")):
        return _model(Path(name), Path(name).stem, own=True)
    if "/" in name or not is_model(name):
        known = [*model_names(), *REPRESENTATIVES]
        raise DeviceUnavailable(
            f"no simulator model is called {name!r}; {suggestion(name, known)}"
            " (a model of your own is the path of a .yaml file)"
        )
    return _model(_FOLDER / f"{REPRESENTATIVES.get(name, name)}.yaml", name)


@functools.cache
def capability_facts(major: int, minor: int) -> DeviceFacts:
    """Limits of a compute capability; of the nearest known one (of the same generation if there is
    one, lower if there is one) for others. What a chip has of its own is empty."""

    def distance(path: Path) -> tuple[bool, bool, int, int]:
        own = tuple(int(part) for part in path.stem.removeprefix(_CAPABILITY).split("_"))
        return own[0] != major, own > (major, minor), abs(own[0] - major), abs(own[1] - minor)

    stated = _read(min(_FOLDER.glob(f"{_CAPABILITY}*.yaml"), key=distance)).facts
    values = {key: fact.value for key, fact in stated.items() if key in _FACTS}
    return DeviceFacts(name="", kind="cuda", multiprocessors=0, **values)


def chips(archs: Iterable[str]) -> list[DeviceFacts]:
    """Facts of the chips that ``archs`` name (``sm_90``, ``gtx480``, a model file), each once, in
    order.

    Raises ``StudyError`` for none at all and for ``mini``, which is no chip, and
    ``DeviceUnavailable`` for one without a model.
    """
    wanted = list(dict.fromkeys(archs))
    if not wanted or DEFAULT_MODEL in wanted:
        known = ", ".join((*REPRESENTATIVES, *model_names()[1:]))
        raise StudyError(f"--arch names no architecture; known: {known}")
    # A model describes a simulated device; here it describes the chip itself.
    return [replace(load_model(arch).facts, kind="cuda") for arch in wanted]


@dataclass(frozen=True, slots=True)
class _ModelFile:
    """A model file, with what it takes from the file that it is ``like``."""

    name: str
    about: str
    facts: Mapping[str, Fact]
    memory: Mapping[str, Fact]


def _model(path: Path, name: str, *, own: bool = False) -> Model:
    file = _read(path, own=own)
    for where, there, needed in (
        ("facts", file.facts, _NEEDED),
        ("memory", file.memory, _MEMORY_KEYS),
        ("the file", {"name": 1} if file.name else {}, ("name",)),
    ):
        missing = [key for key in needed if key not in there]
        if missing:
            raise DeviceUnavailable(f"{path}: {where} lacks {', '.join(missing)}")
    values = {key: fact.value for key, fact in file.facts.items()}
    limits = {key: value for key, value in values.items() if key in _FACTS}
    capability = values["compute_capability"]
    compiled_for = "sm_{}{}".format(*OLDEST_COMPILED) if capability < OLDEST_COMPILED else ""
    model = Model(
        name,
        file.about,
        DeviceFacts(name=file.name, kind="sim", compiled_for=compiled_for, **limits),
        Chip(**{key: value for key, value in values.items() if key in _CHIP}),
        {key: fact.value for key, fact in file.memory.items()},
        {**file.facts, **{f"memory.{key}": fact for key, fact in file.memory.items()}},
    )
    for contradiction in _contradictions(model):
        raise DeviceUnavailable(f"{path}: {contradiction}")
    return model


def _contradictions(model: Model) -> Iterator[str]:
    """What cannot be true of one chip: a file changes a fact and forgets another."""
    facts, chip = model.facts, model.chip
    for part, whole in (
        ("max_threads_per_block", "max_threads_per_multiprocessor"),
        ("registers_per_block", "registers_per_multiprocessor"),
        ("shared_per_block", "shared_per_block_optin"),
        ("shared_per_block_optin", "shared_per_multiprocessor"),
    ):
        if getattr(facts, part) > getattr(facts, whole):
            yield f"{part} is {getattr(facts, part)}, more than {whole}, {getattr(facts, whole)}"
    threads, warps = facts.max_threads_per_multiprocessor, facts.max_warps_per_multiprocessor
    if threads != facts.warp_size * warps:
        yield (
            f"max_threads_per_multiprocessor is {threads}, but max_warps_per_multiprocessor"
            f" {warps}, of {facts.warp_size} threads each"
        )
    sizes, shared = facts.shared_carveouts, facts.shared_per_multiprocessor
    if sizes and (list(sizes) != sorted(sizes) or sizes[-1] != shared):
        yield f"shared_carveouts must rise to shared_per_multiprocessor, {shared}; they are {sizes}"
    if chip.l1_shared_bytes and chip.l1_shared_bytes <= shared:
        yield (
            f"l1_shared_bytes is {chip.l1_shared_bytes}; it is the storage of L1 and shared memory"
            f" together, more than shared_per_multiprocessor, {shared}"
        )
    if facts.shared_banks != (banks := model.memory["shared_banks"]):
        yield f"facts.shared_banks is {facts.shared_banks}, but memory.shared_banks {banks}"


def _read(path: Path, *, own: bool = False) -> _ModelFile:
    """A file; one of a user's ``own`` is held against the form, those of nqbench are by tests."""
    from nqbench.system.yaml_marks import fit, read

    try:
        source = read(path, "model")
        if own:
            fit(source, _forms()["file"])
        base = _base(source) if "like" in source.data else _ModelFile("", "", {}, {})
        facts, memory = (
            dict(_facts(source, where, order, own))
            for where, order in (("facts", (*_FACTS, *_CHIP)), ("memory", _MEMORY_KEYS))
        )
    except StudyError as error:
        raise DeviceUnavailable(str(error)) from error
    name, about = (str(source.data.get(key, getattr(base, key))) for key in ("name", "about"))
    merged = {**base.facts, **facts}, {**base.memory, **memory}
    return _ModelFile(name, " ".join(about.split()), *merged)


def _base(source: ParsedFile) -> _ModelFile:
    """The file that ``like`` names: a compute capability or a model of nqbench."""
    known = {p.stem: p for p in _FOLDER.glob("*.yaml")}
    known |= {arch: known[name] for arch, name in REPRESENTATIVES.items()}
    like = str(source.data["like"])
    if like not in known:
        said = f"like is {shown(like)}, which is no model; {suggestion(like, sorted(known))}"
        raise source.error(said, ("like",))
    return _read(known[like])


def _facts(
    source: ParsedFile, where: str, order: Sequence[str], own: bool
) -> Iterator[tuple[str, Fact]]:
    """The facts of one group, or of a list of groups, in this order."""
    from nqbench.system.yaml_marks import fit

    found: dict[str, Fact] = {}
    groups = source.data.get(where, [])
    listed = isinstance(groups, list)
    for number, group in enumerate(groups if listed else [groups]):
        path: KeyPath = (where, number) if listed else (where,)
        if own:
            fit(source, _forms()[where], path)
        origins = [key for key in _ORIGINS if str(group.get(key, "")).strip()]
        if len(origins) != 1:
            keys = ", ".join(f"{where}.{key}" for key in group if key not in _ORIGINS)
            raise source.error(
                f"{keys or where} must state one source; begin the group of facts with"
                " 'source: DOCUMENT, TABLE' or, where nobody states them, 'assumed: REASON'",
                path,
            )
        text = " ".join(str(group[origins[0]]).split())
        text = f"assumed: {text}" if origins[0] == "assumed" else text
        for key in group.keys() - set(_ORIGINS):
            if key in found:
                raise source.error(f"{where}.{key} is stated twice", (*path, key))
            value = tuple(group[key]) if isinstance(group[key], list) else group[key]
            found[key] = Fact(value, text)
    return ((key, found[key]) for key in order if key in found)


@functools.cache
def _forms() -> Mapping[str, type[BaseModel]]:
    """What the file of a model may hold, and a group of its ``facts`` or ``memory``."""
    from pydantic import ConfigDict, Field, create_model

    def form(**types: Any) -> type[BaseModel]:
        config = ConfigDict(extra="forbid", strict=True)
        optional: Any = {name: (type_ | None, None) for name, type_ in types.items()}
        return create_model("ModelPart", __config__=config, **optional)

    def number(name: str) -> Any:
        if name in _CHIP and "float" in Chip.__annotations__[name]:
            limit: Any = {"ge": 0} if name in _MAY_BE_0 else {"gt": 0}
            return Annotated[float, Field(allow_inf_nan=False, **limit)]
        return Annotated[int, Field(ge=int(name not in _MAY_BE_0), lt=2**63)]

    origins = dict.fromkeys(_ORIGINS, str)
    natural = Annotated[int, Field(ge=0)]
    facts = {name: number(name) for name in (*_FACTS, *_CHIP)} | {
        "compute_capability": Annotated[list[natural], Field(min_length=2, max_length=2)],
        "shared_carveouts": list[natural],
        "register_allocation": Literal["warp", "block"],
        "l1_line_bytes": Literal[128],  # of no other is the cache
        "l1_holds": list[Literal["local", "global"]],
    }
    memory = {name: number(name) for name in _MEMORY_KEYS} | {"rules": Literal[MEMORY_RULES]}
    return {
        "file": form(name=str, about=str, like=str, facts=Any, memory=Any),
        "facts": form(**origins, **facts),
        "memory": form(**origins, **memory),
    }
