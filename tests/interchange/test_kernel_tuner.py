"""kernel_tuner's files: a tuning space becomes a study that runs, a run becomes results."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nqbench.cli.app import app
from nqbench.errors import FolderRefused, InterchangeError, StudyError
from nqbench.interchange import export_run, import_study
from nqbench.runs.reading import read_records
from nqbench.study import load_study
from tests.cli.call import call
from tests.toys import run_here

CODE = """
__constant__ float offset[1];
extern "C" __global__ void scale(float *out, const float *in, float factor, int count)
{
    for (int k = 0; k < items; k++) {
        int i = (blockIdx.x * block_size_x + threadIdx.x) * items + k;
#if wrong
        if (i < count) out[i] = factor * in[i] + offset[0] + (items == wrong);
#else
        if (i < count) out[i] = factor * in[i] + offset[0];
#endif
    }
}
"""
PARAMETERS: list[dict[str, Any]] = [
    {"Name": "block_size_x", "Type": "int", "Values": "[32, 64]"},
    {"Name": "items", "Type": "int", "Values": "list(range(1, 4))"},
    {"Name": "wrong", "Type": "bool", "Values": "[0]"},
]
ARGUMENTS: list[dict[str, Any]] = [
    {
        **{"Name": "out", "Type": "float", "MemoryType": "Vector", "AccessType": "WriteOnly"},
        **{"Size": "ProblemSize[0]", "FillType": "Constant", "FillValue": 0.0},
    },
    {
        **{"Name": "in", "Type": "float", "MemoryType": "Vector", "AccessType": "ReadOnly"},
        **{"Size": 1000, "FillType": "Random", "RandomSeed": 7},
    },
    {"Name": "factor", "Type": "float", "MemoryType": "Scalar", "FillValue": 2.5},
    {"Type": "int32", "MemoryType": "Scalar", "FillValue": 1000},
    {
        **{"Name": "offset", "Type": "float", "MemoryType": "Symbol", "Size": 1},
        **{"FillType": "Constant", "FillValue": 0.5},
    },
]


def space(**kernel: Any) -> dict[str, Any]:
    """A T1 file; ``kernel`` replaces keys of its KernelSpecification."""
    specification = {
        **{"Language": "CUDA", "KernelName": "scale", "KernelFile": "scale.cu"},
        **{"CompilerOptions": ["-std=c++17 -O3", "-Iheaders"], "ProblemSize": [1000]},
        **{"LocalSize": {"X": "block_size_x"}, "GlobalSize": {"X": "1000"}},
        **{"GridDivX": ["block_size_x", "items"], "Arguments": ARGUMENTS},
    }
    conditions = [{"Expression": "block_size_x * items <= 128 && items != 4", "Parameters": []}]
    return {
        "ConfigurationSpace": {"TuningParameters": PARAMETERS, "Conditions": conditions},
        "KernelSpecification": specification | kernel,
        "Budget": [{"Type": "ConfigurationCount", "BudgetValue": 5}],
    }


def write(folder: Path, data: Mapping[str, Any], code: str = CODE) -> Path:
    path = folder / "scale.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    (folder / "scale.cu").write_text(code, encoding="utf-8")
    (folder / "headers").mkdir(exist_ok=True)
    return path


def imported(folder: Path, data: Mapping[str, Any], code: str = CODE) -> dict[str, Any]:
    """The study of a T1 file as plain data; it must be one that can be loaded."""
    out = folder / "study" / "scale.yaml"
    import_study("kernel_tuner", write(folder, data, code), out)
    return dict(load_study(out).source.data)


def test_a_space_becomes_a_study_that_runs_and_is_checked(tmp_path: Path) -> None:
    file, out = write(tmp_path, space()), tmp_path / "study" / "scale.yaml"
    done = call("import", "kernel_tuner", str(file), "--out", str(out))
    assert done.code == 0, done.err
    assert "left out of the compiler's options: -O3" in done.err
    assert "Search and Budget are left out" in done.err
    outcome = run_here(load_study(out), "sim:mini", tmp_path / "run")
    # 64 x 3 exceeds the condition; the first configuration is what the others must be like.
    assert outcome.counts == {"ok": 5}
    results = json.loads(export_run(tmp_path / "run", "kernel_tuner", None))["results"]
    sizes = [(r["configuration"]["block_size_x"], r["configuration"]["items"]) for r in results]
    assert sizes == [(32, 1), (32, 2), (32, 3), (64, 1), (64, 2)]
    assert {r["invalidity"] for r in results} == {"correct"}


def test_a_configuration_that_computes_something_else_is_wrong(tmp_path: Path) -> None:
    data = space()
    data["ConfigurationSpace"]["TuningParameters"] = [
        *PARAMETERS[:2],
        {"Name": "wrong", "Type": "int", "Values": "[3]"},
    ]
    out = tmp_path / "scale.yaml"
    import_study("kernel_tuner", write(tmp_path, data), out)
    outcome = run_here(load_study(out), "sim:mini", tmp_path / "run")
    assert outcome.counts == {"ok": 4, "wrong": 1}
    results = json.loads(export_run(tmp_path / "run", "kernel_tuner", None))["results"]
    [wrong] = [r for r in results if r["invalidity"] == "correctness"]
    assert wrong["configuration"] == {"n": 1000, "block_size_x": 32, "items": 3, "wrong": 3}
    assert (wrong["correctness"], wrong["measurements"], wrong["times"]["runtimes"]) == (0, [], [])


def test_what_the_keys_become(tmp_path: Path) -> None:
    kernel = imported(tmp_path, space())["kernel"]
    assert kernel["source"] == "../scale.cu"
    assert kernel["options"] == ["-std=c++17"]
    assert kernel["include"] == ["../headers"]
    assert kernel["macros"]["kernel_tuner"] == 1
    assert kernel["grid"] == ["ceil(n / (block_size_x * items))"]
    assert kernel["factors"]["block_size_x"] == {"levels": [32, 64], "launch": True}
    assert kernel["factors"]["items"] == [1, 2, 3]
    assert kernel["arguments"]["out"] == {"dtype": "float32", "length": 1000, "contents": "zeros"}
    assert kernel["arguments"]["in_"]["seed"] == 7  # `in` is a word of Python
    assert kernel["arguments"]["argument_3"] == {"dtype": "int32", "value": 1000}
    assert kernel["variables"]["offset"]["contents"] == "0.5"
    check = kernel["check"]["out"]
    assert check["reference"] == {"block_size_x": 32, "items": 1, "wrong": 0}


@pytest.mark.parametrize(
    ("values", "levels"),
    [
        ("[1, 2, 4]", [1, 2, 4]),
        ("(1, 2)", [1, 2]),
        ("list(range(2, 10, 4))", [2, 6]),
        ("range(3)", [0, 1, 2]),
        ("[0] + list(range(2, 4))", [0, 2, 3]),
        ("[2**i for i in range(3)]", [1, 2, 4]),
        ("[0.5, 2.0]", ["0.5", "2.0"]),
        ("[True, False]", [1, 0]),
        ("['float', 'double']", ["float", "double"]),
        ([16, 16, 32], [16, 32]),
    ],
)
def test_values_of_a_parameter(tmp_path: Path, values: Any, levels: list[Any]) -> None:
    data = space(Arguments=ARGUMENTS[2:])
    data["ConfigurationSpace"] = {
        "TuningParameters": [
            {"Name": "block_size_x", "Type": "int", "Values": "[32]"},
            {"Name": "items", "Type": "int", "Values": "[1]"},
            {"Name": "x", "Type": "int", "Values": values},
        ]
    }
    assert imported(tmp_path, data)["kernel"]["factors"]["x"] == levels


def test_sizes_files_references_and_templates(tmp_path: Path) -> None:
    """OpenCL's kind of global size, max over a parameter, raw files, local memory."""
    raw = {**ARGUMENTS[1], "FillType": "BinaryRaw", "DataSource": "in.raw", "Size": 1000}
    local = {"Type": "float4", "MemoryType": "Local", "Size": 16}
    vector = {**ARGUMENTS[0], "Size": "ProblemSize[0] + max(items) - 3"}
    np.save(tmp_path / "in.npy", np.arange(1000, dtype="float32"))
    reference = {
        **{"Name": "right", "TargetName": "out", "FillType": "Constant", "FillValue": 3.0},
        **{"ValidationMethod": "SideBySideRelativeComparison", "ValidationThreshold": 0.01},
    }
    data = space(
        KernelName="scale<items, float>",
        Arguments=[vector, raw, *ARGUMENTS[2:], local],
        ProblemSize=[1000],
        ReferenceArguments=[reference],
    )
    study = imported(tmp_path, data)
    kernel = study["kernel"]
    assert (kernel["entry"], kernel["shared"]) == ("scale<{items}, float>", 256)
    assert kernel["arguments"]["out"]["length"] == "1000 + 3 - 3"
    assert kernel["arguments"]["in_"]["contents"] == "../in.npy"
    assert kernel["check"] == {"out": {"equals": "3.0", "relative": 0.01}}
    data["KernelSpecification"] |= {"GlobalSizeType": "OpenCL", "ProblemSize": []}
    data["KernelSpecification"]["Arguments"] = ARGUMENTS[2:]
    data["KernelSpecification"]["ReferenceArguments"] = []
    (tmp_path / "study" / "scale.yaml").unlink()
    study = imported(tmp_path, data, CODE + "// grid_size_x")
    assert study["kernel"]["values"] == {"grid_size_x": "ceil((1000) / (block_size_x))"}
    assert study["kernel"]["grid"] == ["grid_size_x"]
    assert study["kernel"]["macros"]["grid_size_x"] == "grid_size_x"
    assert study["n"] == [1]


