"""What a run's manifest says, and whether a folder's earlier run can be resumed."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nqbench.errors import FolderRefused
from nqbench.facts import DeviceFacts
from nqbench.measure import environment
from nqbench.measure.sampling import LONG_LAUNCH_S, Policy
from nqbench.measure.worker.messages import Hello
from nqbench.point import Point

if TYPE_CHECKING:
    from nqbench.study.model import Study


def protocol_of(study: Study) -> dict[str, Any]:
    """How measurements are sampled: what enters the keys of timed points."""
    return {**asdict(policy_of(study)), "long_launch_s": LONG_LAUNCH_S}


def policy_of(study: Study) -> Policy:
    """The sampling policy of a study; every round gets the same share of a point's budget."""
    measure = study.measure
    return Policy(
        target=measure.target,
        samples=measure.samples,
        share_s=measure.budget_s / measure.rounds,
        warm_up=measure.warmup,
    )


def check_same_run(path: Path, old: Mapping[str, Any], study: Study, device: str) -> None:
    """Refuse to mix studies or devices in one folder. Raises ``FolderRefused``."""
    old_study, old_device = old["study"]["name"], old["device"]["facts"]["name"]
    for what, before, now in (("study", old_study, study.name), ("device", old_device, device)):
        if before != now:
            raise FolderRefused(
                f"{path} holds a run of {what} {before!r}, not {now!r};"
                " give another folder with --out, or put the old run aside with --fresh"
            )


def make_manifest(
    study: Study,
    hello: Hello,
    points: Sequence[tuple[Point, str]],
    command: Sequence[str],
    old: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """The manifest of a run that starts now, or resumes ``old``.

    ``points`` are pairs of point and key. The seed of the visiting orders and the time of the
    first start are kept from ``old``; every start adds a line to ``history``.
    """
    now = datetime.now(UTC).isoformat(timespec="seconds")
    described = environment.describe()
    start = {
        "started": now,
        "command": list(command),
        "source_sha256": described["source_sha256"],
        "git": described["git"],
    }
    return {
        "created": old["created"] if old else now,
        "command": list(command),
        "study": {**study.as_json(), "text": study.text},
        "device": device_json(hello),
        "protocol": {**protocol_of(study), "rounds": study.measure.rounds},
        "environment": described,
        "seed": old["seed"] if old else secrets.randbits(32),
        "history": [*(old["history"] if old else ()), start],
        "points": [{"key": key, **point.as_json()} for point, key in points],
    }


def device_json(hello: Hello) -> dict[str, Any]:
    """A device as a manifest describes it."""
    return {
        "spec": hello.spec,
        "kind": hello.kind,
        "timed": hello.timed,
        "deterministic": hello.deterministic,
        "identity": hello.identity,
        "facts": hello.facts.as_dict(),
        "host": hello.host,
    }


def hello_of(device: Mapping[str, Any]) -> Hello:
    """The device of a manifest, which no process has open."""
    return Hello(
        spec=device["spec"],
        timed=device["timed"],
        deterministic=device["deterministic"],
        identity=device["identity"],
        facts=DeviceFacts.from_dict(device["facts"]),
        host=device["host"],
        no_telemetry="",
        pid=0,
    )
