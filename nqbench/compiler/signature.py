"""The arguments of a study's kernel against the kernel's signature, before a launch.

A GPU takes whatever bytes it is given. The compiler's symbol says what each parameter is (a C++
name; of ``extern "C"`` the source does), the code how many bytes it has. Only what is certainly
wrong is refused: structs, templates, enumerations, ``void*`` and raw bytes take anything.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Final

import numpy as np

from nqbench.compiler.includes import read_source
from nqbench.errors import CompileError
from nqbench.plan import Kernel

_COMMENT: Final = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_QUALIFIER: Final = re.compile(r"\b(?:const|volatile|restrict|__restrict(?:__)?)\b")
_FORMS: Final = {
    **{"float": "f4", "double": "f8", "__half": "f2", "half": "f2", "bool": "i1", "char": "i1"},
    **{"short": "i2", "unsigned short": "i2", "int": "i4", "unsigned": "i4", "unsigned int": "i4"},
    **{"long": "i8", "unsigned long": "i8", "long long": "i8", "unsigned long long": "i8"},
    **{"signed char": "i1", "unsigned char": "i1", "size_t": "i8"},
    **{f"{sign}int{bits}_t": f"i{bits // 8}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
}
"""Kind and bytes of C++'s types; signed and unsigned are one kind."""


def check_arguments(
    kernel: Kernel, symbol: str, sizes: Sequence[int] | None, dtypes: Mapping[str, str]
) -> None:
    """Refuse arguments that do not fit the parameters.

    ``sizes``: bytes of each parameter, ``None`` if unknown; ``dtypes`` of buffers by name. Raises
    ``CompileError`` with the argument's name and place where ``kernel.names`` has them.
    """
    if sizes is None:
        return
    types = parameter_types(kernel, symbol) if kernel.names else ()
    types = types if len(types) == len(sizes) else ()
    takes, gives = len(sizes), len(kernel.arguments)
    where = f"{kernel.source.name}: kernel {kernel.entry}"
    listed = f" ({', '.join(map(_readable, types))})" if types else ""
    if takes != gives:
        names = ", ".join(name.rpartition(" ")[2] for name in kernel.names)
        given = f"{gives} {'is' if gives == 1 else 'are'} given" + (f": {names}" if names else "")
        raise CompileError(f"{where} takes {takes} arguments{listed}, but {given}")
    faults = []
    for number, one in enumerate(kernel.arguments):
        is_buffer = isinstance(one, str)
        dtype = np.dtype(dtypes.get(one, "V1") if isinstance(one, str) else one.dtype)
        has = 8 if is_buffer else dtype.itemsize
        wanted, size = types[number] if types else "", sizes[number]
        if has == size and _fits(wanted, dtype, is_buffer=is_buffer):
            continue
        if not kernel.names:
            said = f"argument {number + 1} has {has} bytes, but the kernel's parameter has {size}"
            raise CompileError(f"{where}: {said}")
        says = {(True, False): "gives a buffer of", (False, True): "gives one"}
        given = f"{says.get((is_buffer, '*' in wanted), 'says')} {dtype}"
        takes_what = _readable(wanted) or f"{size} bytes"
        faults.append(f"{kernel.names[number]}: the kernel takes {takes_what}, the study {given}")
    if faults:
        more = f"; {where} takes{listed}, in this order" if len(faults) > 1 and listed else ""
        raise CompileError("; ".join(faults) + more)


def parameter_types(kernel: Kernel, symbol: str) -> tuple[str, ...]:
    """The types of a kernel's parameters as C++ has them; empty if nothing tells."""
    if symbol.startswith("_Z"):
        shown = demangled(symbol)
    else:
        text = _COMMENT.sub(" ", read_source(kernel.source))
        found = re.findall(rf"__global__[^;{{}}]*?\b{re.escape(symbol)}(\s*\([^()]*\))", text)
        # Several may be cases of #if: which one was compiled is not known.
        name = r"\s*\w+\s*(\[\s*\])?\s*(?=[,)])"  # with brackets it is a pointer
        shown = re.sub(name, lambda match: "*" if match[1] else "", *found[:1] or ("",))
        shown = shown if len(found) == 1 and "#" not in shown else ""
    if not shown.endswith(")"):
        return ()
    depth, start = 0, len(shown)
    while start and (depth or start == len(shown)):
        start -= 1
        depth += {")": 1, "(": -1}.get(shown[start], 0)
    parts, depth = [""], 0
    for letter in shown[start + 1 : -1]:
        depth += (letter in "<([") - (letter in ">)]")
        parts += [""] if letter == "," and not depth else []
        parts[-1] += "" if letter == "," and not depth else letter
    return tuple(part.strip() for part in parts if part.strip() not in ("", "void"))


@cache
def demangled(symbol: str) -> str:
    """A symbol as C++ writes it; empty where no C++ library is at hand."""
    try:
        demangle = ctypes.CDLL("libstdc++.so.6").__cxa_demangle
    except (OSError, AttributeError):
        return ""
    demangle.restype = ctypes.c_void_p
    room = ctypes.c_size_t(0)
    found = demangle(symbol.encode(), None, ctypes.byref(room), None)  # some hundred bytes, kept
    return ctypes.string_at(found).decode(errors="replace") if found else ""


def _fits(wanted: str, dtype: np.dtype[np.generic], *, is_buffer: bool) -> bool:
    """Whether an argument may be what a parameter takes: yes, unless it certainly is not."""
    form = _FORMS.get(" ".join(_QUALIFIER.sub(" ", wanted).replace("*", " ").split()))
    pointers = wanted.count("*")
    if is_buffer is not (pointers > 0):  # a pointer may be 0, and a number may be an address
        return form in (None, "i8") if is_buffer else pointers == 0 or dtype.kind != "f"
    if form is None or pointers > 1 or dtype.kind not in "biuf":
        return True
    size = int(form[1])
    if 1 in (size, dtype.itemsize) and dtype.kind != "b":
        return True  # raw bytes; the size of a scalar was compared
    return size == dtype.itemsize and (size <= 2 or (form[0] == "f") is (dtype.kind == "f"))


def _readable(text: str) -> str:
    """``float const*`` as people write it."""
    return re.sub(r"^([\w: ]+?) const\b", r"const \1", re.sub(r"\s+\*", "*", text))
