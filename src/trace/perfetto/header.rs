//! The beginning of a trace: its clocks, and declarations that prevent errors in older versions of Perfetto.

use super::schema::clock_snapshot::Clock;
use super::schema::field_descriptor_proto::{Label, Type};
use super::schema::{
    BuiltinClock, ClockSnapshot, DescriptorProto, EnumDescriptorProto, EnumValueDescriptorProto,
    ExtensionDescriptor, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet, GpuApi,
};
use crate::model::SystemClocks;

/// A snapshot of the system clocks.
pub(super) fn snapshot(clocks: &SystemClocks) -> ClockSnapshot {
    let readings = [
        (BuiltinClock::Boottime, clocks.boottime),
        (BuiltinClock::Monotonic, clocks.monotonic),
        (BuiltinClock::MonotonicRaw, clocks.monotonic_raw),
        (BuiltinClock::Realtime, clocks.realtime),
    ];
    ClockSnapshot {
        clocks: readings
            .into_iter()
            .filter(|(_, time)| time.is_some())
            .map(|(clock, time)| Clock {
                clock_id: Some(clock as u32),
                timestamp: Some(time.0),
                ..Clock::default()
            })
            .collect(),
        primary_trace_clock: Some(BuiltinClock::Boottime as i32),
    }
}

/// Declares the extensions of TrackEvent that link calls to device work. Versions that do not know them would count an
/// error for each use; versions that know them refuse a trace whose declared types differ from theirs.
pub(super) fn extensions() -> ExtensionDescriptor {
    let field = |name: &str, number: i32, label: Label, kind: Type| FieldDescriptorProto {
        name: Some(name.to_owned()),
        number: Some(number),
        label: Some(label as i32),
        r#type: Some(kind as i32),
        ..FieldDescriptorProto::default()
    };
    let extension = |name: &str, number: i32, kind: Type, type_name: &str| FieldDescriptorProto {
        extendee: Some(".perfetto.protos.TrackEvent".to_owned()),
        type_name: Some(format!(".perfetto.protos.{type_name}")),
        ..field(name, number, Label::Optional, kind)
    };
    let apis = [
        GpuApi::Undefined,
        GpuApi::OpenGl,
        GpuApi::Vulkan,
        GpuApi::OpenCl,
        GpuApi::Cuda,
        GpuApi::Hip,
    ];
    ExtensionDescriptor {
        extension_set: Some(FileDescriptorSet {
            file: vec![FileDescriptorProto {
                name: Some("protos/perfetto/trace/gpu/gpu_track_event.proto".to_owned()),
                package: Some("perfetto.protos".to_owned()),
                message_type: vec![
                    DescriptorProto {
                        name: Some("GpuCorrelation".to_owned()),
                        field: vec![
                            field(
                                "render_stage_submission_event_ids",
                                1,
                                Label::Repeated,
                                Type::Uint64,
                            ),
                            field(
                                "render_stage_wait_event_ids",
                                2,
                                Label::Repeated,
                                Type::Uint64,
                            ),
                        ],
                        ..DescriptorProto::default()
                    },
                    DescriptorProto {
                        name: Some("GpuTrackEvent".to_owned()),
                        extension: vec![
                            extension("gpu_correlation", 3000, Type::Message, "GpuCorrelation"),
                            extension("gpu_api", 3001, Type::Enum, "GpuApi"),
                        ],
                        ..DescriptorProto::default()
                    },
                ],
                enum_type: vec![EnumDescriptorProto {
                    name: Some("GpuApi".to_owned()),
                    value: apis
                        .into_iter()
                        .map(|api| EnumValueDescriptorProto {
                            name: Some(api.as_str_name().to_owned()),
                            number: Some(api as i32),
                        })
                        .collect(),
                }],
            }],
        }),
    }
}
