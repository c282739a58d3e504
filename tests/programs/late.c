/* Programs that load OpenCL while they run:
 *
 *     late emptied          empties its environment before, and lives for three seconds more
 *     late daemon DONE      a child of it goes on until the recording has ended, makes a call, and creates the file DONE
 *     late crowded LIBRARY  loads a library before, whose thread-local variables occupy what the process has left for those of
 *                           libraries that are loaded late
 *
 *     late once             makes its calls, and ends
 *     late shut-out         the same, and may open no sockets
 *
 * All but `daemon` print the number of platforms. */
#include <dlfcn.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static void call(void) {
    unsigned platforms = 0;
    void *library = dlopen("libOpenCL.so.1", RTLD_NOW);
    int (*get_platforms)(unsigned, void *, unsigned *) = library ? dlsym(library, "clGetPlatformIDs") : NULL;
    if (!get_platforms) {
        puts(dlerror());
        exit(1);
    }
    for (int i = 0; i < 10; i++) get_platforms(0, NULL, &platforms);
    printf("platforms %u\n", platforms);
    fflush(stdout);
}

static void live_as_a_daemon(const char *done) {
    const char *session = getenv("GPUTRAIL_SESSION");
    if (fork() != 0) return;
    setsid();
    if (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr)) exit(1);
    while (session && access(session, F_OK) == 0) usleep(10000);
    call();
    fclose(fopen(done, "w"));
}

static void forbid_sockets(void) {
    struct sock_filter instructions[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {sizeof instructions / sizeof *instructions, instructions};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter)) {
        perror("seccomp");
        exit(1);
    }
}

int main(int count, char **arguments) {
    const char *how = count > 1 ? arguments[1] : "";
    if (!strcmp(how, "daemon") && count > 2) live_as_a_daemon(arguments[2]);
    if (!strcmp(how, "crowded") && count > 2) {
        if (!dlopen(arguments[2], RTLD_NOW)) {
            puts(dlerror());
            return 1;
        }
        call();
    }
    if (!strcmp(how, "shut-out")) forbid_sockets();
    if (!strcmp(how, "once") || !strcmp(how, "shut-out")) call();
    if (!strcmp(how, "emptied")) {
        clearenv();
        call();
        sleep(3);
    }
    return 0;
}
