// Simulated annealing on the GPU: one warp per chain, its 32 lanes working on 32 proposals ahead.
//
// Every proposal is a function of its number alone (a counter-based random generator), so the lanes
// evaluate the next 32 proposals against the present board. The first one that is accepted is made,
// and the walk continues after it: exactly the walk that a CPU makes one step at a time. Cold
// chains refuse nearly everything, so that few evaluations are thrown away.
//
// Memory of a chain: a board of n words and two arrays of 2n - 1 counters, queens per diagonal.
#include "../../warp.cuh"
#include "chain_random.cuh"

constexpr int kMostRise = 32;    // annealing/cooling.MAX_RISE
constexpr unsigned kTries = 32;  // annealing/cooling.TRIES: a lane for each
constexpr unsigned kPoll = 256;  // rounds between checks of what other chains have found

struct Rules {
    const unsigned* table;  // chances of a rise, kMostRise for each temperature
    unsigned moves;         // proposals at each temperature
    unsigned limit;         // proposals in all
};

struct Proposal {
    int i, j, change;
    bool accepted;
};

template <class Word> struct Chain {
    Word* board;
    Word* rising;
    Word* falling;  // offset so that column - row may index it
    int n;
    unsigned long long key;

    // As int: of a Word of 32 bits, column - row would wrap round instead of being negative.
    __device__ int row(int i) const { return static_cast<int>(board[i]); }

    __device__ bool attacked(int i) const {
        const int r = row(i);
        return rising[i + r] > 1 || falling[i - r] > 1;
    }

    // Conflicts that exchanging the rows of two queens adds. A queen leaves as many partners as its
    // diagonals hold others and meets those of its new ones; two queens on one diagonal lose each
    // other once, not twice, and meet again on the other diagonal.
    __device__ int change_of(int i, int j) const {
        const int a = row(i), b = row(j);
        const int lost = rising[i + a] + rising[j + b] + falling[i - a] + falling[j - b] - 4;
        const int met = rising[i + b] + rising[j + a] + falling[i - b] + falling[j - a];
        return met - lost + 2 * (i + a == j + b) + 2 * (i + b == j + a);
    }

    __device__ void exchange(int i, int j) {
        const int a = row(i), b = row(j);
        --rising[i + a], --rising[j + b], --falling[i - a], --falling[j - b];
        ++rising[i + b], ++rising[j + a], ++falling[i - b], ++falling[j - a];
        board[i] = static_cast<Word>(b);
        board[j] = static_cast<Word>(a);
    }

    // Metropolis: never worse is accepted, a rise by its chance.
    __device__ bool accepts(int change, unsigned step, const Rules& rules) const {
        if (change <= 0) return true;
        if (change > kMostRise) return false;
        const unsigned chance = rules.table[step / rules.moves * kMostRise + change - 1];
        return high(draw(key, 2ull * step + 2)) < chance;
    }

    __device__ Proposal propose(unsigned step, int first, const Rules& rules) const {
        const unsigned long long word = draw(key, 2ull * step + 1);
        Proposal p;
        p.i = first >= 0 ? first : static_cast<int>(below(high(word), n));
        p.j = static_cast<int>(below(low(word), n - 1));
        p.j += p.j >= p.i;
        p.change = change_of(p.i, p.j);
        p.accepted = accepts(p.change, step, rules);
        return p;
    }
};

// Progress of a walk; the same in all lanes.
struct Walk {
    long long conflicts;
    unsigned step, accepted;
};

// Fisher and Yates. The lanes draw, lane 0 exchanges.
template <class Word> __device__ void shuffle(Chain<Word>& chain, unsigned lane) {
    for (int i = lane; i < chain.n; i += kWarp) chain.board[i] = static_cast<Word>(i);
    __syncwarp();
    const unsigned long long key = shuffle_key(chain.key);
    for (int top = chain.n - 1; top > 0; top -= kWarp) {
        const int last = top - static_cast<int>(lane);
        const unsigned mine = last > 0 ? below(high(draw(key, last)), last + 1) : 0;
        for (int k = 0; k < static_cast<int>(kWarp) && top - k > 0; ++k) {
            const unsigned other = __shfl_sync(kAllLanes, mine, k);
            if (lane == 0) {
                const Word held = chain.board[top - k];
                chain.board[top - k] = chain.board[other];
                chain.board[other] = held;
            }
        }
    }
    __syncwarp();
}

// Queens of every diagonal: no 8- or 16-bit atomics exist, so one lane counts each direction.
template <class Word> __device__ long long count(Chain<Word>& chain, unsigned lane) {
    const int n = chain.n;
    for (int d = lane; d < 2 * n - 1; d += kWarp) {
        chain.rising[d] = 0;
        chain.falling[d - (n - 1)] = 0;
    }
    __syncwarp();
    if (lane == 0)
        for (int i = 0; i < n; ++i) ++chain.rising[i + chain.row(i)];
    if (lane == 1)
        for (int i = 0; i < n; ++i) ++chain.falling[i - chain.row(i)];
    __syncwarp();
    long long total = 0;
    for (int d = lane; d < 2 * n - 1; d += kWarp) {
        const long long up = chain.rising[d], down = chain.falling[d - (n - 1)];
        total += up * (up - 1) / 2 + down * (down - 1) / 2;
    }
    return warp_all(total, [](long long a, long long b) { return a + b; });
}

