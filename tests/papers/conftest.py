"""The fitness paper, whose tests are in two files; another paper's have fixtures of their own."""

from __future__ import annotations

import pytest

from nqbench.analysis.data.observed import Observed
from nqbench.papers import load_paper
from nqbench.papers.schema import Paper
from tests.papers.runs import fitness


@pytest.fixture(scope="module")
def paper() -> Paper:
    return load_paper("fitness_schemes")


@pytest.fixture(scope="module")
def own() -> Observed:
    return fitness().observed("fitness_schemes")
