"""Sets of distinct valid boards in a file, with their provenance.

An ``.npz`` file of numpy arrays: ``boards`` (unsigned, shape ``(count, n)``), ``chains`` and
``evaluations`` (shape ``(count,)``, which search found the board and after how many proposals) and
``provenance``, a JSON text. ``board: file`` of a study takes the first board of such a file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from nqbench.errors import InterchangeError
from nqbench.system.files import replacing
from nqbench.workloads.fitness.boards import UNREADABLE, conflicts, is_board

FORMAT: Final = "nqbench-boards/1"
_NUMBERS: Final = ("n", "seed", "searches")
_WORDS: Final = ("system", "device", "device_name", "version")


@dataclass(frozen=True, slots=True, eq=False)
class BoardSet:
    """Boards without conflicts, no two equal.

    ``boards``       rows of the queens from 0, shape ``(count, n)``
    ``chains``       the search that found each: a stream of random numbers of ``seed``
    ``evaluations``  proposals that this search needed
    ``searches``     searches run for the set
    """

    boards: NDArray[Any]
    chains: NDArray[np.int64]
    evaluations: NDArray[np.int64]
    seed: int
    searches: int
    system: str
    device: str
    device_name: str
    version: str

    @property
    def n(self) -> int:
        """Queens of a board."""
        return int(self.boards.shape[1])

    def __len__(self) -> int:
        return int(self.boards.shape[0])

    def provenance(self) -> dict[str, Any]:
        """The provenance that the file stores."""
        named = {name: getattr(self, name) for name in (*_NUMBERS, *_WORDS)}
        return {"format": FORMAT, "verified": True, **named}


def fault_of(boards: NDArray[Any]) -> str:
    """What is wrong with boards of shape ``(count, n)``, the first fault in words; empty if none.

    Each must be a permutation without conflicts, counted again, and no two may be equal.
    """
    seen: dict[bytes, int] = {}
    for index, board in enumerate(boards):
        if not is_board(board):
            return f"board {index} is not a permutation of 0 to {board.size - 1}"
        if found := conflicts(board):
            return f"board {index} has {found} conflicts"
        first = seen.setdefault(board.tobytes(), index)
        if first != index:
            return f"boards {first} and {index} are identical"
    return ""


def write_board_set(path: Path, boards: BoardSet) -> None:
    """Write the file, all of it or nothing. The boards must be verified (:func:`fault_of`)."""
    with replacing(path) as temporary, temporary.open("wb") as file:
        np.savez_compressed(
            file,
            boards=boards.boards,
            chains=boards.chains,
            evaluations=boards.evaluations,
            provenance=np.array(json.dumps(boards.provenance())),
        )


def read_board_set(path: Path) -> BoardSet:
    """Read a file and verify every board of it.

    Raises ``InterchangeError`` in one sentence for a file that is not a board set, is damaged, or
    holds a board that is invalid or occurs twice.
    """
    try:
        # Opened here, since numpy leaves a damaged file open.
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            arrays = {name: np.asarray(archive[name]) for name in archive.files}
    except UNREADABLE as error:
        raise InterchangeError(
            f"{path} cannot be read as a set of boards ({error}); `nqbench boards` writes them"
        ) from error
    provenance = _provenance(path, arrays)
    boards = _array(path, arrays, "boards", 2)
    chains, evaluations = (_array(path, arrays, name, 1) for name in ("chains", "evaluations"))
    if (
        boards.shape[1:] != (provenance["n"],)
        or len({len(boards), len(chains), len(evaluations)}) > 1
    ):
        raise InterchangeError(
            f"{path}: {len(boards)} boards of shape {boards.shape}, {len(chains)} chains and"
            f" {len(evaluations)} evaluations do not fit each other and n: {provenance['n']}; the"
            " file was changed, write it again"
        )
    if fault := fault_of(boards):
        raise InterchangeError(f"{path}: {fault}; the file was changed, write it again")
    own = {name: provenance[name] for name in ("seed", "searches", *_WORDS)}
    return BoardSet(boards, chains.astype(np.int64), evaluations.astype(np.int64), **own)


def _array(path: Path, arrays: Mapping[str, NDArray[Any]], name: str, axes: int) -> NDArray[Any]:
    values = arrays.get(name)
    if values is None or values.ndim != axes or not np.issubdtype(values.dtype, np.integer):
        there = "is missing" if values is None else f"is {values.dtype} with {values.ndim} axes"
        raise InterchangeError(
            f"{path}: array {name!r} {there}; a set of boards has whole numbers with {axes}"
        )
    return values


def _provenance(path: Path, arrays: Mapping[str, NDArray[Any]]) -> dict[str, Any]:
    text = arrays.get("provenance")
    try:
        provenance = json.loads(str(text)) if text is not None else None
    except ValueError:
        provenance = None
    if not isinstance(provenance, dict) or provenance.get("format") != FORMAT:
        raise InterchangeError(
            f"{path} does not say that it is a set of boards ({FORMAT}); `nqbench boards` writes"
            " them"
        )
    for names, kind in ((_NUMBERS, int), (_WORDS, str)):
        for name in names:
            if not isinstance(provenance.get(name), kind):
                raise InterchangeError(f"{path}: its provenance has no valid {name!r}")
    return provenance
