"""Quantities: what a name means, and what an unknown name is told."""

from __future__ import annotations

import math

import pytest

from nqbench.analysis.data.quantities import SHOWN_COUNTERS, quantity
from nqbench.errors import AnalysisError
from nqbench.study.report_items import values


@pytest.mark.parametrize("name", [*values(), *SHOWN_COUNTERS])
def test_every_value_a_study_may_name_is_known(name: str) -> None:
    assert quantity(name).name == name


def test_off_chip_sectors_are_local_and_global() -> None:
    row = {"local_sectors": 3.0, "global_sectors": 4.0}
    assert quantity("off_chip_sectors").of(row) == 7.0


def test_a_value_not_recorded_is_nan_not_zero() -> None:
    assert math.isnan(quantity("bank_conflicts").of({}))


def test_times_and_counters_never_share_a_kind() -> None:
    assert quantity("kernel").kind == "time"
    assert quantity("issue_slots").kind == "counter"


def test_unknown_name_gets_the_nearest() -> None:
    with pytest.raises(AnalysisError, match="did you mean 'bank_conflicts'"):
        quantity("bank_conflict")
