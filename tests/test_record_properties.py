"""Any record and any set of points comes back from disk as it was: stored, loaded, exported."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nqbench.record import Record
from nqbench.runs.folder import RunWriter
from nqbench.runs.reading import read_records
from nqbench.vocabulary import COUNTERS, STATUSES
from nqbench.workloads import phases as known_phases

KEYS = ("k1", "k2", "k3")
anything = settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])

# Control characters are marked on reading: tests/runs/test_hostile.py.
printing = st.characters(exclude_categories=["Cc", "Cf", "Cs", "Zl", "Zp"])
texts = st.text(printing, max_size=12) | st.just("path/\udcff of no encoding")
seconds = st.floats(1e-9, 1e6)
names = st.sampled_from(["memory", "depth", "blocks", "status", "value_s", "grösse"])
levels: st.SearchStrategy[Any] = st.one_of(
    st.integers(-5, 10**12), texts, st.builds(dict, per_sm=st.integers(1, 99))
)
values = st.one_of(st.integers(-(10**30), 10**30), st.floats(-1e30, 1e30), texts, st.booleans())
points = st.fixed_dictionaries(
    {
        "study": texts,
        "sweep": texts,
        "workload": st.just("counting"),
        "system": st.none() | texts,
        "label": texts,
        "factors": st.dictionaries(names, levels, max_size=4).map(lambda f: {**f, "n": 8}),
    }
)
records = st.builds(
    Record,
    key=st.sampled_from(KEYS),
    point=points,
    device=st.sampled_from(["cuda:0", "cpu", "sim:mini"]),
    round=st.integers(0, 3),
    status=st.sampled_from(STATUSES),
    reason=texts,
    order=st.integers(0, 99),
    answer=st.none() | st.integers(0, 10**40).map(str),
    expected=st.none() | st.integers(0, 10**40).map(str),
    value_s=st.none() | seconds,
    samples_s=st.lists(seconds, max_size=5).map(tuple),
    phases=st.dictionaries(st.sampled_from(list(known_phases())), seconds),
    counters=st.dictionaries(
        # Its meaning once was another one: a record that has it alone is read as an old one.
        st.sampled_from(sorted(set(COUNTERS) - {"bank_conflicts"})),
        st.integers(0, 2**53),
    ),
    resources=st.dictionaries(st.sampled_from(["registers", "occupancy"]), st.integers(0, 255)),
    about=st.dictionaries(st.sampled_from(["jobs", "depth", "é"]), values, max_size=3),
    ended_by=texts,
    started=texts,
    wall_s=seconds,
    worker=st.integers(0, 2**22),
)
MANIFEST: dict[str, Any] = {
    "study": {"name": "s"},
    "device": {"kind": "cuda", "facts": {"name": "d"}},
    "points": [{"key": key, "sweep": "s", "factors": {"n": 8}} for key in KEYS],
}


def stored(path: Path, written: list[Record]) -> Path:
    """A fresh run folder with these records."""
    with RunWriter(path) as writer:
        writer.archive()
        writer.write_manifest(MANIFEST)
        for record in written:
            writer.append(record)
    return path


@given(written=st.lists(records, min_size=1, max_size=6))
@anything
def test_records_come_back_as_they_were(written: list[Record], tmp_path: Path) -> None:
    found = read_records(stored(tmp_path / "r", written))
    assert list(found.records) == written
    assert not found.torn
