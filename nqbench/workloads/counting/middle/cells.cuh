// Cuts groups into cells: pairs of lists that are ordered and joined on their own.
//
// In a round that is `exact` an even board has a cell for every column of the queen of the middle rows
// that is farthest out. Others cut cells with long lists by the diagonals that decide most. A cut by a
// diagonal gives a cell whose halves have it on one side and lack it on the other, and one whose
// halves lack it on the first side: the other side's halves that lack it are in both, and no pair is
// lost or in both.
#pragma once

#include "halves.cuh"

constexpr unsigned kWeight = 62;
constexpr unsigned kSample = 512;  // of each list
constexpr unsigned kDropped = 64;
constexpr unsigned kDealThreads = 512;
constexpr unsigned kMostCells = 32;  // that a cell is dealt into at once
constexpr unsigned kMostCuts = 4;    // diagonals that cut a cell at once
constexpr unsigned kKept =
    5;  // about as many listed halves as a queen of the middle row leaves one

// A listed half as the lower one of the board: flipped, as the row below the upper one meets it.
template <Middle C> __device__ Half flipped(Half half) {
    const Half ahead = half & C.board(), behind = half >> C.n;
    if constexpr (C.odd()) return behind | ahead << C.n;
    return behind << 1 | ahead >> 1 << C.n;
}

// The lists of upper and lower halves of a cell in `halves`, whose begins are in tiles: members with
// their weights (`dealt`), or as they were listed for its group. Pairs share none but `useful` diagonals.
struct Cell {
    Half useful;
    unsigned group, dealt;
    unsigned begin[2], size[2];
};

// What the kernels share of a batch of groups. In `halves` the lists of sets of columns come first, each
// with the same room; `dealt` to `end` is that of other cells.
struct Batch {
    unsigned first, groups, at, room;
    const unsigned* middle;
    const unsigned* list_of;
    const unsigned* sizes;
    const Half* useful;
    Half* halves;
    unsigned dealt, end;  // in tiles
    Cell* cells;
    unsigned capacity;  // cells of a round
    unsigned* counts;
    unsigned* spilled;
};

// The next number, for all threads of the block.
__device__ __forceinline__ unsigned next_ticket(unsigned* tickets) {
    __shared__ unsigned ticket;
    __syncthreads();
    if (threadIdx.x == 0) ticket = atomicAdd(tickets, 1);
    __syncthreads();
    return ticket;
}

__device__ inline void add(const Batch& batch, unsigned round, const Cell& cell) {
    const unsigned number = atomicAdd(batch.counts + kCells + round, 1);
    if (number < batch.capacity) batch.cells[size_t(round) * batch.capacity + number] = cell;
    else batch.spilled[batch.first + cell.group] = 1;
}

template <Middle C> __device__ Half barred_in(const Batch& batch, unsigned group) {
    if constexpr (C.odd()) return (Half(1) << C.n | 1) << batch.middle[batch.first + group];
    return 0;
}

// A group as a cell; one whose lists found no room is `spilled`, and empty.
template <Middle C> __device__ Cell whole_group(const Batch& batch, unsigned number) {
    const unsigned upper = batch.list_of[2 * (batch.at + number)];
    const unsigned lower = batch.list_of[2 * (batch.at + number) + 1];
    Half useful = batch.useful[upper] & flipped<C>(batch.useful[lower]);
    useful &= ~barred_in<C>(batch, number);
    Cell cell{useful,
              number,
              0,
              {upper * (batch.room / kWarp), lower * (batch.room / kWarp)},
              {batch.sizes[upper], batch.sizes[lower]}};
    if (max(cell.size[0], cell.size[1]) > batch.room) {
        batch.spilled[batch.first + number] = 1;
        cell.size[0] = cell.size[1] = 0;
    }
    return cell;
}

// The cells of a round: of the first one the groups.
__device__ inline unsigned cells_of(const unsigned* counts, unsigned groups, unsigned capacity,
                                    unsigned round) {
    return round > 0 ? min(counts[kCells + round], capacity) : groups;
}
template <Middle C> __device__ Cell cell_of(const Batch& batch, unsigned round, unsigned number) {
    if (round > 0) return batch.cells[size_t(round) * batch.capacity + number];
    return whole_group<C>(batch, number);
}

