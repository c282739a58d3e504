//! What stands at the beginning of a trace: declarations that keep older versions of Perfetto quiet,
//! the machine, and the clocks.

use super::schema::clock_snapshot::Clock;
use super::schema::field_descriptor_proto::{Label, Type};
use super::schema::{
    BuiltinClock, ClockSnapshot, DescriptorProto, EnumDescriptorProto, EnumValueDescriptorProto,
    ExtensionDescriptor, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet, GpuApi,
};

/// The machine that a trace was taken on. What is not known is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Machine {
    /// Its name.
    pub host: String,
    /// Kernel name, as `uname -s` prints it.
    pub system: String,
    /// Kernel release.
    pub release: String,
    /// Kernel version.
    pub version: String,
    /// Instruction set.
    pub architecture: String,
    /// Processors.
    pub processors: u32,
}

impl Machine {
    /// This machine, as far as it tells.
    pub fn this() -> Machine {
        let kernel = |file: &str| {
            let text = std::fs::read_to_string(format!("/proc/sys/kernel/{file}"));
            text.unwrap_or_default().trim().to_owned()
        };
        Machine {
            host: kernel("hostname"),
            system: kernel("ostype"),
            release: kernel("osrelease"),
            version: kernel("version"),
            architecture: std::env::consts::ARCH.to_owned(),
            processors: std::thread::available_parallelism().map_or(0, |count| count.get() as u32),
        }
    }
}

/// The system clocks, read at one instant, ns. 0 is not known.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct SystemClocks {
    /// CLOCK_BOOTTIME, the clock of the trace.
    pub boottime: u64,
    /// CLOCK_MONOTONIC.
    pub monotonic: u64,
    /// CLOCK_MONOTONIC_RAW.
    pub monotonic_raw: u64,
    /// CLOCK_REALTIME.
    pub realtime: u64,
}

impl SystemClocks {
    pub(super) fn snapshot(&self) -> ClockSnapshot {
        let clocks = [
            (BuiltinClock::Boottime, self.boottime),
            (BuiltinClock::Monotonic, self.monotonic),
            (BuiltinClock::MonotonicRaw, self.monotonic_raw),
            (BuiltinClock::Realtime, self.realtime),
        ];
        ClockSnapshot {
            clocks: clocks
                .into_iter()
                .filter(|(_, time)| *time != 0)
                .map(|(clock, time)| Clock {
                    clock_id: Some(clock as u32),
                    timestamp: Some(time),
                    ..Clock::default()
                })
                .collect(),
            primary_trace_clock: Some(BuiltinClock::Boottime as i32),
        }
    }
}

/// Declares the extensions of TrackEvent that tie calls to device work. Versions that do not know them
/// would count an error for each; those that do would refuse the trace if a type differed from
/// theirs.
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
