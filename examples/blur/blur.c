/* The blur of blur.cu on one core of the CPU.
 *
 *     cc -O3 -o blur blur.c
 *     ./blur 1000000
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

int main(int count, char **words)
{
    long n = count == 2 ? atol(words[1]) : 0;
    float *a = n > 0 ? calloc(n + 2, sizeof *a) : NULL, *b = n > 0 ? calloc(n, sizeof *b) : NULL;
    if (!a || !b) {
        fprintf(stderr, "blur: one argument, how many elements\n");
        return 2;
    }
    for (long i = 0; i < n; ++i)
        a[i + 1] = i % 7;

    struct timespec start, end;
    clock_gettime(CLOCK_MONOTONIC, &start);
    for (long i = 0; i < n; ++i)
        b[i] = a[i] + a[i + 1] + a[i + 2];
    clock_gettime(CLOCK_MONOTONIC, &end);

    double sum = 0, us = (end.tv_sec - start.tv_sec) * 1e6 + (end.tv_nsec - start.tv_nsec) * 1e-3;
    for (long i = 0; i < n; ++i)
        sum += b[i];
    printf("sum=%.0f\ntime=%.3f us\n", sum, us);
    return 0;
}
