// Two binaries with NVTX call it for the first time at once, in two threads, while the `gputrail record` that this program
// is a child of is stopped: one of the threads begins the recording and waits for it. Prints the levels of both pushes, of
// which one returns before `gputrail record` goes on.
#include <atomic>
#include <dlfcn.h>
#include <nvtx3/nvToolsExt.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <thread>
#include <unistd.h>

// The state of a process in /proc: the letter behind its name in parentheses.
static char state(pid_t pid) {
    char path[64], text[512] = "";
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE* file = fopen(path, "r");
    if (!file) return 0;
    size_t read = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    const char* name_end = read ? strrchr(text, ')') : nullptr;
    return name_end ? name_end[2] : 0;
}

int main(int, char** arguments) {
    void* other = dlopen(arguments[1], RTLD_NOW);
    auto push = (int (*)(void))dlsym(other, "other_push");
    const pid_t parent = getppid();
    kill(parent, SIGSTOP);
    while (state(parent) != 'T') usleep(1000);
    std::atomic<int> returned{0};
    int levels[2];
    std::thread own([&] { levels[0] = nvtxRangePushA("own"), returned++; });
    std::thread others([&] { levels[1] = push(), returned++; });
    while (returned == 0) usleep(1000);
    kill(parent, SIGCONT);
    own.join();
    others.join();
    printf("%d %d\n", levels[0], levels[1]);
    nvtxMarkA("own moment");
    ((void (*)(void))dlsym(other, "other_marks"))();
    return 0;
}
