/* What test programs share: checks that print what was wrong, and count. With gputrail.h included before, also checks of its
   statuses, which print the sentence of the last failed call. */
#ifndef CHECKS_H
#define CHECKS_H
#include <stdio.h>

static int failures;

#ifdef GPUTRAIL_H
static inline void expect(const char *call, int line, gputrail_status got, gputrail_status wanted) {
    char text[400] = "";
    if (got == wanted) return;
    gputrail_last_error(text, sizeof text);
    printf("line %d: %s: %s (%s), expected %s\n", line, call, gputrail_status_name(got), text, gputrail_status_name(wanted));
    failures++;
}
#define EXPECT(call, wanted) expect(#call, __LINE__, call, wanted)
#endif

static inline void check(const char *what, int line, int holds) {
    char text[400] = "";
    if (holds) return;
#ifdef GPUTRAIL_H
    gputrail_last_error(text, sizeof text);
#endif
    printf("line %d: does not hold: %s (%s)\n", line, what, text);
    failures++;
}
#define CHECK(what) check(#what, __LINE__, (what) ? 1 : 0)
#endif
