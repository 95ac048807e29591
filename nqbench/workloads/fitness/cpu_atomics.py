"""Atomic operations on the elements of arrays, for compiled code on the processor.

Numba has them for GPUs only; LLVM has them for processors too. The array is ``int64``, contiguous
and of one dimension. All operations are sequentially consistent; indices are not checked.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, cast

from numba import types
from numba.extending import intrinsic

ORDER: Final = "seq_cst"
WORD_BYTES: Final = 8


def _address(context: Any, builder: Any, signature: Any, given: Any) -> Any:
    array, index = given[:2]
    data = context.make_array(signature.args[0])(context, builder, array).data
    return builder.gep(data, [index])


def _load(_typing: Any, array: Any, index: Any) -> Any:  # noqa: ARG001 (typed by numba)
    """``array[index]``, read in one piece."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        at = _address(context, builder, signature, given)
        return builder.load_atomic(at, ORDER, WORD_BYTES)

    return types.int64(array, types.int64), generate


def _store(_typing: Any, array: Any, index: Any, value: Any) -> Any:  # noqa: ARG001
    """Set ``array[index]``."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        at = _address(context, builder, signature, given)
        builder.store_atomic(given[2], at, ORDER, WORD_BYTES)
        return context.get_dummy_value()

    return types.void(array, types.int64, types.int64), generate


def _add(_typing: Any, array: Any, index: Any, value: Any) -> Any:  # noqa: ARG001
    """Add to ``array[index]``; what was there before."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        at = _address(context, builder, signature, given)
        return builder.atomic_rmw("add", at, given[2], ORDER)

    return types.int64(array, types.int64, types.int64), generate


def _replace(_typing: Any, array: Any, index: Any, old: Any, new: Any) -> Any:  # noqa: ARG001
    """Set ``array[index]`` to ``new`` if it is ``old``; whether it was."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        at = _address(context, builder, signature, given)
        pair = builder.cmpxchg(at, given[2], given[3], ORDER, ORDER)
        return builder.extract_value(pair, 1)

    return types.boolean(array, types.int64, types.int64, types.int64), generate


def _operation(function: Callable[..., Any]) -> Callable[..., Any]:
    return cast(Callable[..., Any], intrinsic(function))


atomic_load = _operation(_load)
atomic_store = _operation(_store)
atomic_add = _operation(_add)
atomic_replace = _operation(_replace)
