"""Counting from the middle on the CPU: half boards listed, ordered and paired, group by group.

A half board is listed as one word of its diagonals at the seam. Those that a solution may use on
both sides are ordered by how often a sample of both lists has them. A list is then made words of
``STEP`` bits per look-up, most used diagonals first, with their rank in the Gray code above bit
``RANK``: sorted by it, neighbours have diagonals in common.

The groups of an odd board need each set of columns with many queens of the middle row. Its half
boards are listed once for neighbouring groups, and every group takes those that its queen allows.

Everything between the lists of quarters and the number of pairs is compiled by numba.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nqbench.system.files import digest
from nqbench.workloads.compiled import compiled, compiled_part
from nqbench.workloads.counting.middle import vectors
from nqbench.workloads.counting.middle.groups import NO_ROW, columns_apart, quarter_lists, subsets
from nqbench.workloads.counting.middle.vectors import (
    BITS,
    BLOCKS,
    LANES,
    LOOKUPS,
    PORTABLE,
    STEP,
    joined,
    tile_pairs,
)
from nqbench.workloads.counting.search import bits_in

Words = NDArray[np.uint64]
Numbers = NDArray[np.int64]

MIN_N: Final = 6
"""On smaller boards a quarter may have no row."""

RANK: Final = 48
"""First bit of a half board's rank; the diagonals below it are at most 40, at n = 22 and 23."""
_CROSSED: Final = 60
"""First bit of the distance between the queen of the middle column and the middle row, if n is
odd, of half boards as they are listed."""
_MOST_RANKED: Final = 12
"""Diagonals by which a list is sorted, at most: 4,096 counters are half of a first-level cache."""
_FARTHEST: Final = 15
_SAMPLED: Final = 256
"""Half boards of a side whose diagonals are counted."""

_U = np.uint64
_ONE = _U(1)
_FULL = (_ONE << _U(RANK)) - _ONE
_BYTE = _U(255)
_BITS = np.array([0x5555555555555555, 0x3333333333333333, 0x0F0F0F0F0F0F0F0F], np.uint64)
_BYTES = np.array([0x00FF00FF00FF00FF, 0x0000FFFF0000FFFF, 0x00000000FFFFFFFF], np.uint64)
"""Halves of the pairs of units that a transposition exchanges, level by level."""


class Quarters(NamedTuple):
    """Quarter boards by set of columns: those of set k are ``starts[k] .. starts[k + 1] - 1``, and
    k is the sum of ``low`` and ``high`` for the lower and the upper half of the columns. ``words``
    are all diagonals, ``images`` those that a half board keeps."""

    starts: Numbers
    words: Words
    images: Words
    low: Numbers
    high: Numbers


class Board(NamedTuple):
    """What all groups of a board share.

    A listed half board has the diagonals towards smaller columns, then those towards larger ones,
    ``seam`` of each; on odd boards one more before and after them, which meet only the middle row.
    ``splits`` are the ways to split a set of columns between the quarters of a half.
    """

    n: int
    seam: int
    upper: Quarters
    lower: Quarters
    splits: Numbers


@cache
def board_of(n: int) -> Board:
    """The lists of a board of ``MIN_N`` to ``MAX_N`` queens."""
    h = n // 2
    q = h // 2
    upper, lower = _quarters(n, q, 0, 1), _quarters(n, h - q, q, max(LANES))
    return Board(n, 2 * h - 1, upper, lower, subsets(h, q).astype(np.int64))


