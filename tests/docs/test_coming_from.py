"""The studies of docs/coming-from.md run as written, and its table cells parse as studies."""

from __future__ import annotations

import re
from pathlib import Path

import jsonschema
import pytest
import yaml

from nqbench.study import load_study, schema
from nqbench.study.schema import MeasureFile
from tests.toys import run_here

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "coming-from.md").read_text(encoding="utf-8")
KERNEL, PROGRAMS = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.DOTALL | re.M)
CODE = """
extern "C" __global__ void vector_add(float *c, const float *a, const float *b, int n)
{
    int i = blockIdx.x * block_size_x + threadIdx.x;
    if (i < n) c[i] = a[i] + b[i];
}
"""


def test_the_kernel_runs_in_the_simulator(tmp_path: Path) -> None:
    (tmp_path / "vector_add.cu").write_text(CODE, encoding="utf-8")
    path = tmp_path / "vector_add.yaml"
    path.write_text(KERNEL, encoding="utf-8")
    run = tmp_path / "run"
    outcome = run_here(load_study(path), "sim:mini", run)
    assert outcome.counts == {"ok": 4}


def test_the_programs_run(tmp_path: Path) -> None:
    path = tmp_path / "sorting.yaml"
    quick = PROGRAMS.replace("rounds: 3", "rounds: 2").replace("budget: 3s", "budget: 1s")
    path.write_text(quick, encoding="utf-8")
    outcome = run_here(load_study(path), "cpu", tmp_path / "run")
    assert outcome.counts == {"ok": 6}  # `seq` does not take the order


@pytest.mark.parametrize("cell", re.findall(r"`(measure: \{[^`]*\})`", PAGE))
def test_ways_to_measure_are_keys(cell: str) -> None:
    assert yaml.safe_load(cell)["measure"].keys() <= MeasureFile.model_fields.keys()


@pytest.mark.parametrize("page", ["coming-from.md", "external-programs.md"])
def test_editors_accept_the_studies(page: str) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    for study in re.findall(r"^```yaml\n(.*?)^```", text, re.DOTALL | re.M):
        jsonschema.validate(yaml.safe_load(study), schema())
