"""Parameters of the test device: its noise, and its faults.

A kernel time is the product of

- ``base`` seconds x ``growth`` ** (n - 8) x a fixed factor per plan within ``spread``
- exp(round effect), normal with deviation ``round``: what one process differs by
- exp(measurement effect), normal with deviation ``block`` plus ``block_skew`` x (exponential - 1):
  what one plan in one process differs by (such as where its memory lies)
- exp(drift x launches so far in this process), and ``throttle`` from the 100th launch on (for
  ``throttle_for`` launches, 0: for the rest), which the device's sensor shows
- exp(e), e an autocorrelated (``rho``) normal sequence of deviation ``noise``
- exp(skew x noise x exponential), and with probability ``outliers`` a factor ``outlier``
- ``cold`` where launches start with a cold L2 cache
- 1 + ``ramp`` x 0.8 ** k for the k-th launch after loading: what a warm-up is for

Faults hit the plans whose size ``n`` equals the number given, from round ``from_round`` on (0 is
the verification): ``crash`` kills the process, ``hang`` never returns, ``wrong`` answers one too
many, ``fail`` raises a launch error, ``fatal`` one after which the process must end, ``refuse`` a
compile error. ``sleep=1`` makes launches really take the time they report. ``deterministic=1``
turns it into a stand-in for the simulator: counters instead of times. A plan always draws the same
times in a round; with ``anew=1`` it draws others when it comes again, as the same kernel does in
two sweeps.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Final

from nqbench.errors import DeviceUnavailable

FAULTS: Final = ("crash", "hang", "wrong", "fail", "fatal", "refuse", "from_round")


@dataclass(frozen=True, slots=True)
class FakeModel:
    """Parameters of the fake device; the module's docstring gives their meanings."""

    seed: int = 0
    base: float = 1e-4
    growth: float = 4.0
    spread: float = 0.0
    noise: float = 0.0
    round: float = 0.0
    block: float = 0.0
    block_skew: float = 0.0
    drift: float = 0.0
    rho: float = 0.0
    skew: float = 0.0
    outliers: float = 0.0
    outlier: float = 2.0
    throttle: float = 1.0
    cold: float = 1.3
    ramp: float = 0.0
    throttle_for: int = 0
    sleep: int = 0
    deterministic: int = 0
    anew: int = 0
    crash: int = 0
    hang: int = 0
    wrong: int = 0
    fail: int = 0
    fatal: int = 0
    refuse: int = 0
    from_round: int = 0

    @classmethod
    def parse(cls, text: str) -> FakeModel:
        """Read ``name=value,...``. Raises ``DeviceUnavailable`` for an unknown name."""
        kinds = {f.name: (int if f.type == "int" else float) for f in fields(cls)}
        values: dict[str, int | float] = {}
        for item in filter(None, text.split(",")):
            name, _, value = item.partition("=")
            if name not in kinds:
                raise DeviceUnavailable(
                    f"the fake device has no parameter {name!r}; it has {', '.join(kinds)}"
                )
            try:
                values[name] = kinds[name](value)
            except ValueError:
                raise DeviceUnavailable(
                    f"fake device: {name}={value!r} is not a number; write e.g. fake:{name}=1"
                ) from None
        return cls(**values)  # type: ignore[arg-type]  # int or float by field, checked above
