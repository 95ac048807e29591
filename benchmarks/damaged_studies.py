"""Damage valid study files at random: each must end in success or in one clear sentence.

    python -m benchmarks.damaged_studies [--count 10000] [--seed 0] [--cli 50]

Files of ``configs/`` and ``experiments/`` are damaged as text (one to three edits) or as data (one
value replaced or given another key), loaded and expanded for a simulated GPU, a real one and a
CPU. Every ``--cli``-th also goes through ``nqbench run --dry-run``, whose exit code must
agree. Exits with 1 and names seed and file if anything but a sentence comes out.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

import yaml

from benchmarks.overhead import positive
from nqbench.cli import app as cli
from nqbench.devices.cpu import CpuDevice
from nqbench.errors import NqbenchError
from nqbench.facts import DeviceFacts
from nqbench.simulator.models import load_model
from nqbench.study import expand, load_study

ROOT: Final = Path(__file__).parents[1]
LONGEST_SENTENCE: Final = 600
"""Characters beyond the path: more is a paragraph, or a dump of data."""
SLOWEST_S: Final = 20.0
"""A study file that takes longer to refuse looks like a hang."""

PIECES: Final = (
    *("", " ", "\n", "\t", ":", "- ", "[", "}", "'", '"', "#", "&a ", "*a", "0", "-1", "!!x "),
    *("1e9", ".5", "yes", "null", "{range: [9, 1]}", "{per_sm: 0}", "n", "%", "\x00", "é"),
    *("999999999999", "n == 3", "1/0", "<<: *a"),
)


def damaged_text(text: str, chance: random.Random) -> bytes:
    """The text after one to three random edits."""
    for _ in range(chance.randint(1, 3)):
        at, end = sorted(chance.choices(range(len(text) + 1), k=2))
        end = min(end, at + chance.choice([1, 2, 8, 40]))
        piece = chance.choice([*PIECES, text[at:end] * 2, text[at:end][::-1]])
        text = text[:at] + piece + text[end:]
    return text.encode("utf-8" if chance.random() < 0.95 else "utf-16")


VALUES: tuple[Any, ...] = (
    *(0, -1, 3, 10**30, 2.5, True, None, "", " ", "x", "auto", "-", "n", "n / 0", "1 +", "10s"),
    *("shared", "cpu.somers", [], [1], [[1]], ["x", 2], {}, {"range": [1, 3]}, {"range": 3}),
    *({"per_sm": 2}, {"per_sm": "x"}, {"sim": 12}, {"sim": [12], "x": 1}, {"x": {"y": 1}}),
    *({"range": [1, 10**9]}, {"step": 2}, {1: 2}, float("nan"), float("inf"), "device.name"),
)


def damaged_data(text: str, chance: random.Random) -> bytes:
    """The text with one value, anywhere in it, replaced by another or given another key."""
    data = yaml.safe_load(text)
    holders: list[Any] = [data]
    for holder in holders:
        inner = holder.values() if isinstance(holder, dict) else holder
        holders += [value for value in inner if isinstance(value, dict | list)]
    holder = chance.choice(holders)
    keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
    key = chance.choice(keys)
    if isinstance(holder, dict) and chance.random() < 0.3:
        holder[chance.choice(["n", "where", "system", "depth", "range", "x", "of"])] = holder[key]
        if chance.random() < 0.5:
            del holder[key]
    else:
        holder[key] = chance.choice(VALUES)
    return bytes(yaml.safe_dump(data, sort_keys=False).encode())


@dataclass
class MutationOutcome:
    """What became of the mutations."""

    expanded: int = 0
    refused: int = 0
    through_cli: int = 0
    slowest_s: float = 0.0
    faults: list[str] = field(default_factory=list)
    sentences: Counter[str] = field(default_factory=Counter)


def studies() -> list[Path]:
    """The project's own study files."""
    found = [*ROOT.glob("configs/*.yaml"), *ROOT.glob("experiments/*/study*.yaml")]
    return sorted(found)


def devices() -> list[DeviceFacts]:
    """A simulated GPU, a real one (as far as facts go), this CPU."""
    real = replace(load_model("sm_90").facts, kind="cuda")
    return [load_model().facts, real, CpuDevice().facts]


