//! Files made of messages that are written here, field by field.

use std::io::Write;

use flate2::write::GzEncoder;
use proptest::prelude::*;
use tempfile::NamedTempFile;

use crate::import::log::StreamLog;
use crate::import::{InputFormat, Inputs, Report};
use gputrail_record::Nanos;
use gputrail_trace::model::{
    Agent, AgentIndex, Consumer, Producer, SystemClocks, TraceHeader, Value, Work,
};

/// A message.
#[derive(Clone, Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn number(mut self, field: u64, value: u64) -> Message {
        self.varint(field << 3);
        self.varint(value);
        self
    }

    fn bytes(mut self, field: u64, bytes: impl AsRef<[u8]>) -> Message {
        self.varint(field << 3 | 2);
        self.varint(bytes.as_ref().len() as u64);
        self.0.extend_from_slice(bytes.as_ref());
        self
    }

    fn message(self, field: u64, message: Message) -> Message {
        self.bytes(field, message.0)
    }
}

/// A statistic with an unsigned number, and one with a text that the plane names.
fn counted(name: u64, value: u64) -> Message {
    Message::default().number(1, name).number(3, value)
}

fn named(name: u64, text: u64) -> Message {
    Message::default().number(1, name).number(7, text)
}

/// An event of a description at an offset, ps.
fn event(description: u64, offset: u64, duration: u64, statistics: &[Message]) -> Message {
    let mut event = Message::default().number(1, description).number(2, offset);
    if duration != 0 {
        event = event.number(3, duration);
    }
    for statistic in statistics {
        event = event.message(4, statistic.clone());
    }
    event
}

fn line(id: u64, name: &str, start: u64, events: &[Message]) -> Message {
    let mut line = Message::default()
        .number(1, id)
        .bytes(2, name)
        .number(3, start);
    for event in events {
        line = line.message(4, event.clone());
    }
    line
}

/// An entry of a table of names.
fn entry(id: u64, name: &str) -> Message {
    let described = Message::default().number(1, id).bytes(2, name);
    Message::default().number(1, id).message(2, described)
}

/// A plane with the names of its events and of its statistics.
fn plane(name: &str, lines: &[Message], events: &[Message], statistics: &[&str]) -> Message {
    let mut plane = Message::default().number(1, 1).bytes(2, name);
    for line in lines {
        plane = plane.message(3, line.clone());
    }
    for event in events {
        plane = plane.message(4, event.clone());
    }
    for (id, name) in (1..).zip(statistics) {
        plane = plane.message(5, entry(id, name));
    }
    plane
}

fn space(planes: &[Message]) -> Vec<u8> {
    let mut space = Message::default();
    for plane in planes {
        space = space.message(1, plane.clone());
    }
    space.bytes(4, "node7").0
}

/// When recordings began.
const START: u64 = 1_700_000_000_000_000_000;

fn environment() -> Message {
    let plane = plane("Task Environment", &[], &[], &["profile_start_time"]);
    plane.message(6, counted(1, START))
}

