#!/usr/bin/env python3
"""Writes a trace as Perfetto's own `traced` and `traced_probes` write one of scheduling, with the PyPI bindings of its messages.

    like_traced.py OUT < {"clocks": [{"boottime": NS, "monotonic": NS, "realtime": NS}, ...], "pid": PID, "from": NS, "to": NS,
                          "monotonic": NS}

The clocks are readings at the begin and at the end. Process PID ran on processor 0 between two times of BOOTTIME, told by
switches as they are, and on processor 1 a time of the same length later, told compactly; something happened at a time of
MONOTONIC. Real traced is no package of any registry, so that tests cannot install it."""

import json
import sys

from perfetto.protos.perfetto.trace import perfetto_trace_pb2

SERVICE, TRACE, FTRACE, EVENTS = 1, 2, 3, 4
CLOCKS = {'realtime': 1, 'monotonic': 3, 'boottime': 6}
DYING = 16

given = json.load(sys.stdin)
trace = perfetto_trace_pb2.Trace()


def packet(sequence, **fields):
    added = trace.packet.add(trusted_packet_sequence_id=sequence, trusted_uid=0, **fields)
    return added


def snapshot(clocks):
    reading = packet(SERVICE, timestamp=clocks['boottime']).clock_snapshot
    reading.primary_trace_clock = CLOCKS['boottime']
    for name, number in CLOCKS.items():
        reading.clocks.add(clock_id=number, timestamp=clocks[name])


def switch(bundle, time, before, after):
    event = bundle.event.add(timestamp=time, pid=before[0])
    event.sched_switch.prev_pid, event.sched_switch.prev_comm = before
    event.sched_switch.prev_prio = event.sched_switch.next_prio = 120
    event.sched_switch.prev_state = 0 if before[0] == 0 else DYING
    event.sched_switch.next_pid, event.sched_switch.next_comm = after


begin, end = given['clocks'][0], given['clocks'][-1]
snapshot(begin)
config = packet(SERVICE, timestamp=begin['boottime']).trace_config
config.data_sources.add().config.name = 'linux.ftrace'
system = packet(SERVICE, timestamp=begin['boottime']).system_info
system.tracing_service_version = 'Perfetto v58.2'
system.utsname.sysname = 'Linux'

idle, program = (0, 'swapper/0'), (given['pid'], 'program')
bundle = packet(FTRACE).ftrace_events
bundle.cpu = 0
bundle.previous_bundle_end_timestamp = begin['boottime']
switch(bundle, given['from'], idle, program)
switch(bundle, given['to'], program, idle)

length = given['to'] - given['from']
compact = packet(FTRACE).ftrace_events
compact.cpu = 1
compact.previous_bundle_end_timestamp = begin['boottime']
compact.compact_sched.intern_table.extend(['program', 'swapper/1'])
# Of the first switch of a processor it is not told who ran before: readers begin with the second.
compact.compact_sched.switch_timestamp.extend([given['to'], length, length])
compact.compact_sched.switch_prev_state.extend([0, 0, DYING])
compact.compact_sched.switch_next_pid.extend([0, given['pid'], 0])
compact.compact_sched.switch_next_prio.extend([120, 120, 120])
compact.compact_sched.switch_next_comm_index.extend([1, 0, 1])

track = packet(EVENTS).track_descriptor
track.uuid, track.name = 77, 'by MONOTONIC'
happened = packet(EVENTS, timestamp=given['monotonic'], timestamp_clock_id=CLOCKS['monotonic'])
happened.track_event.type = happened.track_event.TYPE_INSTANT
happened.track_event.track_uuid, happened.track_event.name = 77, 'happened'

snapshot(end)
packet(SERVICE, timestamp=end['boottime']).trace_stats.buffer_stats.add(bytes_written=1000)
with open(sys.argv[1], 'wb') as out:
    out.write(trace.SerializeToString())
