"""A kernel of a program bound to its arguments: addresses that come and go, values per launch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from nqbench.devices.cuda.kernel import LoadedKernel
from nqbench.devices.program import launch_arguments
from nqbench.errors import DeviceError
from nqbench.plan import Kernel, Variable


class ProgramKernel:
    """A kernel of a program and its arguments, some of which change from launch to launch."""

    def __init__(self, name: str, kernel: Kernel, loaded: LoadedKernel) -> None:
        self.loaded = loaded
        self.absent: set[str] = set()
        """Buffers among its arguments that are not allocated now."""
        self._name, self._kernel = name, kernel
        self._values: list[Any] = [
            None if isinstance(argument, str | Variable) else argument
            for argument in kernel.arguments
        ]
        self._pointers: dict[str, list[int]] = {}
        variables: dict[str, tuple[list[int], type[np.generic]]] = {}
        for place, argument in enumerate(kernel.arguments):
            if isinstance(argument, str):
                self._pointers.setdefault(argument, []).append(place)
            elif isinstance(argument, Variable):
                kind = np.dtype(argument.dtype).type
                variables.setdefault(argument.name, ([], kind))[0].append(place)
        self._variables = [(variable, *found) for variable, found in variables.items()]
        self.absent.update(self._pointers)

    def point(self, buffer: str, address: int | None) -> None:
        """A buffer is at this address from now on, or nowhere."""
        for place in self._pointers.get(buffer, ()):
            self._values[place] = address
            (self.absent.add if address is None else self.absent.discard)(buffer)

    def arguments(self, given: Mapping[str, np.generic | int | float]) -> Sequence[Any]:
        """The arguments of a launch. Raises ``DeviceError`` for a value missing or too large."""
        if self.absent:
            raise DeviceError(
                f"kernel {self._name} is launched while {', '.join(sorted(self.absent))} is not"
                " allocated"
            )
        if len(given) != len(self._variables):
            launch_arguments(self._name, self._kernel, given)  # raises, with the names
        for name, places, kind in self._variables:
            try:
                value = kind(given[name])
                fits = value == given[name] or not issubclass(kind, np.integer)
            except (KeyError, OverflowError):
                fits = False
            if not fits:
                launch_arguments(self._name, self._kernel, given)  # raises, with the reason
            for place in places:
                self._values[place] = value
        return self._values
