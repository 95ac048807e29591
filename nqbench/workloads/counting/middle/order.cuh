// Orders the two lists of a cell so that neighbours share their most decisive diagonals.
//
// A diagonal decides as often as it occurs on both sides; a sample says how often. The bits of all
// words are permuted so that the most decisive come first, those that occur on one side only are
// dropped, and the words are sorted by the position of their first bits in a Gray code: neighbours
// differ in few bits, so that the AND of 32 of them has many.
//
// A group is one cell, or `split` diagonals cut it into 2^split. A cut by a diagonal gives a cell
// whose halves have it on one side and lack it on the other, and one whose halves lack it on the
// first side: the other side's halves that lack it are in both, and no pair is lost or in both.
#pragma once

#include "halves.cuh"

constexpr unsigned kWeight = 62;
constexpr unsigned kSample = 1024;  // of each list
constexpr unsigned kDropped = 64;
constexpr unsigned kOr = 48;  // first bit of the OR of a tile's first block in its mask
constexpr unsigned kOrBits = 5;
constexpr Half kOrMask = (Half(1) << kOrBits) - 1;

// A listed half as the lower one of the board: flipped, as the row below the upper one meets it.
template <Middle C> __device__ Half flipped(Half half) {
    const Half ahead = half & C.board(), behind = half >> C.n;
    if constexpr (C.odd()) return behind | ahead << C.n;
    return behind << 1 | ahead >> 1 << C.n;
}

// The members of a side of a cell, in a list of half boards. Of an odd board, upper halves with a
// queen of the middle column in row `last` count once and those with one above it twice. Of an `exact`
// cell, pairs of halves without a queen of the middle columns in row `edge` count twice.
template <Middle C> struct Members {
    const Half* list;
    unsigned size;
    bool lower;
    unsigned last;
    Half has, lacks;
    unsigned edge, near, column;
    // Makes a listed half one of this side, with its weight; whether it is a member.
    __device__ bool take(Half& half) const {
        const unsigned row = half >> kRow, own = half >> kColumn & kAnyColumn;
        half &= (Half(1) << 2 * C.n) - 1;
        if (lower) half = flipped<C>(half);
        bool member = (half & has) == has && (half & lacks) == 0 && row <= last;
        unsigned weight = lower ? 0 : 1 + (last != kAnyRow && row != last);
        if constexpr (C.exact()) {
            member &= row >= edge && min(own, C.n - 1 - own) >= near;
            member &= column == kAnyColumn || own == column;
            weight = !lower + (row > edge);
        }
        half |= Half(weight) << kWeight;
        return member;
    }
};

// The cell of an exact column: the queen of the middle row of a side (`number` is even: the upper one)
// stands in its column number / 2, and no queen of the other middle row, nor of the middle columns, is
// farther from the centre. Returns her diagonals, which the other side lacks.
template <Middle C>
__device__ Half decide(Members<C> sides[2], const unsigned* columns, unsigned number) {
    const unsigned side = number % 2;
    unsigned set = columns[side];
    for (unsigned i = 0; i < number / 2; ++i) set &= set - 1;
    const unsigned column = __ffs(set) - 1, edge = min(column, C.n - 1 - column);
    Half queen = Half(2u << column & C.board()) | Half(1u << column >> 1) << C.n;
    if (side == 1) queen = flipped<C>(queen);
    sides[0].edge = sides[1].edge = edge;
    sides[side].column = column;
    sides[1 - side].near = edge + side;
    sides[1 - side].lacks |= queen;
    return queen;
}

