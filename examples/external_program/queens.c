/* Counts the solutions of the N-Queens problem with three bit masks, one thread.
 *
 *     cc -O3 -o queens queens.c
 *     ./queens 12
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static uint32_t board;

/* Ways to fill the rows that are left; the masks hold the columns and diagonals under attack. */
static uint64_t place(uint32_t columns, uint32_t left, uint32_t right)
{
    if (columns == board)
        return 1;
    uint64_t found = 0;
    for (uint32_t free = board & ~(columns | left | right); free; free &= free - 1) {
        uint32_t queen = free & -free;
        found += place(columns | queen, (left | queen) << 1, (right | queen) >> 1);
    }
    return found;
}

int main(int count, char **words)
{
    int n = count == 2 ? atoi(words[1]) : 0;
    if (n < 1 || n > 31) {
        fprintf(stderr, "queens: one argument, the size of the board, 1 to 31\n");
        return 2;
    }
    board = (1u << n) - 1;

    struct timespec start, end;
    clock_gettime(CLOCK_MONOTONIC, &start);
    uint64_t found = place(0, 0, 0);
    clock_gettime(CLOCK_MONOTONIC, &end);

    double ms = (end.tv_sec - start.tv_sec) * 1e3 + (end.tv_nsec - start.tv_nsec) * 1e-6;
    printf("%llu solutions\ntime=%.6f ms\n", (unsigned long long)found, ms);
    return 0;
}