def _quarters(n: int, rows: int, row: int, unit: int) -> Quarters:
    """The quarters of so many rows from ``row`` on; the list of each set is filled up to a multiple
    of ``unit`` with words that meet every other."""
    lists, h = quarter_lists(n, rows), n // 2
    falling = lists.falling.astype(np.uint64)
    rising = lists.rising.astype(np.uint64)
    if row == 0:  # as the rows of the lower quarter meet them
        falling >>= np.uint64(rows)
        rising <<= np.uint64(h - rows)
    field = n - 1 + h - h // 2
    mask = np.uint64((1 << field) - 1)
    own = falling & mask | (rising & mask) << np.uint64(field)
    first, width = field - 2 * h + 1 - n % 2, 4 * h - 2 + 2 * (n % 2)
    kept = own >> np.uint64(first) & np.uint64((1 << width) - 1)
    if n % 2:
        apart = np.where(lists.crossed == NO_ROW, 0, h - row - lists.crossed.astype(np.int64))
        kept |= apart.astype(np.uint64) << np.uint64(_CROSSED)
    sizes: Numbers = np.diff(lists.starts).astype(np.int64)
    starts = np.concatenate([[0], np.cumsum(-(-sizes // unit) * unit)])
    places = np.arange(len(own)) + np.repeat(starts[:-1] - lists.starts[:-1], sizes)
    words, images = np.full((2, starts[-1]), ~np.uint64(0))
    words[places], images[places] = own, kept
    half = (n + 1) // 2
    sets = subsets(n, rows)
    positions = np.arange(len(sets))
    high_starts = np.zeros(1 << n - half, np.int64)
    above = sets >> np.uint32(half)
    found, firsts = np.unique(above, return_index=True)
    high_starts[found] = firsts
    low_places = np.zeros(1 << half, np.int64)
    low_places[sets & np.uint32((1 << half) - 1)] = positions - high_starts[above]
    return Quarters(starts, words, images, low_places, high_starts)


@compiled_part
def _tables(images: Words) -> Words:
    """Tables by byte of the linear map that takes bit i to ``images[i]``, and others to nothing."""
    tables = np.zeros(((images.size + 7) // 8, 256), np.uint64)
    for bit in range(8 * tables.shape[0]):
        t, k = bit >> 3, bit & 7
        image = images[bit] if bit < images.size else _U(0)
        for below in range(1 << k):
            tables[t, 1 << k | below] = tables[t, below] ^ image
    return tables


@compiled_part
def _listed(path: int, board: Board, columns: int, guess: int) -> Words:
    """The half boards on a set of columns, of which about ``guess`` are expected."""
    h, half = board.n // 2, (board.n + 1) // 2
    sets = np.zeros((2, 1 << (h + 1) // 2), np.int64)  # of the lower and upper half of the columns
    left = columns
    for i in range(h):
        column = left & -left
        left ^= column
        side, k = (0, i) if i < h // 2 else (1, i - h // 2)
        for below in range(1 << k):
            sets[side, 1 << k | below] = sets[side, below] | column
    out = np.empty(guess, np.uint64)
    count = 0
    upper, lower = board.upper, board.lower
    board_half, set_half = (1 << half) - 1, (1 << h // 2) - 1
    for split in board.splits:
        above = sets[0, split & set_half] | sets[1, split >> h // 2]
        below = columns ^ above
        k = upper.low[above & board_half] + upper.high[above >> half]
        first, uppers = upper.starts[k], upper.starts[k + 1] - upper.starts[k]
        k = lower.low[below & board_half] + lower.high[below >> half]
        second, lowers = lower.starts[k], lower.starts[k + 1] - lower.starts[k]
        needed = count + uppers * lowers + 8
        if needed > out.size:
            grown = np.empty(2 * needed, np.uint64)
            grown[:count] = out[:count]
            out = grown
        count += joined(
            (
                path,
                upper.words.ctypes.data + 8 * first,
                upper.images.ctypes.data + 8 * first,
                uppers,
                lower.words.ctypes.data + 8 * second,
                lower.images.ctypes.data + 8 * second,
                lowers,
                out.ctypes.data + 8 * count,
            )
        )
    return out[:count]


@compiled_part
def _allowed(words: Words, barred: Any, least: int, most: int) -> Words:
    """The half boards with none of the diagonals ``barred``, whose queen in the middle column is
    ``least`` to ``most`` rows from the middle one."""
    out = np.empty(words.size, np.uint64)
    count = 0
    for word in words:
        out[count] = word
        apart = word >> _U(_CROSSED)
        passes = (word & barred == _U(0)) & (apart >= _U(least)) & (apart <= _U(most))
        count += int(passes)
    return out[:count]


@compiled_part
def _uses(words: Words, step: int, counts: Numbers) -> None:
    """Count the diagonals of every ``step``-th word."""
    for i in range(0, words.size, step):
        for bit in range(counts.size):
            counts[bit] += np.int64(words[i] >> _U(bit) & _ONE)


@compiled_part
def _possible(board: Board, columns: int) -> Any:
    """The diagonals at the seam that queens on a set of columns can have."""
    falling, rising = _U(0), _U(0)
    for row in range(board.n // 2):
        falling |= _U(columns) << _U(row)
        rising |= _U(columns) << _U(board.n // 2 - 1 - row)
    seam = (_ONE << _U(board.seam)) - _ONE
    falling = falling >> _U(board.n - board.n // 2) & seam
    return (falling | (rising & seam) << _U(board.seam)) << _U(board.n % 2)


@compiled_part
def _turned(board: Board, bit: int) -> int:
    """A diagonal at the seam as the other half has it: its rows are flipped."""
    odd = board.n % 2
    return (bit - odd + board.seam) % (2 * board.seam) + odd


@compiled_part
def _order(board: Board, possible: Any, counts: Numbers) -> Numbers:
    """The diagonals that both halves can have, by how often a pair meets there; ``possible`` and
    ``counts`` are of the upper half, then of the lower one."""
    order = np.empty(2 * board.seam, np.int64)
    keys = np.empty(2 * board.seam, np.int64)
    size = 0
    for bit in range(board.n % 2, board.n % 2 + 2 * board.seam):
        other = _turned(board, bit)
        if possible[0] >> _U(bit) & possible[1] >> _U(other) & _ONE:
            key = counts[0, bit] * counts[1, other]
            place = size
            while place and keys[place - 1] < key:
                keys[place], order[place] = keys[place - 1], order[place - 1]
                place -= 1
            keys[place], order[place] = key, bit
            size += 1
    return order[:size]


@compiled_part
def _ranking(path: int, board: Board, order: Numbers, ranked: int, side: int) -> Words:
    """Tables that take the diagonals of a half board to their places and to the rank."""
    images = np.zeros(2 * (board.seam + board.n % 2), np.uint64)
    bits, step = BITS[path], STEP[path]
    for place in range(order.size):
        image = _ONE << _U(step * (place // bits) + place % bits)
        if place < ranked:  # the inverse Gray code: a bit flips all below it
            image |= ((_ONE << _U(ranked - place)) - _ONE) << _U(RANK)
        bit = order[place]
        images[_turned(board, bit) if side else bit] = image
    return _tables(images)


@compiled_part
def _sorted(words: Words, tables: Words, ranked: int, multiple: int) -> Words:
    """The images of the words by rank, filled up to a multiple with words that meet every
    diagonal."""
    images = np.empty(words.size, np.uint64)
    ends = np.zeros((1 << ranked) + 1, np.int64)
    for i in range(words.size):
        word = words[i]
        image = tables[0, word & _BYTE]
        for t in range(1, tables.shape[0]):
            image ^= tables[t, word >> _U(8 * t) & _BYTE]
        images[i] = image
        ends[(image >> _U(RANK)) + _ONE] += 1
    for k in range(1 << ranked):
        ends[k + 1] += ends[k]
    out = np.empty(-(-words.size // multiple) * multiple, np.uint64)
    for i in range(words.size, out.size):
        out[i] = _FULL
    for image in images:
        rank = image >> _U(RANK)
        out[ends[rank]] = image
        ends[rank] += 1
    return out


@compiled_part
def _without_diagonals(words: Words) -> int:
    """Half boards without any of the diagonals that count, which those that fill up do not meet;
    they have rank 0."""
    found = 0
    for word in words:
        if word >> _U(RANK):
            break
        found += int(word & _FULL == _U(0))
    return found


@compiled_part
def _masks(words: Words, width: int) -> Words:
    """The AND of each ``width`` words, padded to a multiple of 64."""
    out = np.empty(words.size // width + 64, np.uint64)
    for tile in range(words.size // width):
        mask = _FULL
        for i in range(tile * width, (tile + 1) * width):
            mask &= words[i]
        out[tile] = mask
    return out


@compiled_part
def _transpose(words: Words, at: int, apart: int, unit: int) -> None:
    """Transpose the eight words from ``at``, so many apart, by units of 1 or 8 bits."""
    for level in range(3):
        step = 1 << level
        kept = _BITS[level] if unit == 1 else _BYTES[level]
        for i in range(8):
            if not i & step:
                low, high = at + i * apart, at + (i + step) * apart
                change = (words[low] >> _U(unit * step) ^ words[high]) & kept
                words[low] ^= change << _U(unit * step)
                words[high] ^= change


@compiled_part
def _planes(path: int, words: Words, lookups: int) -> Words:
    """Of each tile of ``8 * LANES`` words, the indices of its look-ups, a byte per half board, in
    an order of their own within the tile. Aligned to 64 bytes; the words are used up."""
    lanes = LANES[path]
    tiles = words.size // (8 * lanes)
    out = np.empty(tiles * lookups * lanes + 8, np.uint64)
    out = out[-(out.ctypes.data >> 3) & 7 :]
    for tile in range(tiles):
        for lane in range(lanes):
            _transpose(words, 8 * lanes * tile + lane, lanes, 8)
        for j in range(lookups):
            for lane in range(lanes):
                at = (lookups * tile + j) * lanes + lane
                if STEP[path] == 8:
                    out[at] = words[(8 * tile + j) * lanes + lane]
                else:
                    two = words[(8 * tile + j // 2) * lanes + lane]
                    out[at] = two >> _U(4 * (j % 2)) & _U(0x0F0F0F0F0F0F0F0F)
    return out


@compiled_part
def _pairs_by_words(a_words: Words, a_masks: Words, b_words: Words, b_masks: Words) -> int:
    """Pairs by tables of 64-bit words; ``b_words`` are transposed."""
    found = 0
    tables = np.zeros((6, 128), np.uint64)
    for block in range(b_words.size // 64):
        for j in range(6):
            for k in range(7):
                column = _U(0)
                for g in range(8):
                    byte = b_words[64 * block + 8 * g + k] >> _U(8 * j) & _BYTE
                    column |= byte << _U(8 * g)
                for below in range(1 << k):
                    tables[j, 1 << k | below] = tables[j, below] | column
        for tile in range(a_words.size // 64):
            if a_masks[tile] & b_masks[block]:
                continue
            for i in range(64 * tile, 64 * tile + 64):
                word = a_words[i]
                met = tables[0, word & _U(127)] | tables[1, word >> _U(8) & _U(127)]
                met |= tables[2, word >> _U(16) & _U(127)] | tables[3, word >> _U(24) & _U(127)]
                met |= tables[4, word >> _U(32) & _U(127)] | tables[5, word >> _U(40) & _U(127)]
                found += bits_in(~met)
    return found


@compiled_part
def _disjoint(
    path: int, order: Numbers, many: Words, few: tuple[Words, Words], tables: Any, ranked: int
) -> int:
    """Disjoint pairs of a list with two others; those with the first one count twice. ``tables``
    are of the list, then of the others."""
    lookups = 0
    for some in LOOKUPS[path]:
        if not lookups and some * BITS[path] >= order.size:
            lookups = some
    width, block = 8 * LANES[path], 8 * BLOCKS[path]
    a_words = _sorted(many, tables[0], ranked, width)
    a_masks = _masks(a_words, width)
    a_bare, a_tiles = _without_diagonals(a_words), a_words.size // width
    planes = a_words if path == PORTABLE else _planes(path, a_words, lookups)
    total = 0
    for k in range(2):
        b_words = _sorted(few[k], tables[1], ranked, block)
        found = (many.size - a_words.size) * _without_diagonals(b_words)
        found += (few[k].size - b_words.size) * a_bare
        b_masks = _masks(b_words, block)
        for at in range(0, b_words.size, 8):
            _transpose(b_words, at, 1, 1)
        if path == PORTABLE:
            found += _pairs_by_words(a_words, a_masks, b_words, b_masks)
        else:
            for i in range(b_words.size // block):
                found += tile_pairs(
                    (
                        path,
                        lookups,
                        planes.ctypes.data,
                        a_masks.ctypes.data,
                        a_tiles,
                        b_words.ctypes.data + 8 * block * i,
                        np.int64(b_masks[i]),
                    )
                )
        total += (2 - k) * found
    return total


@compiled_part
def _in_group(path: int, board: Board, group: Numbers, above: Words, below: Words) -> int:
    """Solutions of a group, those counted twice that stand for their transposed ones; ``above`` and
    ``below`` are the half boards on its columns."""
    twice = above[:0]
    if board.n % 2:
        nearest = board.n // 2 - group[2]
        barred = _ONE << _U(group[2])
        if group[2]:
            barred |= _ONE << _U(board.seam + group[2])
        below = _allowed(below, barred, 0, _FARTHEST)
        if nearest:
            twice = _allowed(above, barred, nearest + 1, _FARTHEST)
        above = _allowed(above, barred, nearest, nearest or _FARTHEST)
    size = max(twice.size + above.size, below.size)
    counts = np.zeros((2, 2 * (board.seam + 1)), np.int64)
    _uses(twice, 1 + (twice.size + above.size) // _SAMPLED, counts[0])
    _uses(above, 1 + (twice.size + above.size) // _SAMPLED, counts[0])
    _uses(below, 1 + below.size // _SAMPLED, counts[1])
    order = _order(board, (_possible(board, group[0]), _possible(board, group[1])), counts)
    ranked = min(order.size, 4)
    while ranked < min(order.size, _MOST_RANKED) and 2 << ranked < size:
        ranked += 1
    upper = _ranking(path, board, order, ranked, 0)
    lower = _ranking(path, board, order, ranked, 1)
    if below.size < above.size and not twice.size:
        return _disjoint(path, order, above, (twice, below), (upper, lower), ranked)
    return _disjoint(path, order, below, (twice, above), (lower, upper), ranked)


piece_of = compiled_part(columns_apart)


def _compiled_with(code: int) -> Callable[[int, Board, Numbers, int, int], int]:
    """Cached under the digest of all code that it is made from: numba looks at one file alone."""

    @compiled
    def solutions_of_groups(path: int, board: Board, groups: Numbers, begin: int, end: int) -> int:
        """Solutions of the groups ``begin .. end - 1`` (``groups``), times their weights."""
        size = piece_of(board.n)
        lists = [np.empty(0, np.uint64) for _ in range(2 << size if board.n % 2 else 2)]
        listed = np.zeros(len(lists), np.int64)
        found, guess = 0 * code, 512
        for group in range(begin, end):
            slot = 0
            for side in range(2):
                columns = groups[group, side]
                other, slot = slot, side
                if board.n % 2:  # by what neighbouring groups differ in
                    shift = groups[group, 2] // size * size
                    slot += 2 * (columns >> shift & (1 << size) - 1)
                if listed[slot] != columns:
                    lists[slot] = _listed(path, board, columns, guess)
                    listed[slot] = columns
                    guess = lists[slot].size * 5 // 4 + 512
            found += groups[group, 3] * _in_group(
                path, board, groups[group], lists[other], lists[slot]
            )
        return found

    return solutions_of_groups


solutions_of_groups = _compiled_with(int(digest(map(Path, (__file__, vectors.__file__)))[:12], 16))
