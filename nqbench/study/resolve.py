"""Evaluates the expressions of a combination, such as ``max(4, n - 11)``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from nqbench import expressions
from nqbench.errors import StudyError
from nqbench.facts import DeviceFacts
from nqbench.point import Level
from nqbench.study.check import is_expression, problem
from nqbench.study.model import Given, Sweep, context
from nqbench.system.suggest import listing, shown
from nqbench.system.yaml_marks import Source
from nqbench.workloads.base import Factor, Workload


@dataclass(slots=True)
class Resolver:
    """The levels of one combination. An expression may read n, the other given factors, the
    system's own levels and ``device.*``."""

    source: Source
    sweep: Sweep
    workload: Workload
    device: DeviceFacts
    given: Given
    done: dict[str, Level] = field(default_factory=dict)

    def levels(self) -> dict[str, Level]:
        """Every given factor with its level. Raises ``StudyError`` at an expression's line."""
        for factor in self.given:
            self.level(factor, ())
        return self.done

    def level(self, factor: str, waiting: tuple[str, ...]) -> Level:
        """One factor, after those that its expression reads. ``waiting``: factors that need it."""
        if factor not in self.done:
            item, spec = self.given[factor], self.workload.factors.get(factor)
            if factor in waiting:
                circle = waiting[waiting.index(factor) :]
                raise self.source.error(
                    f"'{factor}' is given in terms of itself, so it has no value; write a number"
                    if len(circle) == 1
                    else f"{listing(circle, 'and')} are given in terms of each other,"
                    " so none has a value; give one of them as a number",
                    item.path,
                )
            if spec is not None and is_expression(item.value, spec):
                self.done[factor] = self.number(spec, str(item.value), (*waiting, factor))
            else:
                self.done[factor] = item.value
        return self.done[factor]

    def number(self, spec: Factor, text: str, waiting: tuple[str, ...]) -> int:
        """The value of an expression, checked against the factor's range."""
        path, about = self.given[spec.name].path, context(self.sweep, self.given)
        parsed = expressions.parse(text, expressions.STUDY)
        names = {name: self.needed(name, text, waiting) for name in sorted(parsed.names)}
        try:
            value = expressions.value_in_study(parsed, names, self.device)
        except StudyError as error:
            raise self.source.error(f"'{spec.name}': {error.message}{about}", path) from error
        whole = isinstance(value, int | float) and not isinstance(value, bool)
        if not whole or value != value // 1:
            raise self.source.error(
                f"'{spec.name}': `{text}` gives {shown(value)}{about}, not a whole number;"
                " use //, floor or ceil",
                path,
            )
        if said := problem(spec, int(value), f" by `{text}`{about}"):
            raise self.source.error(said, path)
        return int(value)

    def needed(self, name: str, text: str, waiting: tuple[str, ...]) -> Level:
        """The value of a name in an expression."""
        system = self.given.get("system")
        base: Mapping[str, Level] = self.workload.systems.get(str(system and system.value), {})
        if name in self.given:
            return self.level(name, waiting)
        if name in base:
            return base[name]
        raise self.source.error(
            f"'{waiting[-1]}': the expression `{text}` needs '{name}', which this sweep does not"
            " give; add it under fixed or matrix",
            self.given[waiting[-1]].path,
        )