/// A GPU with a stream and steps, the host that fed it, and the program.
fn of_gpu() -> Vec<u8> {
    let statistics = [
        "correlation_id",
        "kernel_details",
        "regs:32 static_shared:16 dynamic_shared:0 grid:16,2,1 block:256,1,1 occ_pct:50",
        "memcpy_details",
        "kind_src:pinned kind_dst:device size:4096 dest:0 async:1",
        "hlo_op",
        "loop_add_fusion",
        "program_id",
        "core_count",
        "device_vendor",
    ];
    let stream = line(
        7,
        "Stream #7(Compute,MemcpyH2D)",
        500,
        &[
            event(
                1,
                1_000_000,
                2_500_000,
                &[counted(1, 11), named(2, 3), named(6, 7), counted(8, 42)],
            ),
            event(2, 9_000_000, 1_000_000, &[counted(1, 12), named(4, 5)]),
        ],
    );
    let steps = line(0xdead_beef, "Steps", 500, &[event(3, 0, 20_000_000, &[])]);
    let device = plane(
        "/device:GPU:3",
        &[stream, steps],
        &[
            entry(1, "loop_add_fusion.kd"),
            entry(2, "MemcpyH2D"),
            entry(3, "5"),
        ],
        &statistics,
    )
    .message(6, counted(9, 304))
    .message(6, Message::default().number(1, 10).bytes(5, "AMD"));
    let host = plane(
        "/host:CPU",
        &[
            line(
                77,
                "Host Threads/77",
                100,
                &[
                    event(1, 1_000_000, 100_000, &[counted(1, 11)]),
                    event(2, 0, 0, &[]),
                ],
            ),
            line(
                1 << 40,
                "python",
                100,
                &[event(3, 5_000_000, 4_000_000, &[])],
            ),
            line(
                1 << 41,
                "python",
                100,
                &[event(3, 6_000_000, 1_000_500, &[])],
            ),
        ],
        &[
            entry(1, "hipModuleLaunchKernel"),
            entry(2, "StartRegion"),
            entry(3, "$train.py:7 step"),
        ],
        &["correlation_id"],
    );
    let origin = Message::default()
        .bytes(2, "jit(step)/add")
        .bytes(3, "train.py")
        .number(4, 12);
    let instruction = Message::default()
        .bytes(1, "loop_add_fusion")
        .bytes(2, "fusion")
        .message(7, origin);
    let computation = Message::default().bytes(1, "main").message(2, instruction);
    let module = Message::default()
        .bytes(1, "jit_step")
        .message(3, computation);
    let hlo = Message::default().message(1, module);
    let program = Message::default()
        .bytes(2, "jit_step(42)")
        .message(5, Message::default().number(1, 1).bytes(6, hlo.0));
    let program = Message::default().number(1, 42).message(2, program);
    let programs = plane("/host:metadata", &[], &[program], &["hlo_proto"]);
    // The start of the recording stands behind the lines that count from it.
    space(&[programs, device, host, environment()])
}

fn inputs(bytes: &[u8]) -> (NamedTempFile, Inputs) {
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(bytes).unwrap();
    let inputs = Inputs::open(&[file.path()]).unwrap();
    assert_eq!(inputs.recordings()[0].format(), InputFormat::XPlane);
    (file, inputs)
}

fn read(bytes: &[u8]) -> (StreamLog, Report) {
    let (_file, inputs) = inputs(bytes);
    let mut log = StreamLog::default();
    let report = inputs.produce(&mut log).unwrap();
    (log, report)
}

/// A time of the log, from the start of the recording.
fn at(from: u64, to: u64) -> String {
    format!("{}..{}", START + from, START + to)
}

#[test]
fn streams_are_work_that_calls_submitted_and_all_other_lines_are_tracks() {
    let (log, report) = read(&of_gpu());
    assert!(report.is_sound(), "{:?}", report.findings);
    assert!(
        report.unrepresented.is_empty(),
        "{:?}",
        report.unrepresented
    );
    assert_eq!(log.of("process "), ["1 process on node7"]);
    assert_eq!(log.queues, ["stream 7"]);
    assert_eq!(
        log.of("work "),
        [
            format!(
                "stream 7: loop_add_fusion {} hlo_op=loop_add_fusion program_id=42 occ_pct=Int(50) hlo_opcode=fusion hlo_scope=jit(step)/add source=train.py:12",
                at(1500, 4000)
            ),
            format!(
                "stream 7: copy host to device {} kind_src=pinned kind_dst=device dest=Int(0) async=Int(1)",
                at(9500, 10500)
            ),
        ]
    );
    assert_eq!(
        log.of("call "),
        [format!(
            "hipModuleLaunchKernel {} submitted [1]",
            at(1100, 1200)
        )]
    );
    assert_eq!(
        log.of("slice GPU 3 Steps: "),
        [format!("5 {}", at(500, 20_500))]
    );
    // Two threads of one name.
    assert_eq!(
        log.of("slice python: "),
        [format!("$train.py:7 step {}", at(5100, 9100))]
    );
    assert_eq!(
        log.of("slice python (2): "),
        [format!("$train.py:7 step {}", at(6100, 7100))]
    );
    assert_eq!(log.of("instant "), [format!("StartRegion {}", START + 100)]);
    let remarks: Vec<_> = report
        .remarks
        .iter()
        .map(|one| (one.count, &*one.reason))
        .collect();
    assert!(
        remarks.contains(&(1, "times finer than 1 ns, rounded")),
        "{remarks:?}"
    );
    assert!(
        remarks
            .iter()
            .any(|(count, reason)| *count == 1 && reason.starts_with("programs in HLO"))
    );
}