template <Middle C> struct Permutation {
    static constexpr unsigned kBits = 2 * C.n, kNibbles = (kBits + 3) / 4;
    static constexpr unsigned kThreads = C.order_threads();
    Half table[kNibbles][16];
    unsigned often[2][kBits];
    unsigned place[kBits];

    // How often a sample has each bit, and the places of those in `both`, the most decisive first.
    // All threads of the block.
    __device__ void rank(const Members<C> sides[2], Half both) {
        const unsigned lane = lane_number();
        for (unsigned i = threadIdx.x; i < 2 * kBits; i += kThreads) (&often[0][0])[i] = 0;
        __syncthreads();
        const unsigned most = min(max(sides[0].size, sides[1].size), kSample);
        for (unsigned part = threadIdx.x / kWarp; part / 2 * kWarp < most;
             part += kThreads / kWarp) {
            const Members<C>& side = sides[part % 2];
            const unsigned number = part / 2 * kWarp + lane, taken = min(side.size, kSample);
            Half half = number < taken ? side.list[number * (side.size / taken)] : 0;
            if (number >= taken || !side.take(half)) half = 0;
            for (unsigned bit = 0; bit < kBits; ++bit) {
                const unsigned count = __popc(__ballot_sync(kAllLanes, half >> bit & 1));
                if (lane == 0 && count != 0) atomicAdd(&often[part % 2][bit], count);
            }
        }
        __syncthreads();
        for (unsigned bit = threadIdx.x; bit < kBits; bit += kThreads) {
            unsigned before = 0;
            for (unsigned other = 0; other < kBits; ++other)
                before += (both >> other & 1) && comes_before(other, bit);
            place[bit] = both >> bit & 1 ? before : kDropped;
        }
        __syncthreads();
    }
    __device__ bool comes_before(unsigned a, unsigned b) const {
        const unsigned of_a = often[0][a] * often[1][a], of_b = often[0][b] * often[1][b];
        return C.order == Order::none || of_a == of_b ? a < b : of_a > of_b;
    }
    // Cuts the cell `number` out of a group; returns the diagonals that cut. `rank` came before.
    __device__ Half cut(Members<C> sides[2], unsigned number) const {
        Half cuts = 0;
        for (unsigned bit = 0; bit < kBits; ++bit) {
            const unsigned depth = place[bit];
            if (depth >= C.split) continue;
            const Half diagonal = Half(1) << bit;
            Members<C>&first = sides[depth % 2], &second = sides[1 - depth % 2];
            if (number >> depth & 1) first.has |= diagonal, second.lacks |= diagonal;
            else first.lacks |= diagonal;
            cuts |= diagonal;
        }
        return cuts;
    }
    __device__ void tabulate() {
        for (unsigned i = threadIdx.x; i < kNibbles * 16; i += kThreads) {
            Half to = 0;
            for (unsigned j = 0; j < 4; ++j) {
                const unsigned bit = i / 16 * 4 + j;
                if ((i >> j & 1) && bit < kBits && place[bit] != kDropped)
                    to |= Half(1) << place[bit];
            }
            (&table[0][0])[i] = to;
        }
        __syncthreads();
    }
    __device__ Half operator()(Half half) const {
        Half found = half >> kWeight << kWeight;
#pragma unroll
        for (unsigned i = 0; i < kNibbles; ++i) found |= table[i][half >> (4 * i) & 15];
        return found;
    }
};

// Where a word stands in the order; without one, as it was listed.
template <Middle C>
__device__ __forceinline__ unsigned key_of(Half half, unsigned number, unsigned size) {
    if constexpr (C.order == Order::none)
        return min(unsigned(ldexpf(float(number) / size, C.key_bits())), (1u << C.key_bits()) - 1);
    unsigned key = __brev(unsigned(half)) >> (32 - C.key_bits());
    if constexpr (C.order == Order::gray) {  // the inverse of the Gray code
#pragma unroll
        for (unsigned step = 1; step < C.key_bits(); step *= 2) key ^= key >> step;
    }
    return key;
}

// Replaces counts by the sums of those before, and returns the sum of all. All threads of the block.
template <unsigned Bins, unsigned Threads> __device__ unsigned sum_up(unsigned* bins) {
    constexpr unsigned kEach = (Bins + Threads - 1) / Threads, kWarps = Threads / kWarp;
    __shared__ unsigned of_warps[kWarps];
    const unsigned from = threadIdx.x * kEach, warp = threadIdx.x / kWarp;
    unsigned own = 0, total;
    for (unsigned i = from; i < min(from + kEach, Bins); ++i) own += bins[i];
    unsigned sum = before(own, total), all = 0;
    if (lane_number() == 0) of_warps[warp] = total;
    __syncthreads();
    for (unsigned other = 0; other < kWarps; ++other) {
        if (other < warp) sum += of_warps[other];
        all += of_warps[other];
    }
    for (unsigned i = from; i < min(from + kEach, Bins); ++i) {
        const unsigned count = bins[i];
        bins[i] = sum;
        sum += count;
    }
    __syncthreads();
    return all;
}

