"""Writes a Perfetto trace in the way rocprof-sys does: work of the device stands on tracks of the process, behind the calls.

usage: rocprof_sys.py OUT
"""

import sys

from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TrackEvent

PROCESS, THREAD, QUEUE = 1, 2, 3
BEGIN, END = TrackEvent.TYPE_SLICE_BEGIN, TrackEvent.TYPE_SLICE_END

trace = Trace()


def packet():
    made = trace.packet.add()
    made.trusted_packet_sequence_id = 1
    return made


def track(uuid, parent=None, name=None):
    made = packet().track_descriptor
    made.uuid = uuid
    if parent:
        made.parent_uuid = parent
    if name:
        made.name = name
    return made


def event(time, kind, uuid, name=None, category=None, flow=None, numbers=(), texts=()):
    made = packet()
    made.timestamp = time
    made = made.track_event
    made.type = kind
    made.track_uuid = uuid
    if name:
        made.name = name
        made.categories.append(category)
    if flow:
        made.flow_ids.append(flow)
    for key, value in numbers:
        annotation = made.debug_annotations.add()
        annotation.name, annotation.uint_value = key, value
    for key, value in texts:
        annotation = made.debug_annotations.add()
        annotation.name, annotation.string_value = key, value


packet().sequence_flags = 1
track(PROCESS).process.pid = 42
thread = track(THREAD, PROCESS).thread
thread.pid, thread.tid = 42, 43
track(QUEUE, PROCESS, "GPU Kernel Dispatch [0] Queue 1")
for run in range(100):
    time, flow = 1_000_000 + 1000 * run, 500 + run
    ids = [("corr_id", run + 1)]
    event(time, BEGIN, THREAD, "hipLaunchKernel", "rocm_hip_api", flow, ids)
    event(time + 200, END, THREAD)
for run in range(100):
    time, flow = 1_000_300 + 1000 * run, 500 + run
    times = [("begin_ns", time), ("end_ns", time + 500), ("corr_id", run + 1)]
    sizes = [("grid_size", "(512,1,1)"), ("workgroup_size", "(64,1,1)")]
    event(time, BEGIN, QUEUE, "scale(float*)", "rocm_kernel_dispatch", flow, times, sizes)
    event(time + 500, END, QUEUE)

with open(sys.argv[1], "wb") as out:
    out.write(trace.SerializeToString())
