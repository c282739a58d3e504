#!/usr/bin/env python3
"""Reads a trace with the PyPI bindings of Perfetto's messages, an implementation that shares nothing with ours.

    check_packets.py TRACE [RECORDS]

Every packet has to parse into known fields only, at every depth, extensions included. RECORDS is a JSON list of what the
events and the work of the trace have to say, in order, all names and times resolved (tests/agreement.rs writes it). Prints
how many packets there were of each kind as a line of JSON; exit status 1 and the findings on standard error when something
does not hold."""

import collections
import json
import sys

from google.protobuf import descriptor_pb2
from google.protobuf.unknown_fields import UnknownFieldSet
from perfetto.protos.perfetto.trace import perfetto_trace_pb2

PACKET_FIELD = 1
FINDINGS_SHOWN = 20

# Perfetto's GPU extensions, which the bindings leave out, though not all of their messages.
GPU_API = {'GPU_API_UNDEFINED': 0, 'GPU_API_OPEN_GL': 1, 'GPU_API_VULKAN': 2, 'GPU_API_OPEN_CL': 3, 'GPU_API_CUDA': 4,
           'GPU_API_HIP': 5}
EXTENSION_MESSAGES = {
    'GpuCorrelation': [('render_stage_submission_event_ids', 1, 'repeated', 'uint64'),
                       ('render_stage_wait_event_ids', 2, 'repeated', 'uint64')],
}
# gputrail's own message of samples, after schemas/perfetto_sampling.proto.
SAMPLES = {
    'Text': 'id:uint32 text:string',
    'Agent': 'id:uint32 name:string',
    'Kernel': 'id:uint32 name:string',
    'CodeObject': 'id:uint32 path:string',
    'Frame': 'function:uint32 file:uint32 line:uint32',
    'Address': 'id:uint32 code_object:uint32 offset:uint64 symbol:uint32 instruction:uint32 frames:*Frame missing:uint32',
    'Line': 'file:uint32 line:uint32 text:string',
    'Count': 'agent:uint32 kernel:uint32 address:uint32 outcomes:*uint64',
    'Totals': 'agent:uint32 kernel:uint32 method:uint32 dispatches:uint64 samples:uint64 dropped:uint64',
    'Configuration': 'agent:uint32 method:uint32 unit:uint32 interval:uint64',
    'Raw': 'times:*sint64 addresses:*uint32 agents:*uint32 kernels:*uint32 outcomes:*uint32 dispatches:*uint64 '
           'correlations:*uint64 externals:*uint64 exec_masks:*uint64 hardware:*uint64 workgroups:*uint32 '
           'waves_in_group:*uint32 wave_counts:*uint32 absent:*uint32',
    'PcSamples': 'pid:int32 process:string texts:*Text agents:*Agent kernels:*Kernel code_objects:*CodeObject '
                 'addresses:*Address counts:*Count totals:*Totals configurations:*Configuration invalid:uint64 '
                 'shown_one_of:uint64 raw:Raw lines:*Line',
}
EXTENSIONS = [('TrackEvent', 'gpu_correlation', 3000, 'optional', 'GpuCorrelation'),
              ('TrackEvent', 'gpu_api', 3001, 'optional', 'GpuApi'),
              ('InternedData', 'compute_kernels', 1000, 'repeated', 'InternedComputeKernel'),
              ('InternedData', 'compute_arg_names', 1001, 'repeated', 'InternedComputeArgName'),
              ('TracePacket', 'pc_samples', 1789, 'optional', 'gputrail.PcSamples')]


def declare_samples(pool, package):
    """Adds the messages of SAMPLES, whose fields are numbered from 1."""
    kinds = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name='gputrail_samples.proto', package=f'{package}.gputrail')
    for name, fields in SAMPLES.items():
        message = file.message_type.add(name=name)
        for number, field in enumerate(fields.split(), 1):
            field, kind = field.split(':')
            label = kinds.LABEL_REPEATED if kind.startswith('*') else kinds.LABEL_OPTIONAL
            kind = kind.lstrip('*')
            if kind in SAMPLES:
                message.field.add(name=field, number=number, label=label, type=kinds.TYPE_MESSAGE,
                                  type_name=f'.{package}.gputrail.{kind}')
            else:
                message.field.add(name=field, number=number, label=label, type=kinds.Type.Value(f'TYPE_{kind.upper()}'))
    pool.AddSerializedFile(file.SerializeToString())