MISTAKES: dict[str, tuple[Any, str]] = {
    "not a space": ({"results": []}, "is not a T1 file of kernel_tuner: it holds results"),
    "language": (space(Language="OpenCL"), "KernelSpecification.Language is 'OpenCL': CUDA"),
    "missing": (
        {"KernelSpecification": space()["KernelSpecification"]},
        "ConfigurationSpace is missing",
    ),
    "kind": (space(KernelFile=3), "KernelSpecification.KernelFile is 3: input should be"),
    "type": (
        space(Arguments=[{**ARGUMENTS[2], "Type": "quad"}]),
        "KernelSpecification.Arguments[0].Type is 'quad': only bool",
    ),
    "fill": (
        space(Arguments=[{**ARGUMENTS[1], "FillType": "Script"}]),
        "Arguments[0].FillType is 'Script': Constant, Random and BinaryRaw",
    ),
    "size": (
        space(Arguments=[{**ARGUMENTS[1], "Size": "2 * width"}]),
        "Arguments[0].Size is '2 * width': there is no parameter width",
    ),
    "target": (
        space(ReferenceArguments=[{"Name": "r", "TargetName": "put", "FillType": "Constant"}]),
        "TargetName is 'put': there is no buffer of that name; there are out",
    ),
    "no size": (space(ProblemSize=[], GlobalSize=None), "needs ProblemSize or GlobalSize"),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_what_is_not_understood_is_said_with_its_place(tmp_path: Path, case: str) -> None:
    data, words = MISTAKES[case]
    file = write(tmp_path, data)
    with pytest.raises(InterchangeError) as error:
        import_study("kernel_tuner", file, None)
    assert str(file) in str(error.value)
    assert words in str(error.value)


@pytest.mark.parametrize("values", ["os.getcwd()", "[open('x')]", "range(10**9)", "3", "[]"])
def test_values_are_never_executed(tmp_path: Path, values: str) -> None:
    data = space()
    data["ConfigurationSpace"] = {
        "TuningParameters": [{"Name": "x", "Type": "int", "Values": values}]
    }
    with pytest.raises(InterchangeError, match=r"TuningParameters\[0\].Values"):
        import_study("kernel_tuner", write(tmp_path, data), None)


def test_a_file_is_not_overwritten_and_a_format_is_known(tmp_path: Path) -> None:
    file = write(tmp_path, space())
    with pytest.raises(FolderRefused, match="exists already"):
        import_study("kernel_tuner", file, file)
    with pytest.raises(StudyError, match="known: kernel_tuner"):
        import_study("opentuner", file, None)
    assert "import" in [command.name for command in app.registered_commands]


def test_times_of_all_rounds_are_the_runtimes(tmp_path: Path) -> None:
    measure = {"rounds": 2, "samples": 3, "budget": "400ms"}
    system = "zhang2011.low_divergence"
    study = load_study({"name": "s", "n": [8], "system": system, "measure": measure})
    run = tmp_path / "run"
    assert run_here(study, "fake", run).counts == {"ok": 1}
    out = tmp_path / "results.json"
    export_run(run, "kernel_tuner", out)
    data = json.loads(out.read_text(encoding="utf-8"))
    assert data["schema_version"] == "1.0.0"
    [first] = data["results"]
    assert first["objectives"] == ["time"]
    assert first["configuration"]["system"] == system
    samples = [v for r in read_records(run).records for v in r.samples_s]
    assert first["times"]["runtimes"] == pytest.approx([1e3 * value for value in samples])
    time = first["measurements"][0]
    assert time["unit"] == "ms"
    assert time["value"] == pytest.approx(1e3 * float(np.median(samples)), rel=0.1)
    metadata = json.loads((tmp_path / "results-metadata.json").read_text(encoding="utf-8"))
    assert metadata["metadata"]["environment"]["device_query"]["name"] == "fake device (test)"
