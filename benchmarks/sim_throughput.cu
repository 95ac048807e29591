// Counts solutions below the first two queens; the same loop as `count` in sim_throughput.py.
__global__ void count(int n, int* solutions) {
    const int thread = blockIdx.x * blockDim.x + threadIdx.x;
    if (thread >= n * n) return;
    const int full = (1 << n) - 1;
    const int first = 1 << (thread / n), second = 1 << (thread % n);
    int columns[32], left[32], right[32], open[32];
    int row = 0, found = 0;
    columns[0] = first | second;
    left[0] = ((first << 1) | second) << 1;
    right[0] = ((first >> 1) | second) >> 1;
    open[0] = full & ~(columns[0] | left[0] | right[0]);
    if (second & (first | first << 1 | first >> 1)) open[0] = 0;
    while (row >= 0) {
        const int queen = open[row] & -open[row];
        if (queen == 0) {
            row--;
            continue;
        }
        open[row] ^= queen;
        if ((columns[row] | queen) == full) {
            found++;
            continue;
        }
        columns[row + 1] = columns[row] | queen;
        left[row + 1] = (left[row] | queen) << 1;
        right[row + 1] = (right[row] | queen) >> 1;
        row++;
        open[row] = full & ~(columns[row] | left[row] | right[row]);
    }
    solutions[thread] = found;
}
