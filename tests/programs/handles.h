/* Handles that name nothing, or an object of another class: context_of(1), context_of(buffer.handle). */
#ifndef HANDLES_H
#define HANDLES_H
#include "gputrail.h"

#define HANDLE(name) \
    static inline gputrail_##name name##_of(uint64_t handle) { \
        gputrail_##name made; \
        made.handle = handle; \
        return made; \
    }
HANDLE(context)
HANDLE(buffer)
HANDLE(subscriber)
HANDLE(tool)
HANDLE(timeline)
HANDLE(flight)
HANDLE(callback_thread)
HANDLE(watch)
#endif
