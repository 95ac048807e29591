"""Models of GPUs: what comes with the package, and what a wrong file is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from nqbench.compiler.compile import compile_cubin
from nqbench.devices.models import DEFAULT_MODEL, load_model, model_names
from nqbench.errors import DeviceUnavailable
from nqbench.facts import DeviceFacts

GOOD = """\
about: a chip
facts:
  name: chip
  compute_capability: [9, 0]
  multiprocessors: 2
memory: {rules: sectors, shared_banks: 32, bank_bytes: 4, sector_bytes: 32}
"""


@pytest.mark.parametrize("name", model_names())
def test_every_model_loads_and_is_consistent(name: str) -> None:
    model = load_model(name)
    facts = model.facts
    assert model.name == name
    assert facts.kind == "sim"
    assert "CUDA C++ Programming Guide" in model.about
    assert name in (facts.arch, DEFAULT_MODEL)
    assert facts.max_threads_per_multiprocessor == 32 * facts.max_warps_per_multiprocessor
    assert facts.shared_per_block <= facts.shared_per_block_optin
    assert (
        facts.shared_per_block_optin + facts.shared_reserved_per_block
        == facts.shared_per_multiprocessor
    )
    assert facts.shared_carveouts[-1] == facts.shared_per_multiprocessor
    assert list(facts.shared_carveouts) == sorted(facts.shared_carveouts)
    assert model.memory == {
        "rules": "sectors",
        "shared_banks": 32,
        "bank_bytes": 4,
        "sector_bytes": 32,
    }


def test_the_compiler_knows_every_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NQBENCH_CACHE_DIR", str(tmp_path))
    source = tmp_path / "k.cu"
    source.write_text("__global__ void k() {}\n")
    for name in model_names():
        assert compile_cubin(source, "k", load_model(name).facts.arch).image


def test_names_start_with_the_default_and_rise() -> None:
    names = model_names()
    assert names[0] == DEFAULT_MODEL == "mini"
    assert names[1:] == ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120")


def test_the_default_is_a_small_hopper() -> None:
    mini, hopper = load_model().facts, load_model("sm_90").facts
    assert mini.multiprocessors == 4
    assert mini.compute_capability == hopper.compute_capability
    assert mini.shared_per_multiprocessor == hopper.shared_per_multiprocessor


def test_an_own_file_is_a_model(tmp_path: Path) -> None:
    path = tmp_path / "tiny.yaml"
    path.write_text(GOOD)
    model = load_model(str(path))
    assert (model.name, model.facts.multiprocessors, model.facts.arch) == ("tiny", 2, "sm_90")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "multiprocessors: 2",
            "multiprocesors: 2",
            "'multiprocesors' in facts; did you mean 'mult",
        ),
        ("about: a chip", "abut: a chip", "unknown key 'abut' in the file; did you mean 'about'"),
        ("sector_bytes", "sector_byte", "'sector_byte' in memory; did you mean 'sector_bytes'"),
        ("  multiprocessors: 2\n", "", "facts lacks multiprocessors"),
        ("multiprocessors: 2", "multiprocessors: two", r"facts\.multiprocessors is 'two'"),
        ("multiprocessors: 2", "multiprocessors: true", r"facts\.multiprocessors is True"),
        ("multiprocessors: 2", "multiprocessors: -1", "at least 0"),
        ("[9, 0]", "9.0", r"compute_capability is 9\.0; write \[major, minor\]"),
        ("shared_banks: 32", "shared_banks: 0", r"memory\.shared_banks is 0"),
        ("rules: sectors", "rules: sector", "rules 'sector' are not known; did you mean 'sectors'"),
        ("name: chip", "kind: cuda\n  name: chip", "unknown key 'kind' in facts"),
        (GOOD, "- 1\n", "the file must be a mapping"),
        (GOOD, "a: [", "is not YAML"),
    ],
)
def test_a_wrong_file_is_told_what_is_wrong(tmp_path: Path, old: str, new: str, said: str) -> None:
    path = tmp_path / "wrong.yaml"
    path.write_text(GOOD.replace(old, new))
    with pytest.raises(DeviceUnavailable, match=said) as caught:
        load_model(str(path))
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_unknown_name_gets_the_nearest() -> None:
    with pytest.raises(DeviceUnavailable, match=r"'sm_9'; did you mean 'sm_9?[0-9]+'"):
        load_model("sm_9")
    with pytest.raises(DeviceUnavailable, match=r"gone\.yaml cannot be read"):
        load_model("gone.yaml")


def test_facts_survive_the_manifest() -> None:
    facts = DeviceFacts("d", "sim", (8, 6), 12, shared_per_block_optin=101376)
    read = DeviceFacts.from_dict({**facts.as_dict(), "a_fact_of_tomorrow": 1})
    assert read == facts
    assert hash(read) == hash(facts)