// The next `width` proposals at once; the first accepted one is made. Returns how many are done.
template <class Word>
__device__ unsigned leap(Chain<Word>& chain, Walk& walk, unsigned width, int first,
                         const Rules& rules, unsigned lane) {
    width = min(width, rules.limit - walk.step);
    Proposal p{0, 0, 0, false};
    if (lane < width) p = chain.propose(walk.step + lane, first, rules);
    const unsigned votes = __ballot_sync(kAllLanes, p.accepted);
    unsigned done = width;
    if (votes) {
        const unsigned winner = __ffs(static_cast<int>(votes)) - 1;
        walk.conflicts += __shfl_sync(kAllLanes, p.change, winner);
        ++walk.accepted;
        done = winner + 1;
        if (lane == winner) chain.exchange(p.i, p.j);
        __syncwarp();
    }
    walk.step += done;
    return done;
}

// Whether a chain that found its board earlier makes this one needless. Chains with fewer steps so
// far continue, so that the winner does not depend on the order of execution.
__device__ bool beaten(const unsigned long long* best, unsigned step, unsigned lane) {
    unsigned long long found = 0;
    if (lane == 0) found = *static_cast<const volatile unsigned long long*>(best);
    return step > high(__shfl_sync(kAllLanes, found, 0));
}

template <class Word>
__device__ void walk_uniform(Chain<Word>& chain, Walk& walk, const Rules& rules,
                             const unsigned long long* best, bool race, unsigned lane) {
    unsigned round = 0;
    while (walk.conflicts > 0 && walk.step < rules.limit) {
        leap(chain, walk, kWarp, -1, rules, lane);
        if (race && ++round % kPoll == 0 && beaten(best, walk.step, lane)) return;
    }
}

// Goes round the columns, 32 at a time; a queen in conflict tries up to kTries partners as long as
// it stays in conflict.
template <class Word>
__device__ void walk_attacked(Chain<Word>& chain, Walk& walk, const Rules& rules,
                              const unsigned long long* best, bool race, unsigned lane) {
    unsigned round = 0;
    while (walk.conflicts > 0 && walk.step < rules.limit) {
        for (int base = 0; base < chain.n; base += kWarp) {
            const int mine = base + static_cast<int>(lane);
            unsigned ahead = kAllLanes;
            while (true) {
                const bool hit = mine < chain.n && chain.attacked(mine);
                const unsigned hits = __ballot_sync(kAllLanes, hit) & ahead;
                if (!hits) break;
                const int at = __ffs(static_cast<int>(hits)) - 1;
                unsigned tries = kTries;
                while (tries > 0 && chain.attacked(base + at)) {
                    if (walk.step >= rules.limit) return;
                    tries -= leap(chain, walk, tries, base + at, rules, lane);
                }
                if (race && ++round % kPoll == 0 && beaten(best, walk.step, lane)) return;
                ahead = at == static_cast<int>(kWarp) - 1 ? 0 : kAllLanes << (at + 1);
            }
        }
    }
}

// Results by chain: conflicts left, proposals, accepted ones, and the board. `best` is the least
// (proposals << 32 | chain) of those without conflicts.
template <class Word, bool kShared, bool kAttacked>
__global__ void anneal_chains(int n, unsigned chains, unsigned long long seed_key,
                              const unsigned* __restrict__ table, unsigned moves, unsigned limit,
                              int race, unsigned long long* best, unsigned long long* conflicts,
                              unsigned* steps, unsigned* accepted, Word* boards, Word* counters) {
    extern __shared__ __align__(16) unsigned char launch_bytes[];
    const unsigned lane = threadIdx.x % kWarp;
    const unsigned warp = threadIdx.x / kWarp;
    const unsigned number = blockIdx.x * (blockDim.x / kWarp) + warp;
    if (number >= chains) return;

    const size_t diagonals = 4 * static_cast<size_t>(n) - 2;
    Word* const result = boards + static_cast<size_t>(number) * n;
    Chain<Word> chain;
    chain.n = n;
    chain.key = chain_key(seed_key, number);
    if constexpr (kShared) {
        chain.rising = reinterpret_cast<Word*>(launch_bytes) + warp * (diagonals + n);
        chain.board = chain.rising + diagonals;
    } else {
        chain.rising = counters + number * diagonals;
        chain.board = result;
    }
    chain.falling = chain.rising + 3 * n - 2;  // behind 2n - 1 counters, at column - row = 0

    shuffle(chain, lane);
    Walk walk{count(chain, lane), 0, 0};
    const Rules rules{table, moves, limit};
    if constexpr (kAttacked) {
        walk_attacked(chain, walk, rules, best, race != 0, lane);
    } else {
        walk_uniform(chain, walk, rules, best, race != 0, lane);
    }

    if constexpr (kShared)
        for (int i = lane; i < n; i += kWarp) result[i] = chain.board[i];
    if (lane == 0) {
        conflicts[number] = static_cast<unsigned long long>(walk.conflicts);
        steps[number] = walk.step;
        accepted[number] = walk.accepted;
        if (walk.conflicts == 0)
            atomicMin(best, static_cast<unsigned long long>(walk.step) << 32 | number);
    }
}
