// Counts all solutions below given partial boards, one job per thread, stack in shared memory.
// `continue` sits where a compiler would otherwise jump to the loop's head.
template <int N, int DEPTH, int BLOCK, bool INTERLEAVED>
__global__ void queens(const unsigned* jobs, unsigned long long* totals, int count) {
  constexpr int ROWS = N - DEPTH;
  constexpr unsigned FULL = (1u << N) - 1;
  __shared__ unsigned stack[ROWS * 4 * BLOCK];
  const int thread = threadIdx.x;
  const int job = blockIdx.x * BLOCK + thread;
  if (job >= count) return;
  auto at = [&](int row, int word) -> unsigned& {
    return INTERLEAVED ? stack[(row * 4 + word) * BLOCK + thread]
                       : stack[(thread * ROWS + row) * 4 + word];
  };
  unsigned long long total = 0;
  int row = 0;
  for (int word = 0; word < 3; word++) at(0, word) = jobs[3 * job + word];
  at(0, 3) = FULL & ~(at(0, 0) | at(0, 1) | at(0, 2));
  while (row >= 0) {
    const unsigned free = at(row, 3);
    if (free == 0) {
      --row;
      continue;
    }
    const unsigned bit = free & -free;
    at(row, 3) = free ^ bit;
    if (row == ROWS - 1) {
      total++;
      continue;
    }
    const unsigned c = at(row, 0) | bit, l = (at(row, 1) | bit) << 1, r = (at(row, 2) | bit) >> 1;
    ++row;
    at(row, 0) = c;
    at(row, 1) = l;
    at(row, 2) = r;
    at(row, 3) = FULL & ~(c | l | r);
  }
  totals[job] = total;
}

// The same search with a pool: threads fetch the next job from a counter.
template <int N, int DEPTH, int BLOCK>
__global__ void queens_pool(const unsigned* jobs, unsigned* next, unsigned long long* total,
                            int count) {
  constexpr int ROWS = N - DEPTH;
  constexpr unsigned FULL = (1u << N) - 1;
  unsigned columns[ROWS], left[ROWS], right[ROWS], free[ROWS];
  unsigned long long found = 0;
  for (unsigned job = atomicAdd(next, 1u); job < count; job = atomicAdd(next, 1u)) {
    int row = 0;
    columns[0] = jobs[3 * job];
    left[0] = jobs[3 * job + 1];
    right[0] = jobs[3 * job + 2];
    free[0] = FULL & ~(columns[0] | left[0] | right[0]);
    while (row >= 0) {
      if (free[row] == 0) {
        row--;
        continue;
      }
      const unsigned bit = free[row] & -free[row];
      free[row] ^= bit;
      if (row == ROWS - 1) {
        found++;
        continue;
      }
      columns[row + 1] = columns[row] | bit;
      left[row + 1] = (left[row] | bit) << 1;
      right[row + 1] = (right[row] | bit) >> 1;
      row++;
      free[row] = FULL & ~(columns[row] | left[row] | right[row]);
    }
  }
  atomicAdd(total, found);
}