// A side of a cell. Of an odd board, upper halves with a queen of the middle column in row `last` count
// once and those with one above it twice.
template <Middle C> struct Members {
    const Half* list;
    unsigned size;
    bool lower, dealt;
    unsigned last;
    Half barred;
    __device__ Members(const Half* of, unsigned length) : list(of), size(length), dealt(true) {}
    __device__ Members(const Batch& batch, const Cell& cell, unsigned side)
        : list(batch.halves + size_t(cell.begin[side]) * kWarp),
          size(cell.size[side]),
          lower(side == 1),
          dealt(cell.dealt),
          last(kAnyRow),
          barred(barred_in<C>(batch, cell.group)) {
        if constexpr (C.odd() && C.symmetry == Symmetry::middle) {
            const unsigned queen = batch.middle[batch.first + cell.group];
            if (side == 0 && queen < C.half()) last = queen;
        }
    }
    // Makes a half of the list one of this side, with its weight; whether it is a member.
    __device__ bool take(Half& half) const {
        if (dealt) return true;
        const unsigned row = half >> kRow;
        half &= (Half(1) << 2 * C.n) - 1;
        if (lower) half = flipped<C>(half);
        const bool member = (half & barred) == 0 && row <= last;
        const unsigned weight = lower ? 0 : 1 + (last != kAnyRow && row != last);
        half |= Half(weight) << kWeight;
        return member;
    }
    // Calls `use` with every half of the list, as it stands there; four are under way at a time.
    template <unsigned Threads, class Use> __device__ void each(Use use) const {
        constexpr unsigned kAtOnce = 4;
        for (unsigned base = threadIdx.x; base < size; base += kAtOnce * Threads) {
            Half half[kAtOnce];
#pragma unroll
            for (unsigned k = 0; k < kAtOnce; ++k)
                if (base + k * Threads < size) half[k] = list[base + k * Threads];
#pragma unroll
            for (unsigned k = 0; k < kAtOnce; ++k)
                if (base + k * Threads < size) use(half[k]);
        }
    }
};

// How often a sample of both sides has each bit, and the places of those in `useful`, the most
// decisive first: a bit decides as often as it occurs on both sides.
template <Middle C, unsigned Threads> struct Ranking {
    static constexpr unsigned kBits = 2 * C.n;
    unsigned often[2][kBits];
    unsigned place[kBits];

    // All threads of the block.
    __device__ void make(const Members<C> sides[2], Half useful) {
        static_assert(Threads / kWarp % 2 == 0);  // a warp looks at one side
        const unsigned lane = lane_number(), warp = threadIdx.x / kWarp;
        for (unsigned i = threadIdx.x; i < 2 * kBits; i += Threads) (&often[0][0])[i] = 0;
        __syncthreads();
        const Members<C> side = warp % 2 ? sides[1] : sides[0];
        const unsigned taken = min(side.size, kSample);
        unsigned found[2] = {0, 0};  // of the bits `lane` and `lane` + 32
        for (unsigned number = warp / 2 * kWarp; number < taken; number += Threads / 2) {
            const bool there = number + lane < taken;
            Half half = there ? side.list[(number + lane) * (side.size / taken)] : 0;
            if (!there || !side.take(half)) half = 0;
            unsigned column[2] = {0, 0};
#pragma unroll
            for (unsigned bit = 0; bit < kBits; ++bit) {
                const unsigned with = __ballot_sync(kAllLanes, half >> bit & 1);
                if (lane == bit % kWarp) column[bit / kWarp] = with;
            }
            found[0] += __popc(column[0]), found[1] += __popc(column[1]);
        }
        atomicAdd(&often[warp % 2][lane], found[0]);
        if (lane + kWarp < kBits) atomicAdd(&often[warp % 2][lane + kWarp], found[1]);
        __syncthreads();
        for (unsigned bit = threadIdx.x; bit < kBits; bit += Threads) {
            unsigned before = 0;
            for (unsigned other = 0; other < kBits; ++other)
                before += (useful >> other & 1) && comes_before(other, bit);
            place[bit] = useful >> bit & 1 ? before : kDropped;
        }
        __syncthreads();
    }
    __device__ bool comes_before(unsigned a, unsigned b) const {
        const unsigned of_a = often[0][a] * often[1][a], of_b = often[0][b] * often[1][b];
        return C.order == Order::none || of_a == of_b ? a < b : of_a > of_b;
    }
};