/// Details that the lines of a [`StreamLog`] leave out.
#[derive(Default)]
struct Details {
    agents: Vec<Agent>,
    clocks: SystemClocks,
    host: String,
    lines: Vec<String>,
}

impl Consumer for Details {
    gputrail_trace::leave_out!(
        clocks attributes process track queue counters call slice end instant value counter_values samples stack
        stack_samples loss note
    );

    fn begin(&mut self, header: &TraceHeader) -> std::io::Result<()> {
        self.clocks = header.clocks;
        self.host = header.machine.host.clone();
        Ok(())
    }

    fn agents(&mut self, _: AgentIndex, agents: &[Agent]) -> std::io::Result<()> {
        self.agents.extend_from_slice(agents);
        Ok(())
    }

    fn work(&mut self, work: &Work<'_>) -> std::io::Result<()> {
        let (launch, resources) = (work.launch, work.resources);
        self.lines.push(format!(
            "{} {:?} registers {} local {} bytes {} {:?}",
            work.stage.name,
            launch.map(|launch| (launch.grid, launch.workgroup)),
            resources.registers,
            resources.static_local,
            work.bytes,
            work.arguments.iter().find_map(|one| match one.value {
                Value::Text(text) => Some(text),
                _ => None,
            })
        ));
        Ok(())
    }
}

#[test]
fn devices_launches_and_the_time_of_day_are_there() {
    let (_file, inputs) = inputs(&of_gpu());
    let mut details = Details::default();
    inputs.produce(&mut details).unwrap();
    let agent = &details.agents[0];
    assert_eq!((&*agent.title, &*agent.vendor), ("GPU 3", "AMD"));
    assert_eq!(details.host, "node7");
    assert_eq!(details.clocks.realtime, Nanos(START));
    assert_eq!(
        details.lines,
        [
            "loop_add_fusion Some(([4096, 2, 1], [256, 1, 1])) registers 32 local 16 bytes 0 Some(\"loop_add_fusion\")",
            "copy host to device None registers 0 local 0 bytes 4096 Some(\"pinned\")",
        ]
    );
}

#[test]
fn operations_of_a_device_without_streams_are_work_and_those_around_them_are_slices() {
    let described = |id: u64, short: &str| {
        let full = format!("%{short} = bf16[8] fusion(%a)");
        let described = Message::default()
            .bytes(2, full)
            .bytes(4, short)
            .message(5, Message::default().number(1, 1).bytes(5, "convolution"));
        Message::default().number(1, id).message(2, described)
    };
    let operations = line(
        2,
        "XLA Ops",
        START,
        &[
            event(1, 0, 10_000_000, &[]),
            event(2, 0, 4_000_000, &[]),
            event(3, 4_000_000, 6_000_000, &[]),
            event(2, 10_000_000, 1_000_000, &[]),
        ],
    );
    let modules = line(3, "XLA Modules", START, &[event(4, 0, 11_000_000, &[])]);
    let device = plane(
        "/device:TPU:0",
        &[modules, operations],
        &[
            described(1, "while.1"),
            described(2, "fusion.2"),
            described(3, "dot.3"),
            entry(4, "jit_step(42)"),
        ],
        &["hlo_category"],
    );
    let (log, report) = read(&space(&[device]));
    assert!(report.is_sound(), "{:?}", report.findings);
    let more = "hlo_category=convolution";
    assert_eq!(
        log.of("work "),
        [
            format!("XLA Ops: fusion.2 {} {more}", at(0, 4000)),
            format!("XLA Ops: dot.3 {} {more}", at(4000, 10_000)),
            format!("XLA Ops: fusion.2 {} {more}", at(10_000, 11_000)),
        ]
    );
    assert_eq!(
        log.of("slice TPU 0 XLA Ops: "),
        [format!("while.1 {}", at(0, 10_000))]
    );
    assert_eq!(
        log.of("slice TPU 0 XLA Modules: "),
        [format!("jit_step(42) {}", at(0, 11_000))]
    );
}

