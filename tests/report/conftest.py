"""A browser for the tests of pages, and the runs that reports are made of."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from typing import Final

import pytest
from playwright.sync_api import Browser, sync_playwright

from nqbench.analysis.data.dataset import Dataset
from tests.builders import MINI, ablation

CHROMIUM: Final = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Headless Chromium; without one tests are skipped, which is an error where ``CI=true``."""
    program = next(filter(None, map(shutil.which, CHROMIUM)), None)
    if program is None:
        why = "no Chromium to test pages in: apt-get install chromium-headless-shell"
        if os.environ.get("CI") == "true":
            pytest.fail(why)
        pytest.skip(why)
    with sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=program)
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def measured() -> Dataset:
    return ablation().data()


@pytest.fixture(scope="module")
def simulated() -> Dataset:
    return ablation(MINI).data()