// The cells of exact columns: in cell 2 i + s the queen of the middle row of side s stands in its i-th
// column, and no queen of the other middle row, nor of the middle columns, is farther from the centre.
// Her diagonals are lacking on the other side. Pairs without a queen of the middle columns as far
// count twice: an upper half weighs 1, and a half of either side 1 more without such a queen.
template <Middle C> struct Decision {
    static constexpr unsigned kCount = C.n;
    unsigned sets[2];
    Half queens[kCount];
    unsigned edges[kCount];
    unsigned reached[2][C.half() + 1];  // cells of the other side with an edge below the index

    __device__ static unsigned edge(unsigned column) { return min(column, C.n - 1 - column); }
    __device__ void make(const unsigned* columns) {
        if (threadIdx.x < 2) sets[threadIdx.x] = columns[threadIdx.x];
        for (unsigned i = threadIdx.x; i < 2 * (C.half() + 1); i += kDealThreads)
            (&reached[0][0])[i] = 0;
        __syncthreads();
        if (threadIdx.x < kCount) {
            const unsigned side = threadIdx.x % 2;
            unsigned set = sets[side];
            for (unsigned i = 0; i < threadIdx.x / 2; ++i) set &= set - 1;
            const unsigned column = __ffs(set) - 1;
            const Half queen = Half(2u << column & C.board()) | Half(1u << column >> 1) << C.n;
            queens[threadIdx.x] = side ? flipped<C>(queen) : queen;
            edges[threadIdx.x] = edge(column);
            for (unsigned i = edge(column) + 1; i <= C.half(); ++i)
                atomicOr(&reached[1 - side][i], 1u << threadIdx.x);
        }
        __syncthreads();
    }
    __device__ Half lacking(unsigned number) const { return queens[number]; }
    // Calls `use` with every cell of a listed half of a side, and the member that it is there.
    template <class Use> __device__ void of(const Members<C>& side, Half half, Use use) const {
        const unsigned row = half >> kRow, column = half >> kColumn & 31, near = edge(column);
        half &= (Half(1) << 2 * C.n) - 1;
        if (side.lower) half = flipped<C>(half);
        const auto weighed = [&](unsigned at) {
            return half | Half(!side.lower + (row > at)) << kWeight;
        };
        const unsigned below = sets[side.lower] & ((1u << column) - 1);
        if (row >= near) use(2 * __popc(below) + side.lower, weighed(near));
        unsigned others = reached[side.lower][min(row + 1, near + side.lower)];
        for (; others != 0; others &= others - 1) {
            const unsigned number = __ffs(others) - 1;
            if ((half & queens[number]) == 0) use(number, weighed(edges[number]));
        }
    }
};

// The cells by the diagonals that decide most; they cut upper and lower halves in turns.
template <Middle C> struct Cuts {
    unsigned count;
    unsigned bits[kMostCuts];
    unsigned cells[2]
                  [1 << kMostCuts];  // of the halves of a side, by those of the diagonals they have

    __device__ void make(const unsigned* place, unsigned wanted) {
        if (threadIdx.x == 0) count = 0;
        __syncthreads();
        for (unsigned bit = threadIdx.x; bit < 2 * C.n; bit += kDealThreads)
            if (place[bit] < wanted) bits[place[bit]] = bit, atomicAdd(&count, 1);
        __syncthreads();
        if (threadIdx.x < 2u << count) {
            const unsigned side = threadIdx.x % 2, has = threadIdx.x / 2;
            unsigned found = 0;
            for (unsigned cell = 0; cell < 1u << count; ++cell) {
                const unsigned own = 5 << side & ((1u << count) - 1);  // those that cut this side
                if ((has & own) == (cell & own) && (has & cell & ~own) == 0) found |= 1u << cell;
            }
            cells[side][has] = found;
        }
        __syncthreads();
    }
    __device__ Half lacking(unsigned) const {
        Half cut = 0;
        for (unsigned i = 0; i < count; ++i) cut |= Half(1) << bits[i];
        return cut;
    }
    template <class Use> __device__ void of(const Members<C>& side, Half half, Use use) const {
        if (!side.take(half)) return;
        unsigned has = 0;
        for (unsigned i = 0; i < count; ++i) has |= unsigned(half >> bits[i] & 1) << i;
        for (unsigned found = cells[side.lower][has]; found != 0; found &= found - 1)
            use(__ffs(found) - 1, half);
    }
};

