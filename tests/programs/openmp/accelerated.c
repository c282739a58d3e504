/* A program with constructs of OpenACC, which run on the host where there is no device. Prints a sum. */
#include <stdio.h>

enum { COUNT = 1000 };

int main(void) {
    static double values[COUNT];
    double sum = 0;
#pragma acc enter data create(values)
#pragma acc parallel loop present(values)
    for (int i = 0; i < COUNT; i++) values[i] = i;
#pragma acc parallel loop reduction(+ : sum) present(values)
    for (int i = 0; i < COUNT; i++) sum += values[i];
#pragma acc update self(values)
#pragma acc exit data delete(values)
    printf("%.0f\n", sum);
    return 0;
}
