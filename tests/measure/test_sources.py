"""What counts as a change of a source, and which files a workload's numbers depend on."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

from nqbench.measure.identity.keys import measuring_sources, workload_sources
from nqbench.measure.identity.sources import Sources, bases_of, kernel_meaning, python_meaning
from nqbench.system.versions import PACKAGE


def names(sources: Sources | None) -> set[str]:
    """The files of sources, relative to the package's folder."""
    assert sources is not None
    return {str(path.relative_to(PACKAGE)) for path in sources.files()}


MODULE = '''"""Text about it."""
import math

LIMIT = 3
"""A note below a constant."""


def area(radius):
    """Docstring."""
    # why
    return math.pi * radius**2
'''


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Text about it", "Other text"),
        ("# why", "# for another reason"),
        ("A note", "Another note"),
        ('    """Docstring."""\n', ""),
        ("math.pi * radius**2", "(math.pi\n            * radius ** 2)"),
    ],
)
def test_words_and_layout_of_a_module_mean_nothing(old: str, new: str) -> None:
    assert old in MODULE
    assert python_meaning(MODULE.replace(old, new)) == python_meaning(MODULE)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("LIMIT = 3", "LIMIT = 4"),
        ("radius**2", "radius*2"),
        ("import math", "import cmath as math"),
    ],
)
def test_code_of_a_module_means_something(old: str, new: str) -> None:
    assert python_meaning(MODULE.replace(old, new)) != python_meaning(MODULE)


KERNEL = """// about
#define STEP(x) \\
    ((x) + 1)
/* a
   block */
__global__ void run(int *out) {
    const char *url = "https://x";  // a slash in quotes
    out[0] = STEP(2);
}
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("// about", "// other words"),
        ("/* a\n   block */", ""),
        ("// a slash", "/* none */ // a slash"),
        ("    out[0] = STEP", "out[0]   = STEP"),
        ("{\n", "{\n\n"),
    ],
)
def test_words_and_layout_of_a_kernel_mean_nothing(old: str, new: str) -> None:
    assert kernel_meaning(KERNEL.replace(old, new)) == kernel_meaning(KERNEL)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("STEP(2)", "STEP(3)"),
        ('"https://x"', '"https://y"'),  # not taken for a comment
        ("+ 1)", "+ 2)"),
        ("\\\n    ((x)", "\\\n\n    ((x)"),  # an empty line ends the macro
        ("    out[0]", "//  out[0]"),
        ("int *out", "int*out, int"),
    ],
)
def test_code_of_a_kernel_means_something(old: str, new: str) -> None:
    assert old in KERNEL
    assert kernel_meaning(KERNEL.replace(old, new)) != kernel_meaning(KERNEL)


@pytest.mark.parametrize("odd", ['R"(a // b)"', "__LINE__", "1'000'000", "#error don't"])
def test_where_layout_may_matter_the_whole_text_counts(odd: str) -> None:
    text = KERNEL + odd + "\n"
    assert kernel_meaning(text) == text


def test_a_workload_depends_on_its_kernels_and_helpers_and_on_nothing_else() -> None:
    found = names(workload_sources("counting", host=False))
    assert {
        "workloads/counting/nqueens.cu",
        "workloads/counting/search.cuh",
        "workloads/counting/plans.py",
        "workloads/counting/cpu.py",
        "plan.py",
    } <= found
    assert not {f for f in found if f.startswith(("report", "study", "analysis", "devices"))}
    assert not {"errors.py", "cli.py", "__init__.py"} & found


def test_baselines_do_not_depend_on_kernels() -> None:
    found = names(workload_sources("counting", host=True))
    assert "workloads/counting/cpu_search.py" in found
    assert not {f for f in found if f.endswith((".cu", ".cuh"))}


@pytest.mark.parametrize(
    ("family", "needed", "foreign"),
    [
        (
            "cuda",
            {"devices/cuda/prepared.py", "compiler/nvrtc.py", "compiler/occupancy.py"},
            "devices/sim",
        ),
        ("sim", {"devices/sim/codegen/memory.py", "devices/sim/rules.py"}, "devices/cuda"),
        ("cpu", {"devices/cpu.py"}, "devices/sim"),
    ],
)
def test_a_device_depends_on_its_own_code_only(family: str, needed: set[str], foreign: str) -> None:
    measuring, device = map(names, measuring_sources(family, exact=False))
    assert needed <= device
    assert not {f for f in device if f.startswith((foreign, "measure", "workloads", "store"))}
    assert {
        "measure/worker/session.py",
        "measure/sampling/sampling.py",
        "measure/sampling/timer.py",
    } <= measuring
    assert not {f for f in measuring if f.startswith(("devices", "workloads", "store"))}


def test_counting_exactly_does_not_depend_on_how_times_are_sampled() -> None:
    measuring, _ = map(names, measuring_sources("sim", exact=True))
    assert "measure/worker/session.py" in measuring
    assert "measure/sampling.py" not in measuring


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A foreign package with a kernel, an include of an include, and a helper."""
    folder = tmp_path / "foreign_workload"
    (folder / "shared").mkdir(parents=True)
    (folder / "__init__.py").write_text("")
    (folder / "work.py").write_text(
        "from . import helper\nHOST = 'foreign_workload.host:run'\nimport json\n"
    )
    (folder / "helper.py").write_text("SIZE = 32\n")
    (folder / "host.py").write_text("def run(): return 1\n")
    (folder / "other.py").write_text("UNUSED = 1\n")
    (folder / "kernel.cu").write_text('#include "shared/a.cuh"\nint main();\n')
    (folder / "shared" / "a.cuh").write_text('#include "b.cuh"\n')
    (folder / "shared" / "b.cuh").write_text("int b;\n")
    (folder / "shared" / "c.cuh").write_text("int c;\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield_to = importlib.import_module("foreign_workload.work")
    assert yield_to.HOST
    monkeypatch.setitem(sys.modules, "foreign_workload.work", yield_to)
    return folder


def test_a_foreign_package_is_followed_too(package: Path) -> None:
    module = sys.modules["foreign_workload.work"]
    sources = Sources((module.__name__,), bases=bases_of(module), kernels="folder")
    found = {str(path.relative_to(package)) for path in sources.files()}
    assert found == {
        *("work.py", "helper.py", "host.py", "__init__.py", "kernel.cu"),
        *("shared/a.cuh", "shared/b.cuh"),
    }
    before = sources.digest()
    for unrelated in ("other.py", "shared/c.cuh"):
        (package / unrelated).write_text("x = 2\n")
        assert sources.digest() == before
    for related in ("helper.py", "host.py", "kernel.cu", "shared/b.cuh"):
        old = (package / related).read_text()
        (package / related).write_text(old + "\nint more;\n" if "cu" in related else "y = 1\n")
        assert sources.digest() != before
        (package / related).write_text(old)
        assert sources.digest() == before
