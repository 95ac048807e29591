"""Algorithm 1 without compiler optimization.

The paper compiled "with the default option", which for C++ may mean no optimization and would
inflate every speed-up over its baseline. Numba cannot show what that costs: its unoptimized code
carries Python's semantics (reference counts, checked ranges) and takes 5 times as long as C++. So
the algorithm stands in ``pair_conflicts.ll`` as C++ compilers emit it before optimizing, with every
variable in memory, and is compiled as it is (``-O0``). ``docs/fitness.md`` compares both at n =
10,000.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Final, cast

import llvmlite.binding as llvm
from numpy.typing import NDArray

ENTRY: Final = "pair_conflicts"

IR: Final = Path(__file__).with_name(f"{ENTRY}.ll").read_text(encoding="utf-8")


@cache
def machine_code() -> tuple[Any, Callable[[int, int], int]]:
    """The engine that owns the code, and the function ``(address of the board, n) -> count``.

    Calling it releases the GIL. No optimization passes run.
    """
    module = llvm.parse_assembly(IR)
    module.verify()
    engine = llvm.create_mcjit_compiler(module, target_machine())
    engine.finalize_object()
    prototype = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int32)
    return engine, cast("Callable[[int, int], int]", prototype(engine.get_function_address(ENTRY)))


def target_machine() -> Any:
    """LLVM's machine for this CPU, generating code without optimization."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=llvm.get_host_cpu_features().flatten(),
        opt=0,
        jit=True,
    )


def unoptimized_conflicts(board: NDArray[Any]) -> int:
    """Conflicts of a board (``int32``, C-contiguous, shape ``(n,)``)."""
    return machine_code()[1](board.ctypes.data, board.size)
