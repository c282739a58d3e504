/* Measures the callbacks of launches and the taking of their records, in turns with a subscriber that does nothing and with
 * copies of as many bytes. ns: median and fastest of the rounds. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROUNDS = 41, CALLS = 100000, MEASURES = 4 };

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(void) {
    static const char *const names[MEASURES] = {"enter and exit, recorded", "enter and exit, of an empty subscriber",
                                                "record of a kernel, taken", "as many bytes, copied"};
    static double times[MEASURES][ROUNDS];
    void *cuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    if (!cuda) return fprintf(stderr, "%s\n", dlerror()), 1;
    ((int (*)(unsigned))dlsym(cuda, "cuInit"))(0);
    void *cupti = dlopen("libcupti.so.12", RTLD_NOW | RTLD_NOLOAD);
    if (!cupti) return fprintf(stderr, "libcupti was not loaded: nobody records\n"), 1;
    double (*calls)(size_t, int) = (double (*)(size_t, int))dlsym(cupti, "standin_calls");
    double (*records)(uint32_t) = (double (*)(uint32_t))dlsym(cupti, "standin_records");
    double (*copies)(uint32_t) = (double (*)(uint32_t))dlsym(cupti, "standin_copies");
    for (int round = 0; round < ROUNDS; round++) {
        times[0][round] = calls(CALLS, 1);
        times[1][round] = calls(CALLS, 0);
        times[2][round] = records(CALLS);
        times[3][round] = copies(CALLS);
    }
    for (int n = 0; n < MEASURES; n++) {
        qsort(times[n], ROUNDS, sizeof *times[n], compare);
        printf("%-40s %6.1f %6.1f\n", names[n], times[n][ROUNDS / 2] * 1e9 / CALLS, times[n][0] * 1e9 / CALLS);
    }
    return 0;
}
