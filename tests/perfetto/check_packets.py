#!/usr/bin/env python3
"""Reads a trace with the PyPI bindings of Perfetto's messages, an implementation that shares nothing with ours.

    check_packets.py TRACE

Every packet has to parse into known fields only, at every depth, extensions included. Prints how many packets there were of
each kind as a line of JSON; exit status 1 and the findings on standard error when something does not hold."""

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
EXTENSIONS = [('TrackEvent', 'gpu_correlation', 3000, 'optional', 'GpuCorrelation'),
              ('TrackEvent', 'gpu_api', 3001, 'optional', 'GpuApi'),
              ('InternedData', 'compute_kernels', 1000, 'repeated', 'InternedComputeKernel'),
              ('InternedData', 'compute_arg_names', 1001, 'repeated', 'InternedComputeArgName')]


def declare_extensions():
    """Adds the extensions to the bindings' pool of descriptors."""
    kinds = descriptor_pb2.FieldDescriptorProto
    trace = perfetto_trace_pb2.DESCRIPTOR
    file = descriptor_pb2.FileDescriptorProto(name='gpu_extensions.proto', package=trace.package, dependency=[trace.name])
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


def main():
    declare_extensions()
    with open(sys.argv[1], 'rb') as file:
        trace = file.read()
    kinds = collections.Counter()
    findings = []
    for at, data in packets(trace):
        packet = perfetto_trace_pb2.TracePacket()
        try:
            packet.ParseFromString(data)
        except Exception as error:  # the bindings raise DecodeError, of one module or another
            findings.append(f'offset {at}: {error}')
            continue
        kinds[packet.WhichOneof('data') or 'interned data or defaults only'] += 1
        findings += [f'offset {at}: unknown field {path}' for path in unknown(packet, 'TracePacket')]
    print(json.dumps({'packets': sum(kinds.values()), 'kinds': kinds, 'findings': len(findings)}))
    for finding in findings[:FINDINGS_SHOWN]:
        print(finding, file=sys.stderr)
    sys.exit(1 if findings or not kinds else 0)


main()
