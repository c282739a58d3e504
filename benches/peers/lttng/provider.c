/* The LTTng peer, compiled where LTTng is installed, and loaded. */
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "provider.h"

void peers_spans(uint64_t count) {
    for (uint64_t call = 0; call < count; call++) {
        lttng_ust_tracepoint(peers, begin, call, 7);
        lttng_ust_tracepoint(peers, end, call, 0);
    }
}

/* Whether a session records the events. */
int peers_recorded(void) { return lttng_ust_tracepoint_enabled(peers, begin) && lttng_ust_tracepoint_enabled(peers, end); }
