"""The machine code as it is read beside nvdisasm, and the clocks of a small kernel by hand."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from benchmarks.expansions import disassembler
from nqbench.compiler.compile import compile_kernel
from nqbench.devices.registry import open_simulator
from nqbench.simulator.models import REPRESENTATIVES
from nqbench.simulator.sass import NAMES, MachineBlocks, MachineInstruction, machine_code
from nqbench.simulator.translation import build
from tests.simulator.harness import RULES, counting, ptx

_LINE = r'\t//## File "\.nv_debug_ptx_txt", line (\d+)|(\.L_x_\d+):|'
_CODE = r"\s+/\*\w{4,}\*/\s+(@!?U?P\w+ )?\s*(\w+)(.*?);?\s+/\* 0x\w+ \*/"


@pytest.mark.skipif(not disassembler(), reason="nvdisasm is not installed")
@pytest.mark.parametrize("arch", REPRESENTATIVES)
def test_as_nvdisasm_reads_it(arch: str, tmp_path: Path) -> None:
    """Line of the PTX, opcode, guard, and where branches go."""
    plan = counting("zhang2011.pool_distributed", open_simulator("sim:h200"), n=8)
    cubin = compile_kernel(plan, arch)
    (tmp_path / "k.cubin").write_bytes(cubin.image)
    command = [str(disassembler()), "-c", "-gp", "-hex", str(tmp_path / "k.cubin")]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    told, labels, line = list[tuple[int, str, bool, str]](), dict[str, int](), 0
    for row in text.partition(f"\n.text.{cubin.symbol}:")[2].splitlines():
        if found := re.match(_LINE + _CODE, row):
            number, label, guard, name, rest = found.groups()
            line = int(number or line)
            if label:
                labels[label] = len(told)
            elif name:
                told.append((line, name, bool(guard), rest))
    read = machine_code(cubin, arch)
    assert len(read) > 50
    for mine, (line, name, guarded, rest) in zip(read, told, strict=False):
        assert (mine.line, mine.guarded) == (line, guarded)
        assert mine.name == (name if name in NAMES.values() else "")
        if mine.name == "BRA" and (label := re.search(r"(\.L_x_\d+)\)", rest)):
            assert mine.target == labels[label[1]]


def test_clocks_of_a_loop_by_hand() -> None:
    """Two rounds in one, and a load that is under way while the other instructions issue."""
    text = ptx(
        "loop:\nld.shared.u32 %r1, [s];\nadd.u32 %r2, %r1, 1;\n@%p1 bra loop;", 0, ".shared .u32 s;"
    )
    program = build(text, "k", RULES)
    block = next(b for b in program.blocks if b.ending == "branch")
    assert block.closing is not None
    load, add, branch = (i.where.line for i in (*block.instructions, block.closing))

    def one(
        line: int, name: str = "", stall: int = 1, fills: int = 7, *waits: int
    ) -> MachineInstruction:
        return MachineInstruction(line, name, name == "BRA", 0, stall, fills, 7, waits)

    code = [
        one(load, "LDS", 2, 0),  # issues at 0, there at 24
        one(load, "LDS", 2, 1),  # 2, 26
        one(0, "YIELD"),  # 4, and takes 40 more: of the block around it
        one(add, "", 5, 7, 0),  # 45
        one(add, "", 5, 7, 1),  # 50
        one(branch, "BRA", 5),  # 55, the end at 60
    ]
    machine = MachineBlocks(code, program.blocks, ())
    assert machine.issued[block.index] == 3
    clocks = machine.clocks(lambda name: 24, 5, {"YIELD": 40})
    assert clocks[block.index] == 30
    assert clocks.sum() == 30
    assert machine.clocks(lambda name: 90, 5, {}).sum() == (90 + 5 + 5 + 5) / 2
