/* Libraries that are no tools, or bad ones: which one, the compiler's option says. */
#include "gputrail.h"
#include <stdlib.h>
#include <string.h>

#ifdef NO_ENTRY
int nothing_here;
#else
static gputrail_status initialise(gputrail_tool tool, void *user_data) {
    (void)tool;
    (void)user_data;
    return GPUTRAIL_TOO_MANY;
}

const gputrail_tool_description *gputrail_tool_configure(const gputrail_tool_host *host) {
    static gputrail_tool_description description;
    memset(&description, 0, sizeof description);
    description.size = sizeof description;
    description.api_version = host->api_version;
    description.name = "bad";
    description.initialise = initialise;
#ifdef CRASHES
    abort();
#endif
#ifdef OTHER_VERSION
    description.api_version = 77;
#endif
#ifdef WRONG_SIZE
    description.size = 3;
#endif
#ifdef EXITS
    exit(0x7f);
#endif
    return &description;
}
#endif