// Deals the halves of a cell to the `number` cells of a rule, which belong to a round.
template <Middle C, class Rule>
__device__ void deal(const Rule& rule, unsigned number, const Cell& cell, const Members<C> sides[2],
                     const Batch& batch, unsigned round) {
    __shared__ unsigned begins[2][kMostCells], sizes[2][kMostCells];
    __shared__ unsigned kept;
    if (threadIdx.x < 2 * kMostCells) (&sizes[0][0])[threadIdx.x] = 0;
    if (threadIdx.x == 0) kept = 0;
    __syncthreads();
#pragma unroll
    for (unsigned side = 0; side < 2; ++side)
        sides[side].template each<kDealThreads>([&](Half half) {
            rule.of(sides[side], half, [&](unsigned at, Half) { atomicAdd(&sizes[side][at], 1); });
        });
    __syncthreads();
    if (threadIdx.x < number) {
        const unsigned i = threadIdx.x, upper = sizes[0][i], lower = sizes[1][i];
        const unsigned tiles = (upper + kWarp - 1) / kWarp,
                       all = tiles + (lower + kWarp - 1) / kWarp;
        sizes[0][i] = sizes[1][i] = 0;
        if (min(upper, lower) > 0) {
            const unsigned begin = batch.dealt + atomicAdd(batch.counts + kDealt, all);
            begins[0][i] = begin, begins[1][i] = begin + tiles;
            if (begin + all <= batch.end) {
                atomicOr(&kept, 1u << i);
                add(batch, round,
                    {cell.useful & ~rule.lacking(i),
                     cell.group,
                     1,
                     {begin, begin + tiles},
                     {upper, lower}});
            } else {
                batch.spilled[batch.first + cell.group] = 1;
            }
        }
    }
    __syncthreads();
#pragma unroll
    for (unsigned side = 0; side < 2; ++side)
        sides[side].template each<kDealThreads>([&](Half half) {
            rule.of(sides[side], half, [&](unsigned at, Half member) {
                if (!(kept >> at & 1)) return;
                const unsigned place = atomicAdd(&sizes[side][at], 1);
                batch.halves[size_t(begins[side][at]) * kWarp + place] = member;
            });
        });
}

// Makes the cells of the next round: in the first one those of exact columns, if there are any, else
// cells are cut that have a list of more than `longest` halves.
template <Middle C>
__global__ void __launch_bounds__(kDealThreads, 2)
    cut(unsigned first, unsigned groups, unsigned at, unsigned room, const unsigned* middle,
        const unsigned* list_of, const unsigned* sizes, const Half* useful, Half* halves,
        unsigned dealt, unsigned end, Cell* cells, unsigned capacity, unsigned* counts,
        unsigned* spilled, const unsigned* columns, unsigned round, unsigned longest) {
    const Batch batch{first,  groups, at,  room,  middle,   list_of, sizes,  useful,
                      halves, dealt,  end, cells, capacity, counts,  spilled};
    __shared__ Ranking<C, kDealThreads> ranking;
    __shared__ Cuts<C> cuts;
    const unsigned all = cells_of(counts, groups, capacity, round);
    for (unsigned number; (number = next_ticket(counts + kTickets + round)) < all;) {
        const Cell cell = cell_of<C>(batch, round, number);
        if (min(cell.size[0], cell.size[1]) == 0) continue;
        const Members<C> sides[2] = {{batch, cell, 0}, {batch, cell, 1}};
        if constexpr (C.exact()) {
            __shared__ Decision<C> decision;
            if (round == 0) {
                decision.make(columns + 2 * (first + number));
                deal<C>(decision, C.n, cell, sides, batch, 1);
                continue;
            }
        }
        const unsigned kept = C.odd() && !cell.dealt ? kKept : 1;
        const unsigned size = max(cell.size[0], cell.size[1]) / kept;
        if (size <= longest) {
            if (threadIdx.x == 0) add(batch, round + 1, cell);
            continue;
        }
        ranking.make(sides, cell.useful);
        cuts.make(ranking.place, size <= 2 * longest ? 2 : kMostCuts);
        deal<C>(cuts, 1u << cuts.count, cell, sides, batch, round + 1);
    }
}