def declare_extensions():
    """Adds the extensions to the bindings' pool of descriptors."""
    kinds = descriptor_pb2.FieldDescriptorProto
    trace = perfetto_trace_pb2.DESCRIPTOR
    declare_samples(trace.pool, trace.package)
    file = descriptor_pb2.FileDescriptorProto(name='gpu_extensions.proto', package=trace.package, dependency=[trace.name, 'gputrail_samples.proto'])
    file.enum_type.add(name='GpuApi').value.extend(
        descriptor_pb2.EnumValueDescriptorProto(name=name, number=number) for name, number in GPU_API.items())
    for name, fields in EXTENSION_MESSAGES.items():
        message = file.message_type.add(name=name)
        for field, number, label, kind in fields:
            message.field.add(name=field, number=number, label=kinds.Label.Value(f'LABEL_{label.upper()}'),
                              type=kinds.Type.Value(f'TYPE_{kind.upper()}'))
    for extended, field, number, label, kind in EXTENSIONS:
        kind_of_field = 'TYPE_ENUM' if kind == 'GpuApi' else 'TYPE_MESSAGE'
        file.extension.add(name=field, number=number, label=kinds.Label.Value(f'LABEL_{label.upper()}'),
                           type=kinds.Type.Value(kind_of_field), type_name=f'.{trace.package}.{kind}',
                           extendee=f'.{trace.package}.{extended}')
    trace.pool.AddSerializedFile(file.SerializeToString())


def packets(trace):
    """The bytes of each packet of a trace, and where it stands."""
    at = 0
    while at < len(trace):
        key, start = varint(trace, at)
        if key != PACKET_FIELD << 3 | 2:
            sys.exit(f'offset {at}: expected a packet, found the key {key}')
        length, start = varint(trace, start)
        if start + length > len(trace):
            sys.exit(f'offset {at}: a packet of {length} bytes reaches beyond the end')
        yield at, trace[start:start + length]
        at = start + length


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7f) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def unknown(message, path):
    """The paths of all fields of a message that the bindings do not know."""
    for field in UnknownFieldSet(message):
        yield f'{path}.{field.field_number}'
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        # Repeated fields, by what they are: the name of the attribute has changed between versions of protobuf.
        for part in [value] if hasattr(value, 'ListFields') else value:
            yield from unknown(part, f'{path}.{field.name}')


def fields(message):
    """The fields of a message that are there, extensions too, by name."""
    return {field.name: value for field, value in message.ListFields()}


class Sequence:
    """What a reader has to know of a packet sequence."""

    def __init__(self):
        self.now = None
        self.interned = collections.defaultdict(dict)
        self.track = None

    def take(self, packet):
        if packet.sequence_flags & 1:
            self.__init__()
        for clock in packet.clock_snapshot.clocks:
            if clock.is_incremental:
                self.now = clock.timestamp
        if packet.HasField('trace_packet_defaults'):
            self.track = packet.trace_packet_defaults.track_event_defaults.track_uuid
        for table, entries in fields(packet.interned_data).items():
            for entry in entries:
                self.interned[table][entry.iid] = entry

    def time(self, packet):
        if packet.HasField('timestamp_clock_id'):
            return packet.timestamp
        self.now += packet.timestamp
        return self.now


def host_event(tracks, sequence, time, event):
    """A TrackEvent, as tests/agreement.rs describes one."""
    of = fields(event)
    names = sequence.interned
    correlation = fields(of['gpu_correlation']) if 'gpu_correlation' in of else {}
    annotations, correlation_id = [], None
    for annotation in event.debug_annotations:
        (kind,) = set(fields(annotation)) - {'name_iid'}
        name = names['debug_annotation_names'][annotation.name_iid].name
        if name == 'correlation_id':
            correlation_id = annotation.uint_value
        else:
            annotations.append([name, kind, getattr(annotation, kind)])
    name = names['event_names'][event.name_iid].name if 'name_iid' in of else of.get('name')
    return {'time': time, 'type': event.type, 'name': name, 'track': tracks[sequence.track],
            'categories': [names['event_categories'][iid].name for iid in event.category_iids],
            'correlation': correlation_id, 'value': of.get('counter_value'), 'api': of.get('gpu_api'),
            'submitted': list(correlation.get('render_stage_submission_event_ids', [])),
            'waited': list(correlation.get('render_stage_wait_event_ids', [])), 'annotations': annotations}