def mutate(
    paths: Sequence[Path], count: int, folder: Path, seed: int = 0, cli_every: int = 0
) -> MutationOutcome:
    """Try ``count`` mutations of the files in turn; ``folder`` takes the damaged copies."""
    outcome = MutationOutcome()
    texts = {path: path.read_text(encoding="utf-8") for path in paths}
    targets = devices()
    for number in range(count):
        path = paths[number % len(paths)]
        name = f"{path.name} seed {seed}:{number}"
        chance = random.Random(f"{path.name} {seed} {number}")
        target = folder / "damaged.yaml"
        damage = chance.choice([damaged_text, damaged_data])
        target.write_bytes(damage(texts[path], chance))
        started = time.monotonic()
        message = _try(target, chance.choice(targets), name, outcome)
        took_s = time.monotonic() - started
        outcome.slowest_s = max(outcome.slowest_s, took_s)
        if took_s > SLOWEST_S:
            outcome.faults.append(f"{name}: took {took_s:.0f} s")
        if message is not None:
            _judge(message, target, name, outcome)
        if cli_every and number % cli_every == 0:
            _through_cli(target, name, outcome)
    return outcome


def _try(target: Path, facts: DeviceFacts, name: str, outcome: MutationOutcome) -> str | None:
    """Load and expand; the sentence, if it was refused."""
    try:
        expand(load_study(target), facts)
    except NqbenchError as error:
        outcome.refused += 1
        return str(error)
    except Exception as error:  # noqa: BLE001 (to find what should not be there is the purpose)
        outcome.faults.append(f"{name}: {type(error).__name__}: {error}")
        return None
    outcome.expanded += 1
    return None


def _judge(message: str, target: Path, name: str, outcome: MutationOutcome) -> None:
    if not message.startswith(f"{target}:"):
        outcome.faults.append(f"{name}: does not begin with the file: {message}")
    if len(message.splitlines()) != 1:
        outcome.faults.append(f"{name}: not one line: {message!r}")
    if len(message) > len(str(target)) + LONGEST_SENTENCE:
        outcome.faults.append(f"{name}: {len(message)} characters: {message[:200]}...")
    words = message.removeprefix(f"{target}:").lstrip("0123456789: ").split()
    outcome.sentences[" ".join(words[-4:])] += 1


def _through_cli(target: Path, name: str, outcome: MutationOutcome) -> None:
    """A dry run on the simulator by the command line: 0, or 2 and a sentence."""
    words = ["nqbench", "run", str(target), "--device", "sim", "--dry-run"]
    out, said = io.StringIO(), io.StringIO()
    code: object = 0
    with (
        patch.object(sys, "argv", words),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(said),
    ):
        try:
            cli.main()
        except SystemExit as ended:
            code = ended.code or 0
        except Exception as error:  # noqa: BLE001 (as above)
            code = f"{type(error).__name__}: {error}"
    outcome.through_cli += 1
    lines = said.getvalue().strip().splitlines()
    if code not in (0, 2) or (code == 2 and not (lines and lines[-1].startswith("nqbench: "))):
        outcome.faults.append(f"{name}: command line: {code}, {lines[-3:]}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the mutations and print what became of them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--count", type=positive, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--cli", type=positive, default=50, help="every how many go through the CLI"
    )
    given = parser.parse_args(arguments)
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        found = mutate(studies(), given.count, Path(folder), given.seed, given.cli)
    _print(f"fault: {fault}" for fault in found.faults)
    _print(
        [
            f"{given.count} mutations of {len(studies())} files: {found.expanded} expand,"
            f" {found.refused} end in one sentence ({len(found.sentences)} different endings),"
            f" {len(found.faults)} faults; {found.through_cli} also through the command line;"
            f" slowest {found.slowest_s:.2f} s; {time.monotonic() - started:.0f} s in all"
        ]
    )
    return 1 if found.faults else 0


def _print(lines: Iterable[str]) -> None:
    for line in lines:
        sys.stdout.write(line + "\n")


if __name__ == "__main__":
    sys.exit(main())
