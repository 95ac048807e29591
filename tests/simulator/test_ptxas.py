"""What the assembler makes of PTX: hand-made cases, and the SASS of whole kernels.

The cases are what CUDA 13.5's compiler did for compute capability 9.0 on 22 November 2026.
"""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
import pytest

from benchmarks.expansions import disassembled, disassembler, length_of
from nqbench.compiler.compile import compile_kernel
from nqbench.devices.registry import open_simulator
from nqbench.plan import KernelPlan
from nqbench.simulator.ptx import WIDTHS
from nqbench.simulator.translation import Translation, build
from tests.simulator.harness import PLACE, RULES, Rules, counting, cuda, ptx, run

PTXAS: Rules = tuple(sorted((*RULES, ("expand", "sm_90"), ("ptxas", "on"))))
START = """
mov.u32 %r1, %tid.x; mov.u32 %r2, box; shl.b32 %r3, %r1, 5; add.u32 %r4, %r2, %r3;
shl.b32 %r5, %r1, 3; add.u32 %r6, %r2, %r5; mov.u32 %r7, 7; mov.u64 %rd7, 7;
mad.lo.u32 %r8, %r1, 12, %r2;
"""
needs_nvdisasm = pytest.mark.skipif(not disassembler(), reason="nvdisasm is not installed")
BOX = ".shared .align 4 .b8 box[2048];"


def body(accesses: str) -> str:
    """``L4+8`` loads a word from ``[%r4+8]``, ``S`` stores one, a small letter 8 bytes; ``G0`` is a
    store to global memory."""
    lines = []
    for number, word in enumerate(accesses.split()):
        place = "box" + word[2:] if word[1] == "b" else f"%r{word[1:]}"
        lines.append(
            {
                "L": f"ld.shared.u32 %r{20 + number}, [{place}];",
                "S": f"st.shared.u32 [{place}], %r7;",
                "l": f"ld.shared.u64 %rd{10 + number}, [{place}];",
                "s": f"st.shared.u64 [{place}], %rd7;",
                "G": "ld.param.u64 %rd1, [p0]; st.global.u32 [%rd1], %r7;",
            }[word[0]]
        )
    return START + "\n".join(lines)


def shared_accesses(code: Translation) -> Counter[str]:
    """Loads and stores of shared memory by bits, named as in the machine code."""
    found: Counter[str] = Counter()
    for i in (i for block in code.blocks for i in code.assembled.left(block)):
        if i.opcode in ("ld", "st") and i.modifiers[0] == "shared":
            wide = code.assembled.wide.get(i)
            bits = 8 * wide.nbytes if wide else i.elements * WIDTHS[i.modifiers[-1]]
            found[f"{'LDS' if i.opcode == 'ld' else 'STS'}.{bits}"] += 1
    return found


@pytest.mark.parametrize(
    ("accesses", "expected"),
    [
        # %r4 is a multiple of 32, %r6 of 8, %r8 of 4.
        ("L4 L4+4", "LDS.64"),
        ("L4+4 L4+8", "LDS.32 LDS.32"),
        ("L4 L4+8", "LDS.32 LDS.32"),
        ("L4 L4+4 L4+8", "LDS.128"),
        ("L4 L4+4 L4+12", "LDS.128"),
        ("L4 L4+4 L4+8 L4+12 L4+16 L4+20", "LDS.128 LDS.64"),
        ("L4+4 L4", "LDS.64"),
        ("L4 L4+128 L4+4 L4+132", "LDS.64 LDS.64"),
        ("L6 L6+4 L6+8 L6+12", "LDS.64 LDS.64"),
        ("L8 L8+4", "LDS.32 LDS.32"),
        ("l4 l4+8", "LDS.128"),
        ("Lb Lb+4 Lb+8", "LDS.128"),
        ("S4 S4+4 S4+8 S4+12", "STS.128"),
        ("S4 S4+4 S4+8", "STS.64 STS.32"),
        ("S4+4 S4+8 S4+12", "STS.32 STS.64"),
        ("S4 S4+128 S4+4 S4+132", "STS.64 STS.64"),
        # What lies between may change a value, or not.
        ("L4 S4+8 L4+4", "LDS.64 STS.32"),
        ("L4 S4+4 L4+4", "LDS.32 STS.32 LDS.32"),
        ("L4 S6 L4+4", "LDS.32 STS.32 LDS.32"),
        ("S4 L6 S4+4", "STS.32 LDS.32 STS.32"),
        ("S4 S4 S4+4", "STS.32 STS.64"),
        ("S4 G0 S4+4", "STS.64"),
    ],
)
def test_adjacent_accesses_are_merged(accesses: str, expected: str) -> None:
    code = build(ptx(body(accesses), 1, BOX), "k", PTXAS)
    assert shared_accesses(code) == Counter(expected.split())


