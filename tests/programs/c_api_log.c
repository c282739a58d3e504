/* A program that is linked with gputrail and gets its messages: failed calls, lines that would go to the standard error, and
   all calls. Compiled as C and as C++. */
#include "gputrail.h"
#include "checks.h"
#include <stdio.h>
#include <string.h>

static int count, word;
static uint32_t kinds;
static char last[400];

static void reads(uint32_t kind, const char *message, void *user_data) {
    CHECK(user_data == &word && (kind == 1 || kind == 2 || kind == 4) && strchr(message, '\n') == NULL);
    count++;
    kinds |= kind;
    strncpy(last, message, sizeof last - 1);
    /* What is called here is not told. */
    (void)gputrail_version();
}

static void begin(uint32_t wanted, gputrail_log_function function) {
    CHECK(gputrail_log_to(wanted, function, &word) == GPUTRAIL_OK);
    count = 0;
    kinds = 0;
}

int main(void) {
    gputrail_counter_sessions none = {0};
    gputrail_context context;
    uint64_t number = 0;

    /* Before the library is initialised. */
    begin(GPUTRAIL_LOG_KIND_ERROR, reads);
    CHECK(gputrail_counter_sessions_end(none) == GPUTRAIL_NOT_INITIALISED);
    CHECK(count == 1 && kinds == GPUTRAIL_LOG_KIND_ERROR);
    CHECK(strstr(last, "gputrail_counter_sessions_end: ") == last && strstr(last, "(GPUTRAIL_NOT_INITIALISED)"));
    CHECK(gputrail_initialise() == GPUTRAIL_OK);
    CHECK(count == 1);
    CHECK(gputrail_counter_sessions_uint64(none, 1, 2, 3, &number) == GPUTRAIL_NO_SUCH_COUNTER_SESSIONS);
    CHECK(count == 2 && strstr(last, "gputrail_counter_sessions_uint64: ") == last);

    CHECK(gputrail_log_to(8, reads, &word) == GPUTRAIL_INVALID_ARGUMENT);
    CHECK(gputrail_log_to(GPUTRAIL_LOG_KIND_ERROR, NULL, NULL) == GPUTRAIL_NULL_POINTER);
    CHECK(count == 4 && strstr(last, "gputrail_log_to: ") == last);

    /* A registration is told by a message, if messages are wanted. */
    CHECK(gputrail_log_to(GPUTRAIL_LOG_KIND_MESSAGE, reads, &word) == GPUTRAIL_OK);
    CHECK(count == 5 && strcmp(last, "Logging callback registered successfully.") == 0);
    begin(GPUTRAIL_LOG_KIND_MESSAGE, reads);
    CHECK(gputrail_counter_sessions_end(none) == GPUTRAIL_NO_SUCH_COUNTER_SESSIONS);
    CHECK(count == 0);

    begin(GPUTRAIL_LOG_KIND_TRACE, reads);
    CHECK(gputrail_context_create(&context) == GPUTRAIL_OK);
    CHECK(count == 1 && strcmp(last, "gputrail_context_create: GPUTRAIL_OK") == 0);
    CHECK(gputrail_context_stop(context) == GPUTRAIL_STOPPED);
    CHECK(count == 2 && strcmp(last, "gputrail_context_stop: GPUTRAIL_STOPPED") == 0 && kinds == GPUTRAIL_LOG_KIND_TRACE);
    begin(GPUTRAIL_LOG_KIND_ERROR | GPUTRAIL_LOG_KIND_TRACE, reads);
    CHECK(gputrail_context_stop(context) == GPUTRAIL_STOPPED);
    CHECK(count == 2 && kinds == (GPUTRAIL_LOG_KIND_ERROR | GPUTRAIL_LOG_KIND_TRACE));

    begin(0, NULL);
    CHECK(gputrail_context_stop(context) == GPUTRAIL_STOPPED);
    CHECK(count == 0);
    begin(GPUTRAIL_LOG_KIND_ERROR, reads);
    CHECK(gputrail_finalise() == GPUTRAIL_OK);
    CHECK(gputrail_context_stop(context) == GPUTRAIL_NOT_INITIALISED);
    CHECK(count == 0);
    printf("%s\n", failures ? "failed" : "passed");
    return failures > 0;
}
