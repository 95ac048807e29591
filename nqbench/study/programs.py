"""External programs as systems: entries of ``systems`` that are mappings with a command."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from nqbench.errors import InfeasibleError, StudyError, WrongDeviceError
from nqbench.facts import DeviceFacts, DeviceKind
from nqbench.point import Executable, Level
from nqbench.study.model import ProgramSystem
from nqbench.study.schema import ProgramFile
from nqbench.system.suggest import listing
from nqbench.system.yaml_marks import KeyPath, ParsedFile, fit
from nqbench.workloads.base import NOT_APPLICABLE, Resolved, Workload

PLACE: Final = re.compile(r"\{\{|\}\}|\{(\w+)\}")
"""A factor's place in a word; a doubled brace stands for one."""
BRACES: Final = {"{{": "{", "}}": "}"}


def read_programs(
    source: ParsedFile, raw: Any, path: KeyPath, kinds: tuple[DeviceKind, ...]
) -> tuple[Any, list[ProgramSystem]]:
    """The value of ``systems`` with every program replaced by its name, and the programs.

    Raises ``StudyError`` at the line of a mistake.
    """
    if isinstance(raw, dict) and raw.keys() & set(kinds):
        pairs = {k: read_programs(source, v, (*path, k), kinds) for k, v in raw.items()}
        return {k: names for k, (names, _) in pairs.items()}, [
            program for _, found in pairs.values() for program in found
        ]
    if not isinstance(raw, list):
        return raw, []
    found = {
        index: _read(source, (*path, index))
        for index, item in enumerate(raw)
        if isinstance(item, dict)
    }
    names = [found[i].name if i in found else item for i, item in enumerate(raw)]
    return names, list(found.values())


def _read(source: ParsedFile, path: KeyPath) -> ProgramSystem:
    file = fit(source, ProgramFile, path)
    if file.unit and not file.time:
        raise source.error("'unit' needs a time: add the pattern `time`", (*path, "unit"))
    if not str(file.command[0]).strip():
        raise source.error("the first word of 'command' names the program", (*path, "command"))
    program = Executable(
        tuple(map(str, file.command)),
        file.answer or "",
        file.time or "",
        file.unit or "",
        {name: str(word) for name, word in file.env.items()},
        tuple(map(str, file.depends or ())),
        file.device,
        str(source.path.absolute().parent),
    )
    return ProgramSystem(file.name, program, path)


def resolve(
    system: ProgramSystem, given: Mapping[str, Level], workload: Workload, device: DeviceFacts
) -> tuple[Resolved, Executable]:
    """The point of a program: the factors that its command uses, and the command with them.

    A factor that the command leaves out does not apply to it. Raises ``StudyError`` for a factor
    that the sweep does not give, ``InfeasibleError`` for a level that has no text, and
    ``WrongDeviceError`` for a program that computes on a GPU where there is none.
    """
    program = system.program
    used: dict[str, Level] = {"n": given["n"]}

    def fill(text: str) -> str:
        def level(match: re.Match[str]) -> str:
            name = match[1]
            if name is None:
                return BRACES[match[0]]
            if name not in given:
                raise StudyError(
                    f"the system '{system.name}' uses {{{name}}}, which this sweep does not give;"
                    f" it gives {listing(given, 'and')} (write {{{{{name}}}}} for braces)"
                )
            if isinstance(given[name], Mapping) or given[name] == "auto":
                raise InfeasibleError(
                    f"{name} has no number that the command of {system.name} could take; give one",
                    name,
                )
            used[name] = given[name]
            return str(given[name])

        return PLACE.sub(level, text)

    filled = replace(
        program,
        command=tuple(map(fill, program.command)),
        environment={name: fill(text) for name, text in program.environment.items()},
        depends=tuple(map(fill, program.depends)),
    )
    if program.device == "gpu" and device.kind != "cuda":
        raise WrongDeviceError(
            f"{system.name} computes on a GPU (device: gpu), and {device.name} is none; use"
            " --device cuda:0"
        )
    factors = dict.fromkeys(workload.factors, NOT_APPLICABLE) | used
    if not program.answer and workload.expected({**workload.defaults, **used}) is not None:
        raise StudyError(
            f"the system '{system.name}' needs `answer`, a pattern such as '^(\\d+)': the right"
            " answer is known, and a program is not timed unchecked"
        )
    return Resolved(factors, {}), filled