def work(sequence, time, event):
    """A GpuRenderStageEvent, as tests/agreement.rs describes one."""
    of = fields(event)
    names = sequence.interned
    stages = names['gpu_specifications']
    context = names['graphics_contexts'][event.context]
    kernel = fields(names['compute_kernels'][of['kernel_iid']])
    size = lambda dimensions: [dimensions.x, dimensions.y, dimensions.z]
    launch = [size(of['launch'].grid_size), size(of['launch'].workgroup_size)] if 'launch' in of else None
    return {'start': time, 'event': event.event_id, 'duration': of.get('duration'), 'gpu': event.gpu_id,
            'context': [context.pid, context.api], 'submission': of.get('submission_id'),
            'queue': stages[event.hw_queue_iid].name, 'stage': stages[event.stage_iid].name,
            'category': stages[event.stage_iid].category, 'launch': launch, 'waits': list(event.event_wait_ids),
            'kernel': [kernel.get('name'), kernel.get('demangled_name'), kernel.get('arch')],
            'arguments': {argument.name: argument.uint_value for argument in kernel.get('args', [])},
            'details': [[detail.name, detail.value] for detail in event.extra_data]}


def counters(described, time, event):
    """A GpuCounterEvent, as tests/agreement.rs describes one; None for one that only describes its counters."""
    descriptor = event.counter_descriptor
    blocks = {counter: block.name for block in descriptor.blocks for counter in block.counter_ids}
    for spec in descriptor.specs:
        described[spec.counter_id] = (spec, blocks[spec.counter_id])
    if not event.counters:
        return None
    told = []
    for counter in event.counters:
        spec = described[counter.counter_id][0]
        kind = counter.WhichOneof('value')
        told.append([spec.name, kind, getattr(counter, kind)])
    (block,) = {described[counter.counter_id][1] for counter in event.counters}
    return {'time': time, 'gpu': event.gpu_id, 'block': block, 'counters': told}


def compare(records, expected):
    """What differs between what a trace says and what it has to say."""
    for index, (record, wanted) in enumerate(zip(records, expected)):
        for name in sorted(record.keys() | wanted.keys()):
            if record.get(name) != wanted.get(name):
                yield f'record {index}: {name} is {record.get(name)!r}, expected {wanted.get(name)!r}'
    if len(records) != len(expected):
        yield f'{len(records)} records, expected {len(expected)}'


def main():
    declare_extensions()
    with open(sys.argv[1], 'rb') as file:
        trace = file.read()
    kinds = collections.Counter()
    findings = []
    records = []
    tracks = {}
    described = {}
    sequences = collections.defaultdict(Sequence)
    for at, data in packets(trace):
        packet = perfetto_trace_pb2.TracePacket()
        try:
            packet.ParseFromString(data)
        except Exception as error:  # the bindings raise DecodeError, of one module or another
            findings.append(f'offset {at}: {error}')
            continue
        kinds[packet.WhichOneof('data') or 'interned data or defaults only'] += 1
        findings += [f'offset {at}: unknown field {path}' for path in unknown(packet, 'TracePacket')]
        if len(sys.argv) < 3:
            continue
        sequence = sequences[packet.trusted_packet_sequence_id]
        sequence.take(packet)
        descriptor = packet.track_descriptor
        if descriptor.HasField('thread') or descriptor.HasField('counter'):
            tracks[descriptor.uuid] = len(tracks)
        if packet.HasField('track_event'):
            records.append(host_event(tracks, sequence, sequence.time(packet), packet.track_event))
        elif packet.HasField('gpu_render_stage_event'):
            records.append(work(sequence, sequence.time(packet), packet.gpu_render_stage_event))
        elif packet.HasField('gpu_counter_event'):
            told = counters(described, sequence.time(packet), packet.gpu_counter_event)
            records += [told] if told else []
    if len(sys.argv) > 2:
        with open(sys.argv[2]) as file:
            findings += compare(records, json.load(file))
    print(json.dumps({'packets': sum(kinds.values()), 'kinds': kinds, 'findings': len(findings)}))
    for finding in findings[:FINDINGS_SHOWN]:
        print(finding, file=sys.stderr)
    sys.exit(1 if findings or not kinds else 0)


main()
