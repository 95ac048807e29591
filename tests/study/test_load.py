"""What a loaded study holds, and its plain form."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest

from nqbench.errors import StudyError
from nqbench.study import Measure, ReportItem
from nqbench.study.values import duration_s, fraction
from nqbench.system.yaml_marks import parse
from tests.study.fake import points_of, study_of


def test_defaults(tmp_path: Path) -> None:
    study = study_of(tmp_path, "name: s\nn: 10\nfixed: {depth: 4}")
    assert study.measure == Measure(0.005, 5, 10.0, 10, 1, 60.0)
    assert (study.about, study.workload, study.report) == ("", "counting", ())
    assert study.path == tmp_path / "study.yaml"
    assert study.text.startswith("name: s")


def test_a_value_may_be_a_counter_of_one_kernel(tmp_path: Path) -> None:
    head = "name: s\nn: 10\nmatrix: {depth: [4]}\nreport: [{table: results, value: VALUE}]"
    study = study_of(tmp_path, head.replace("VALUE", "global_bytes@apply"))
    assert study.report[0].value == "global_bytes@apply"
    with pytest.raises(StudyError, match="'value' cannot be 'globul_bytes@apply'"):
        study_of(tmp_path, head.replace("VALUE", "globul_bytes@apply"))


def test_measure_and_report(tmp_path: Path) -> None:
    study = study_of(
        tmp_path,
        "name: s\nn: 10\nmatrix: {depth: [4], block_size: [32]}\n"
        "measure: {target: 2 %, rounds: 3, budget: 1m30s, samples: 5, warmup: 0, timeout: 500ms}\n"
        "report:\n- {figure: heatmap, x: depth, y: block_size, value: kernel}\n"
        "- {table: results}",
    )
    assert study.measure == Measure(0.02, 3, 90.0, 5, 0, 0.5)
    heatmap, results = study.report
    options = {"of": "s", "x": "depth", "y": "block_size", "value": "kernel"}
    assert heatmap == ReportItem("figure", "heatmap", **options)
    assert results == ReportItem("table", "results")
    assert heatmap.as_json() == {"figure": "heatmap", **options}


def test_plain_form_is_json_without_the_folder(tmp_path: Path) -> None:
    text = "name: s\nn: {sim: [10]}\nfixed: {depth: 'n - 6'}\nmeasure: {budget: 2s}"
    study = study_of(tmp_path, text)
    plain = json.loads(json.dumps(study.as_json()))
    assert plain["sweeps"] == [{"name": "s", "fixed": {"depth": "n - 6"}}]
    assert plain["measure"]["budget_s"] == 2.0
    assert plain["n"] == {"sim": [10]}
    assert str(tmp_path) not in json.dumps(plain)


def test_a_study_can_be_sent_to_another_process(tmp_path: Path) -> None:
    study = study_of(tmp_path, "name: s\nn: 10\nfixed: {depth: 4}\nwhere: n > 3")
    assert pickle.loads(pickle.dumps(study)) == study


def test_anchors_work_and_merge_keys_do_not(tmp_path: Path) -> None:
    text = "name: s\nn: 10\nsweeps:\n- fixed: &base {depth: 4}\n  name: a\n- name: b\n  fixed: "
    assert [p.factors["depth"] for p in points_of(tmp_path, f"{text}*base")] == [4, 4]
    with pytest.raises(StudyError, match=r"study\.yaml:7: there are no merge keys"):
        points_of(tmp_path, f"{text}{{<<: *base}}")


def test_numbers_with_an_exponent_need_no_point() -> None:
    text = "a: [1e-4, 2E5, -3.5e+2, .5e1]\nb: ['1e-4', 1e, e4, 0x1e5]"
    assert parse(Path("s.yaml"), text).data == {
        "a": [0.0001, 200000.0, -350.0, 5.0],
        "b": ["1e-4", "1e", "e4", 0x1E5],
    }


def test_a_mistake_behind_an_alias_is_shown_where_the_alias_stands(tmp_path: Path) -> None:
    text = "name: s\nn: 10\nmatrix:\n  depth: &d [4]\n  memory: *d\n"
    with pytest.raises(StudyError, match=r"study\.yaml:\d+: 'memory' takes .* not the number 4"):
        points_of(tmp_path, text)


def test_durations_and_percentages() -> None:
    right = {"10s": 10, "500ms": 0.5, "2m": 120, "1.5h": 5400, "1m30s": 90, "3 min": 180}
    assert {text: duration_s(text) for text in right} == pytest.approx(right)
    right = {"0.5%": 0.005, "1 %": 0.01, "50%": 0.5}
    assert {text: fraction(text) for text in right} == pytest.approx(right)
    for wrong in ("", "10", "s", "-1s", "1d", "0s", "9999h", "1e3s", 10, None):
        with pytest.raises(StudyError, match="duration"):
            duration_s(wrong)
    for share in ("", "1", "0%", "51%", "-1%", "1%%", 0.5, None):
        with pytest.raises(StudyError, match="percentage"):
            fraction(share)
