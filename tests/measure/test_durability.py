"""A short killing campaign: runner and worker die at random moments, and nothing is lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from nqbench.runs.reading import RECORDS
from tests.measure import clockwork, durability
from tests.measure.durability import LostRecord, Tally, campaign

KILLS = 4


@pytest.fixture(scope="module")
def campaigned(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Tally]:
    """The folder and the tally of a campaign, which ends without ``LostRecord``."""
    folder = tmp_path_factory.mktemp("campaign")
    return folder, campaign(folder, KILLS, seed=3, longest_wait_s=1.0)


def test_killed_runs_end_as_an_undisturbed_one(campaigned: tuple[Path, Tally]) -> None:
    _, tally = campaigned
    assert tally.kills == {"runner": KILLS / 2, "worker": KILLS / 2}
    assert tally.runs >= 1


def test_the_campaign_would_notice_a_lost_record(campaigned: tuple[Path, Tally]) -> None:
    """The harness itself: a record that vanishes, and one that was announced and never stored."""
    folder = campaigned[0] / "undisturbed"
    whole = (folder / RECORDS).read_bytes()
    lines = whole.splitlines(keepends=True)
    truth = durability.table(folder)
    assert len(truth) == clockwork.MEASUREMENTS
    (folder / RECORDS).write_bytes(b"".join(lines[:-1]))
    assert durability.table(folder) == [row for row in truth if row in durability.table(folder)]
    assert len(durability.table(folder)) == clockwork.MEASUREMENTS - 1
    with pytest.raises(LostRecord, match="there before are gone"):
        durability._check(folder, whole, [], Tally())
    with pytest.raises(LostRecord, match="reported as stored"):
        durability._check(folder, b"", ["11 3 wrong\n"], Tally())
    durability._check(folder, b"", ["started\n", "7 0 ok\n", "11 3 wro"], Tally())