#[test]
fn what_has_no_time_or_no_place_is_counted() {
    let sums = Message::default().number(1, 1).number(5, 3);
    let early = event(1, 0, 1, &[]);
    let bytes = Message::default().number(1, 1).bytes(6, [1, 2]);
    let host = plane(
        "/host:CPU",
        &[
            line(1, "a", START, &[sums, event(9, 0, 1_000_000, &[bytes])]),
            line(2, "b", (-2_000_000_000_000_i64) as u64, &[early]),
        ],
        &[],
        &["blob"],
    );
    let (log, report) = read(&space(&[host]));
    assert!(report.is_sound(), "{:?}", report.findings);
    assert!(log.lines.iter().any(|line| line.contains("event 9")));
    let mut lost: Vec<_> = report
        .unrepresented
        .iter()
        .map(|one| (one.count, &*one.reason))
        .collect();
    lost.sort_unstable();
    assert_eq!(
        lost,
        [
            (1, "events before 1970"),
            (
                1,
                "events that stand for several occurrences, whose times are not told"
            ),
            (1, "statistics whose value is bytes"),
        ]
    );
}

#[test]
fn a_file_that_was_cut_is_read_as_far_as_it_goes_also_when_it_is_packed() {
    let whole = of_gpu();
    let (sound, _) = read(&whole);
    for length in [whole.len() - 3, whole.len() - 40, whole.len() / 2] {
        let (log, report) = read(&whole[..length]);
        assert_eq!(report.findings.len(), 1, "{:?}", report.findings);
        assert!(report.findings[0].found.contains("are there"));
        assert!(log.lines.len() <= sound.lines.len());
    }
    let mut gzip = GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&whole).unwrap();
    let packed = gzip.finish().unwrap();
    let (log, report) = read(&packed);
    assert!(report.is_sound());
    assert_eq!(log.lines, sound.lines);
    // Without the end of the archive, its content is there.
    let (log, report) = read(&packed[..packed.len() - 4]);
    assert!(report.findings[0].found.contains("cannot be read"));
    assert_eq!(log.lines, sound.lines);
}

#[test]
fn damage_in_an_event_costs_that_event() {
    let broken = Message::default().number(1, 1).bytes(4, "").0;
    let broken = Message([&broken[..], &[0xff]].concat());
    let host = plane(
        "/host:CPU",
        &[line(
            1,
            "a",
            START,
            &[
                event(1, 1_000_000, 1_000_000, &[]),
                broken,
                event(1, 3_000_000, 1_000_000, &[]),
            ],
        )],
        &[entry(1, "e")],
        &[],
    );
    let bytes = space(&[host]);
    let (log, report) = read(&bytes);
    assert_eq!(log.of("slice a: ").len(), 2);
    let finding = &report.findings[0];
    assert_eq!(finding.found, "a truncated field key");
    let offset = finding.offset.unwrap() as usize;
    assert_eq!(&bytes[offset..offset + 5], [8, 1, 34, 0, 0xff]);
}

#[test]
fn what_few_bytes_name_does_not_make_endless_events() {
    let events: Vec<_> = (0..1000)
        .map(|at| event(1, at * 2_000_000, 1_000_000, &[]))
        .collect();
    let described = Message::default().bytes(2, "op").message(
        5,
        Message::default()
            .number(1, 1)
            .bytes(5, "x".repeat(100_000)),
    );
    let described = Message::default().number(1, 1).message(2, described);
    let host = plane(
        "/host:CPU",
        &[line(1, "a", START, &events)],
        &[described],
        &["long"],
    );
    let bytes = space(&[host]);
    let (log, report) = read(&bytes);
    assert_eq!(log.of("slice a: ").len(), 1000);
    let most = (bytes.len() as u64 * 256 + (1 << 16)) / 100_000;
    let left_out = report.unrepresented[0].count;
    assert!(report.unrepresented[0].reason.contains("beyond 256 bytes"));
    assert!((1000 - most..1010 - most).contains(&left_out), "{left_out}");
    let cut = report
        .remarks
        .iter()
        .find(|one| one.reason.contains("more than 4 KiB"));
    assert_eq!(cut.unwrap().count, 1000 - left_out - 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// A file with any bytes changed is read to its end.
    #[test]
    fn any_change_of_a_file_is_read_to_its_end(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8)) {
        let mut bytes = of_gpu();
        for (place, byte) in changes {
            // The first name decides on the format.
            let place = 40 + place.index(bytes.len() - 40);
            bytes[place] = byte;
        }
        let (_, report) = read(&bytes);
        for finding in &report.findings {
            prop_assert!(finding.offset.is_none_or(|at| at <= bytes.len() as u64));
        }
    }
}