// Sorts the members of a side. Scattered words cost a sector of memory each, so they are staged in
// shared memory: as many bins at a time as `staged` words hold.
template <Middle C> struct Sorter {
    static constexpr unsigned kBins = 1u << C.key_bits(), kThreads = C.order_threads();
    const Permutation<C>& permute;
    unsigned* bins;
    Half* stage;
    unsigned staged;

    // Calls `use` with every member, permuted, and its key. Four words are under way at a time.
    template <class Use> __device__ void each(const Members<C> side, Use use) const {
        constexpr unsigned kAtOnce = 4;
        for (unsigned base = threadIdx.x; base < side.size; base += kAtOnce * kThreads) {
            Half half[kAtOnce];
#pragma unroll
            for (unsigned k = 0; k < kAtOnce; ++k) {
                const unsigned i = base + k * kThreads;
                if (i < side.size) half[k] = side.list[i];
            }
#pragma unroll
            for (unsigned k = 0; k < kAtOnce; ++k) {
                const unsigned i = base + k * kThreads;
                if (i >= side.size || !side.take(half[k])) continue;
                const Half permuted = permute(half[k]);
                use(permuted, key_of<C>(permuted, i, side.size));
            }
        }
    }
    // Counts the members of each bin; how many there are in all.
    __device__ unsigned count(const Members<C>& side) const {
        for (unsigned i = threadIdx.x; i < kBins; i += kThreads) bins[i] = 0;
        __syncthreads();
        each(side, [&](Half, unsigned key) { atomicAdd(bins + key, 1); });
        __syncthreads();
        return sum_up<kBins, kThreads>(bins);
    }
    // The first bin, after `bin`, that ends beyond word `end` of `size`.
    __device__ unsigned last_bin(unsigned bin, unsigned end, unsigned size) const {
        unsigned low = bin + 1, high = kBins - 1;
        if (end >= size) return kBins;
        while (low < high) {
            const unsigned middle = (low + high + 1) / 2;
            if (bins[middle] <= end) low = middle;
            else high = middle - 1;
        }
        return low;
    }
    // After `count`, which found `size`.
    __device__ void sort(const Members<C>& side, unsigned size, Half* to) const {
        for (unsigned bin = 0, begin = 0; begin < size;) {
            const unsigned last = last_bin(bin, begin + staged, size);
            const unsigned end = last < kBins ? bins[last] : size;
            __syncthreads();
            each(side, [&](Half half, unsigned key) {
                if (key < bin || key >= last) return;
                const unsigned place = atomicAdd(bins + key, 1);
                if (place - begin < staged) stage[place - begin] = half;
                else to[place] = half;  // of a bin that is too large for the stage
            });
            __syncthreads();
            for (unsigned i = threadIdx.x; i < min(end - begin, staged); i += kThreads)
                to[begin + i] = stage[i];
            bin = last, begin = end;
            __syncthreads();
        }
    }
};

// What 32 tiles have in common, of their masks; a list begins at a multiple of 32 tiles.
template <unsigned Threads>
__device__ void mask_tops(const Half* masks, unsigned tiles, Half* tops) {
    const auto both = [](unsigned a, unsigned b) { return a & b; };
    for (unsigned top = threadIdx.x / kWarp; top * kWarp < tiles; top += Threads / kWarp) {
        const unsigned tile = top * kWarp + lane_number();
        const Half mask = tile < tiles ? masks[tile] : ~Half(0);
        const unsigned low = warp_all(unsigned(mask), both);
        const unsigned high = warp_all(unsigned(mask >> 32), both);
        if (lane_number() == 0) tops[top] = Half(high) << 32 | low;
    }
}

// The mask of each tile: what all of its words have in common, and the OR of its first block.
template <unsigned Threads>
__device__ void mask_tiles(const Half* ordered, unsigned size, Half* masks) {
    const unsigned lane = lane_number();
    const auto both = [](unsigned a, unsigned b) { return a & b; };
    const auto either = [](unsigned a, unsigned b) { return a | b; };
    for (unsigned tile = threadIdx.x / kWarp; tile * kWarp < size; tile += Threads / kWarp) {
        const unsigned i = tile * kWarp + lane;
        const Half half = i < size ? ordered[i] : ~Half(0);
        const unsigned low = warp_all(unsigned(half), both);
        const unsigned high = warp_all(unsigned(half >> 32), both);
        const unsigned first = warp_all(i < size ? unsigned(half & kOrMask) : 0, either);
        const Half common = (Half(high) << 32 | low) & ((Half(1) << kOr) - 1);
        if (lane == 0) masks[tile] = common | Half(first) << kOr;
    }
}

