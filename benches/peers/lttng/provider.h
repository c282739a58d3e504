/* What the LTTng peer records: the begin and the end of a call, with what gputrail's record of one says. */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER peers
#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "provider.h"

#if !defined(PEERS_PROVIDER_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define PEERS_PROVIDER_H
#include <lttng/tracepoint.h>
#include <stdint.h>

LTTNG_UST_TRACEPOINT_EVENT(peers, begin, LTTNG_UST_TP_ARGS(uint64_t, correlation, uint32_t, operation),
                           LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(uint64_t, correlation, correlation)
                                                   lttng_ust_field_integer(uint32_t, operation, operation)))
LTTNG_UST_TRACEPOINT_EVENT(peers, end, LTTNG_UST_TP_ARGS(uint64_t, correlation, int32_t, status),
                           LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(uint64_t, correlation, correlation)
                                                   lttng_ust_field_integer(int32_t, status, status)))
#endif

#include <lttng/tracepoint-event.h>
