"""Algorithm 1 without compiler optimization.

The paper compiled "with the default option", which for C++ may mean no optimization and would
inflate every speed-up over its baseline. Numba cannot show what that costs: its unoptimized code
carries Python's semantics (reference counts, checked ranges) and takes 5 times as long as C++. So
the algorithm is written here as C++ compilers emit it before optimizing, with every variable in
memory, and compiled as it is (``-O0``). ``docs/fitness.md`` compares both at n = 10,000.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any, Final, cast

import llvmlite.binding as llvm
from numpy.typing import NDArray

ENTRY: Final = "pair_conflicts"

IR: Final = f"""
declare i32 @llvm.abs.i32(i32, i1)

define i64 @{ENTRY}(ptr %given_board, i32 %given_n) {{
entry:
  %board = alloca ptr
  %n = alloca i32
  %count = alloca i64
  %i = alloca i32
  %j = alloca i32
  store ptr %given_board, ptr %board
  store i32 %given_n, ptr %n
  store i64 0, ptr %count
  store i32 0, ptr %i
  br label %outer

outer:
  %i0 = load i32, ptr %i
  %n0 = load i32, ptr %n
  %more_i = icmp slt i32 %i0, %n0
  br i1 %more_i, label %start, label %done

start:
  %i1 = load i32, ptr %i
  %j0 = add nsw i32 %i1, 1
  store i32 %j0, ptr %j
  br label %inner

inner:
  %j1 = load i32, ptr %j
  %n1 = load i32, ptr %n
  %more_j = icmp slt i32 %j1, %n1
  br i1 %more_j, label %test, label %next_i

test:
  %board0 = load ptr, ptr %board
  %i2 = load i32, ptr %i
  %i2_wide = sext i32 %i2 to i64
  %at_i = getelementptr inbounds i32, ptr %board0, i64 %i2_wide
  %queen_i = load i32, ptr %at_i
  %board1 = load ptr, ptr %board
  %j2 = load i32, ptr %j
  %j2_wide = sext i32 %j2 to i64
  %at_j = getelementptr inbounds i32, ptr %board1, i64 %j2_wide
  %queen_j = load i32, ptr %at_j
  %apart = sub nsw i32 %queen_i, %queen_j
  %rows = call i32 @llvm.abs.i32(i32 %apart, i1 true)
  %j3 = load i32, ptr %j
  %i3 = load i32, ptr %i
  %columns = sub nsw i32 %j3, %i3
  %conflict = icmp eq i32 %rows, %columns
  br i1 %conflict, label %found, label %next_j

found:
  %count0 = load i64, ptr %count
  %count1 = add nsw i64 %count0, 1
  store i64 %count1, ptr %count
  br label %next_j

next_j:
  %j4 = load i32, ptr %j
  %j5 = add nsw i32 %j4, 1
  store i32 %j5, ptr %j
  br label %inner

next_i:
  %i4 = load i32, ptr %i
  %i5 = add nsw i32 %i4, 1
  store i32 %i5, ptr %i
  br label %outer

done:
  %result = load i64, ptr %count
  ret i64 %result
}}
"""


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
