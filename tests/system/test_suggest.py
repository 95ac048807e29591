"""What a wrong name is answered with."""

from __future__ import annotations

import pytest

from nqbench.system.suggest import listing, nearest, shown, suggestion


@pytest.mark.parametrize(
    ("word", "known", "meant"),
    [
        ("blocksize", ("block_size", "blocks", "depth"), "block_size"),
        ("cdua", ("auto", "cuda", "sim", "cpu"), "cuda"),
        ("cpa", ("cuda", "sim", "cpu"), "cpu"),
        ("opt4_compac", ("feinbube2010.base", "feinbube2010.opt4_compact"),
         "feinbube2010.opt4_compact"),
        ("speedups", ("Speedup", "Time"), "Speedup"),
        ("memory", ("layout", "loop", "assignment"), None),
        ("x", (), None),
        ("tanaka2011.noen", ("tanaka2011.none", "tanaka2011.both"), "tanaka2011.none"),
        ("feinbube2010.opt3", ("feinbube2010.base", "feinbube2010.opt3_shared_extern"),
         "feinbube2010.opt3_shared_extern"),
        ("zhang2011.opt1", ("tanaka2011.both", "zhang2011.naive"), None),
        ("zhang.naive", ("tanaka2011.both", "zhang2011.naive"), "zhang2011.naive"),
    ],
)  # fmt: skip
def test_nearest(word: str, known: tuple[str, ...], meant: str | None) -> None:
    assert nearest(word, known) == meant


def test_sentences() -> None:
    assert suggestion("dept", ["depth", "loop"]) == "did you mean 'depth'?"
    assert suggestion("x", ["depth", "loop"]) == "choose from depth or loop"
    assert suggestion("p.x", ["p.one", "q.x", "p.two"]) == "choose from p.one or p.two"
    assert listing(map(str, range(20))).endswith("13, ... (20 in all)")
    assert shown("a\nb") == "'a\\nb'"
