/* A program that uses no GPU and does not initialise the library: a name for its thread, a mark, 100 ranges named `step`, a range
 * that another thread ends, and the same ranges in a forked child. */
#include "gputrail.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void need(gputrail_status status, const char *what) {
    if (status == GPUTRAIL_OK) return;
    printf("%s: %s\n", what, gputrail_status_name(status));
    exit(1);
}

static gputrail_mark_options named(const char *name) {
    gputrail_mark_options options;
    memset(&options, 0, sizeof options);
    options.size = sizeof options;
    options.name = name;
    options.payload_kind = GPUTRAIL_PAYLOAD_KIND_NONE;
    return options;
}

static void *end(void *range) {
    need(gputrail_range_end(*(uint64_t *)range), "end");
    return NULL;
}

static void steps(void) {
    int i;
    for (i = 0; i < 100; i++) {
        need(gputrail_range_push_name("step"), "push");
        need(gputrail_range_pop(), "pop");
    }
}

int main(void) {
    gputrail_mark_options moment = named("moment"), upload = named("upload");
    uint64_t range;
    pthread_t thread;
    int status;
    /* Only a recorded process can be named without more. */
    gputrail_status given = gputrail_name_thread("main of markers");
    printf("named: %s\n", gputrail_status_name(given));
    need(gputrail_mark(&moment), "mark");
    steps();
    need(gputrail_range_start(&upload, &range), "start");
    pthread_create(&thread, NULL, end, &range);
    pthread_join(thread, NULL);
    fflush(stdout);
    if (fork() == 0) {
        steps();
        exit(0);
    }
    wait(&status);
    printf("child: %d\n", status);
    return 0;
}
