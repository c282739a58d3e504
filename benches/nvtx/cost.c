// Measures a push and pop by NVTX in each of the libraries that the arguments name, `LIBRARY=INJECTION`, in turns: the
// median and the fastest of the rounds, in ns.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

// The records of a round fit into the pool; gputrail takes them in the pause after it.
enum { ROUNDS = 101, CALLS = 20000, PAUSE_US = 20000, MOST = 8 };

static int compare(const void* a, const void* b) {
    double x = *(const double*)a, y = *(const double*)b;
    return (x > y) - (x < y);
}

int main(int count, char** arguments) {
    static double times[MOST][ROUNDS];
    void (*calls[MOST])(long);
    for (int n = 1; n < count && n <= MOST; n++) {
        char* injection = strchr(arguments[n], '=');
        *injection++ = 0;
        // NVTX reads the variable in the first call of each binary.
        if (*injection) setenv("NVTX_INJECTION64_PATH", injection, 1);
        else unsetenv("NVTX_INJECTION64_PATH");
        void* library = dlopen(arguments[n], RTLD_NOW);
        if (!library) return fprintf(stderr, "%s\n", dlerror()), 1;
        calls[n - 1] = (void (*)(long))dlsym(library, "calls");
        calls[n - 1](1000);
    }
    for (int round = 0; round < ROUNDS; round++)
        for (int n = 0; n < count - 1; n++) {
            struct timespec begin, end;
            clock_gettime(CLOCK_MONOTONIC, &begin);
            calls[n](CALLS);
            clock_gettime(CLOCK_MONOTONIC, &end);
            usleep(PAUSE_US);
            times[n][round] = ((end.tv_sec - begin.tv_sec) * 1e9 + (end.tv_nsec - begin.tv_nsec)) / CALLS;
        }
    for (int n = 0; n < count - 1; n++) {
        qsort(times[n], ROUNDS, sizeof *times[n], compare);
        printf("%s %.1f %.1f\n", arguments[n + 1], times[n][ROUNDS / 2], times[n][0]);
    }
    return 0;
}
