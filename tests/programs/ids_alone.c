/* A program that uses no GPU and does not initialise the library: an id with a name, pushed before the first range. */
#include "gputrail.h"
#include <stdio.h>

int main(void) {
    gputrail_external_kind kind = 0;
    gputrail_external_id id = 0;
    gputrail_status named, pushed, popped;
    if (gputrail_external_register_kind("request", &kind) != GPUTRAIL_OK) return 1;
    named = gputrail_external_name(kind, 7, "request 7");
    pushed = gputrail_external_push(kind, 7);
    if (gputrail_range_push_name("inside") != GPUTRAIL_OK) return 1;
    if (gputrail_range_pop() != GPUTRAIL_OK) return 1;
    popped = gputrail_external_pop(kind, &id);
    printf("name %s, push %s, pop %s: %d\n", gputrail_status_name(named), gputrail_status_name(pushed),
           gputrail_status_name(popped), (int)id);
    return 0;
}