def test_a_merged_access_is_counted_once() -> None:
    """Lanes 32 bytes apart: four words one by one have 8 passes each. A quarter warp's 128-bit
    accesses want 8 lanes x 4 words of 16 banks, so 2 passes."""
    text = ptx(body("S4 S4+4 S4+8 S4+12"), 1, BOX)
    plain = run(text, [np.zeros(1, np.uint32)]).counters
    merged = run(text, [np.zeros(1, np.uint32)], rules=PTXAS).counters
    assert (plain["shared_requests"], plain["shared_passes"]) == (4, 32)
    assert (merged["shared_requests"], merged["shared_passes"]) == (1, 8)
    assert (plain["bank_conflicts"], merged["bank_conflicts"]) == (28, 4)
    assert plain["warp_instructions"] - merged["warp_instructions"] == 3


STORE, LOGIC = "st.shared.u32 [%r4+{n}], %r7;", "xor.b32 %r20, %r20, %r21;"


def test_predicated_code_issues_once_where_no_lane_takes_it() -> None:
    """The store of the second warp takes an issue slot, and no second one for a pass."""
    branch = "setp.lt.u32 %p1, %r1, 32; @!%p1 bra over;\nst.global.u32 [%rd1], %r1;\nover:\n"
    found = run(ptx(PLACE + branch, 1), [np.zeros(64, np.uint32)], threads=64, rules=PTXAS).counters
    assert found["global_requests"] == 2
    assert found["issue_slots"] == found["warp_instructions"]


@pytest.mark.parametrize(
    ("then", "otherwise", "predicated"),
    [
        ([STORE] * 8, [], True),
        ([STORE] * 9, [], False),
        ([LOGIC] * 12 + [STORE] * 2, [], True),  # two of them are one LOP3
        ([LOGIC] * 13 + [STORE] * 2, [], False),
        ([STORE] * 7, [STORE] * 7, True),
        ([STORE] * 8, [STORE], False),
        (["add.s64 %rd8, %rd8, %rd7;"] * 4, [], True),  # two instructions each
        (["add.s64 %rd8, %rd8, %rd7;"] * 5, [], False),
        (["ld.shared.u32 %r20, [%r4];"], [], True),
        (["ld.param.u64 %rd1, [p0];", "ld.global.u32 %r20, [%rd1];"], [], False),
        (["atom.shared.add.u32 %r20, [%r4], 1;"], [], False),
        (["mov.u32 %r21, box;", STORE], [], False),  # on 9.0 from a special register
    ],
)
def test_short_ifs_are_predicated(then: list[str], otherwise: list[str], predicated: bool) -> None:
    code = [line.format(n=64 * n) for n, line in enumerate(then)]
    other = [line.format(n=64 * n + 4) for n, line in enumerate(otherwise)]
    lines = [START, "mov.u32 %r20, 0; mov.u32 %r21, 1; st.shared.u32 [%r4], %r7; mov.u64 %rd8, 0;"]
    lines += ["setp.lt.u32 %p1, %r1, 5;", f"@%p1 bra {'else' if other else 'end'};", *code]
    lines += ["bra.uni end;", "else:", *other] if other else []
    text = ptx("\n".join([*lines, "end:"]), 1, ".shared .align 4 .b8 box[4096];")
    plain, found = (
        run(text, [np.zeros(1, np.uint32)], rules=rules).counters for rules in (RULES, PTXAS)
    )
    assert (plain["branches"], plain["divergent_branches"]) == (1, 1)
    assert found["branches"] == found["divergent_branches"] == (0 if predicated else 1)
    gone = (1 + bool(other)) * predicated  # the branch, and the jump over the other side
    assert plain["warp_instructions"] - found["warp_instructions"] == gone


