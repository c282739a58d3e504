/* A program with parallel regions of OpenMP: a loop, a single, a barrier, tasks. Prints a sum. */
#include <stdio.h>
#include <unistd.h>

enum { REGIONS = 3, COUNT = 1000 };

static long values[COUNT];

int main(void) {
    long sum = 0;
    for (int region = 0; region < REGIONS; region++) {
#pragma omp parallel num_threads(3) reduction(+ : sum)
        {
#pragma omp single
            values[0] = region;
#pragma omp for
            for (int i = 1; i < COUNT; i++) values[i] = i + region;
#pragma omp barrier
#pragma omp for
            for (int i = 0; i < COUNT; i++) sum += values[i];
        }
        /* The threads wait here, in no region. */
        usleep(20000);
    }
#pragma omp parallel num_threads(2)
#pragma omp single
    {
#pragma omp task shared(values)
        values[1]++;
#pragma omp taskwait
    }
    printf("%ld %ld\n", sum, values[1]);
    return 0;
}