// Where an ordered list lies, in tiles from the begin of `ordered`, and how long it is.
struct Place {
    unsigned tile, size;
};

// A block orders the lists of cell `blockIdx.y` of group `first + blockIdx.x`, and takes what they
// need of the `tiles` of `ordered`, of which `taken` are. Its lists are those that `list_of` names from
// group `at` on. The last tile of a list is filled with
// words without weight. A group whose lists found no room is `spilled`.
template <Middle C>
__global__ void __launch_bounds__(C.order_threads(), 1)
    order(unsigned first, unsigned count, unsigned at, unsigned room, const unsigned* middle,
          const unsigned* columns, const unsigned* list_of, const Half* halves,
          const unsigned* sizes, const Half* useful, unsigned staged, unsigned tiles,
          unsigned* taken, Half* ordered, Half* masks, Half* tops, Place* places, unsigned* widths,
          unsigned* next, unsigned* spilled) {
    extern __shared__ Half stage[];
    __shared__ Permutation<C> permute;
    __shared__ unsigned bins[Sorter<C>::kBins];
    __shared__ unsigned tile;
    const unsigned group = blockIdx.x, cell = group * gridDim.y + blockIdx.y;
    if (group >= count) return;
    Members<C> sides[2];
    Half barred = 0, both = ~Half(0);
    unsigned last = kAnyRow;
    if constexpr (C.odd()) {  // the middle row's queen
        barred = (Half(1) << C.n | 1) << middle[first + group];
        if (C.symmetry == Symmetry::middle && middle[first + group] < C.half())
            last = middle[first + group];
    }
    for (unsigned side = 0; side < 2; ++side) {
        const unsigned k = list_of[2 * (at + group) + side];
        sides[side] = {halves + size_t(k) * room,
                       sizes[k],
                       side == 1,
                       side ? kAnyRow : last,
                       0,
                       barred,
                       0,
                       0,
                       kAnyColumn};
        both &= side ? flipped<C>(useful[k]) : useful[k] & ~barred;
    }
    const bool fits = max(sides[0].size, sides[1].size) <= room;
    if (threadIdx.x == 0) {
        if (!fits) spilled[first + group] = 1;
        places[2 * cell] = places[2 * cell + 1] = {0, 0};
        next[cell] = 0;
    }
    if (!fits || min(sides[0].size, sides[1].size) == 0) return;
    if constexpr (C.exact()) both &= ~decide<C>(sides, columns + 2 * (first + group), blockIdx.y);
    if constexpr (C.split > 0) {
        permute.rank(sides, both);
        both &= ~permute.cut(sides, blockIdx.y);
        __syncthreads();
    }
    permute.rank(sides, both);
    permute.tabulate();
    if (threadIdx.x == 0) widths[cell] = __popcll(both);
    const Sorter<C> sorter{permute, bins, stage, staged};
    for (unsigned side = 0; side < 2; ++side) {
        const unsigned size = sorter.count(sides[side]);
        const unsigned filled = (size + kWarp - 1) / kWarp;
        const unsigned needed = (filled + kWarp - 1) / kWarp * kWarp;
        if (threadIdx.x == 0) tile = size == 0 ? 0 : atomicAdd(taken, needed);
        __syncthreads();
        const unsigned begin = tile;
        if (begin + needed > tiles) {
            if (threadIdx.x == 0) spilled[first + group] = 1;
            return;
        }
        Half* const to = ordered + size_t(begin) * kWarp;
        sorter.sort(sides[side], size, to);
        if (threadIdx.x < filled * kWarp - size) to[size + threadIdx.x] = 0;
        if (threadIdx.x == 0) places[2 * cell + side] = {begin, size};
        __syncthreads();
        mask_tiles<C.order_threads()>(to, size, masks + begin);
        __syncthreads();
        mask_tops<C.order_threads()>(masks + begin, filled, tops + begin / kWarp);
    }
}
