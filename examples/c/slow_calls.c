/* A flight recorder: keeps what happened last, and writes it out when a call is slow. SLOW_CALL_MICROS says what is slow,
 * else 10 ms. Each dump is a capture: gputrail convert flight-*.gputrail -o slow.pftrace
 *
 *   cc -std=c99 -Wall -Wextra -pedantic -shared -fPIC -o libslow_calls.so slow_calls.c $(pkg-config --cflags --libs gputrail)
 *   gputrail record --tool ./libslow_calls.so -- PROGRAM
 */
#include "gputrail.h"
#include <stdio.h>
#include <stdlib.h>

static gputrail_flight flight;

static gputrail_status initialise(gputrail_tool tool, void *user_data) {
    const char *micros = getenv("SLOW_CALL_MICROS");
    gputrail_flight_options options = GPUTRAIL_FLIGHT_OPTIONS_INIT;
    (void)tool;
    (void)user_data;
    options.slow_call_nanos = (micros ? strtoull(micros, NULL, 10) : 10000) * 1000;
    options.max_dumps = 3;
    return gputrail_flight_start(&options, &flight);
}

static void finalise(void *user_data) {
    size_t dumps = 0;
    (void)user_data;
    gputrail_flight_triggered(flight, &dumps);
    gputrail_flight_stop(flight);
    fprintf(stderr, "slow-calls: %lu dumps\n", (unsigned long)dumps);
}

const gputrail_tool_description *gputrail_tool_configure(const gputrail_tool_host *host) {
    static gputrail_tool_description description = GPUTRAIL_TOOL_DESCRIPTION_INIT;
    (void)host;
    description.name = "slow-calls";
    description.initialise = initialise;
    description.finalise = finalise;
    return &description;
}