@pytest.mark.parametrize(
    ("instruction", "length"),
    [
        ("div.u32 %r3, %r1, %r2;", 18),
        ("rem.s32 %r3, %r1, %r2;", 23),
        ("div.rn.f32 %f3, %f1, %f2;", 8),
        ("sqrt.rn.f32 %f3, %f1;", 8),
        ("add.u32 %r3, %r1, %r2;", 1),
    ],
)
def test_a_division_is_a_sequence(instruction: str, length: int) -> None:
    """In every warp that comes by, and of every lane whose guard holds."""
    start = "mov.u32 %r1, %tid.x; mov.u32 %r2, 7; setp.lt.u32 %p1, %r1, 5;"
    start += "mov.f32 %f1, 0f40000000; mov.f32 %f2, 0f40400000;"
    text = ptx(f"{start} {instruction} @%p1 {instruction}", 1)
    plain, found = (
        run(text, [np.zeros(1, np.uint32)], rules=rules).counters for rules in (RULES, PTXAS)
    )
    assert found["warp_instructions"] - plain["warp_instructions"] == 2 * (length - 1)
    assert found["thread_instructions"] - plain["thread_instructions"] == 37 * (length - 1)


@needs_nvdisasm
@pytest.mark.parametrize(
    ("instruction", "operands", "kind"), [("div.u32", 2, "r"), ("sqrt.rn.f64", 1, "d")]
)
@pytest.mark.parametrize("arch", ["sm_75", "sm_120"])
def test_the_lengths_are_those_of_the_machine_code(
    instruction: str, operands: int, kind: str, arch: str
) -> None:
    move = {"r": "mov.u32", "d": "mov.f64"}[kind]
    length = length_of(instruction, operands, kind, arch) - length_of(move, 1, kind, arch)
    text = ptx({"r": "div.u32 %r3, %r1, %r2;", "d": "sqrt.rn.f64 %fd3, %fd1;"}[kind], 1)
    code = build(text, "k", tuple(sorted((*RULES, ("expand", arch)))))
    assert [length] == list(code.assembled.expanded.values())


def bitonic() -> KernelPlan:
    values = np.random.default_rng(0).permutation(512).astype(np.uint32)
    return cuda("bitonic.cu", "bitonic", {"values": values}, block=256)


def test_a_bitonic_sort_has_no_branches() -> None:
    """All 45 exchanges are predicated, and those of neighbours move 64 bits, as in its SASS."""
    with open_simulator("sim:h200:ptxas").prepare(bitonic()) as prepared:
        counters = prepared.launch().counters or {}
        assert prepared.fetch()["values"].tolist() == list(range(512))
    assert counters["branches"] == counters["divergent_branches"] == 0


def test_conflicts_of_zhang() -> None:
    """Nsight Compute counts 620,071 on an H200; access by access there are 1,387,969."""
    found = {}
    for spec in ("sim:h200", "sim:h200:ptxas"):
        device = open_simulator(spec)
        plan = counting("zhang2011.shared_conflict", device, n=12)
        with device.prepare(plan) as prepared:
            found[spec] = (prepared.launch().counters or {})["bank_conflicts"]
    assert found["sim:h200"] == 1_387_969
    assert found["sim:h200:ptxas"] == pytest.approx(620_071, rel=0.1)


@needs_nvdisasm
@pytest.mark.parametrize("system", ["bitonic", "tanaka2011.none", "zhang2011.shared_conflict"])
def test_against_the_machine_code(system: str) -> None:
    device = open_simulator("sim:h200:ptxas")
    kernel = bitonic() if system == "bitonic" else counting(system, device, n=12)
    cubin, text = (compile_kernel(kernel, "sm_90", kind) for kind in ("cubin", "ptx"))
    code = build(text.image.decode(), text.symbol, device.simulation.rules)
    machine = disassembled(cubin.image).partition(f"\n.text.{cubin.symbol}:")[2]
    found = re.findall(r"\b(LDS|STS)((?:\.\w+)*) .* ;", machine.partition("\n.text.")[0])
    widths = [(name, re.search(r"\.(128|64|[US]8|[US]16)\b", rest)) for name, rest in found]
    accesses = Counter(f"{name}.{bits[1].lstrip('US') if bits else 32}" for name, bits in widths)
    assert shared_accesses(code) == accesses
