//! Traces of other programs, with fields that the writer does not use.

use super::round_trip::read_back;
use gputrail_trace::perfetto::wire::Encoder;

/// The value of a field.
#[derive(Copy, Clone)]
enum Is<'a> {
    Number(u64),
    Text(&'a str),
    Double(f64),
    Message(&'a [(u32, Is<'a>)]),
}

use Is::{Double, Message, Number, Text};

fn write(encoder: &mut Encoder, fields: &[(u32, Is<'_>)]) {
    for (number, value) in fields {
        match value {
            Number(value) => encoder.uint(*number, *value),
            Text(text) => encoder.raw(*number, text.as_bytes()),
            Double(value) => encoder.double(*number, *value),
            Message(fields) => {
                let message = encoder.open(*number);
                write(encoder, fields);
                encoder.close(message);
            }
        }
    }
}

/// A trace with packets of these fields, all on sequence 1 and with times from 1000 on, 100 apart.
fn trace(packets: &[&[(u32, Is<'_>)]]) -> Vec<u8> {
    let mut encoder = Encoder::default();
    for (number, fields) in packets.iter().enumerate() {
        let time = Number(1000 + 100 * number as u64);
        let head = [(8, time), (10, Number(1))];
        let packet = encoder.open(1);
        write(&mut encoder, &head);
        write(&mut encoder, fields);
        encoder.close(packet);
    }
    encoder.bytes().to_vec()
}

/// Fields of a packet.
const PROCESS_TREE: u32 = 2;
const CLOCKS: u32 = 6;
const EVENT: u32 = 11;
const INTERNED: u32 = 12;
const FLAGS: u32 = 13;
const STATS: u32 = 35;
const GPU_COUNTERS: u32 = 52;
const STAGE: u32 = 53;
const TRACK: u32 = 60;

/// Describes tracks: a process, a thread of it, a track of slices and a counter.
fn tracks() -> [Vec<(u32, Is<'static>)>; 5] {
    let clock = |id, time| {
        (
            1,
            Message(Box::leak(Box::new([(1, Number(id)), (2, Number(time))]))),
        )
    };
    let clocks = Message(Box::leak(Box::new([clock(6, 1000), clock(3, 500)])));
    let track = |fields: &'static [(u32, Is<'static>)]| vec![(TRACK, Message(fields))];
    [
        vec![(CLOCKS, clocks), (FLAGS, Number(1))],
        track(&[
            (1, Number(1)),
            (3, Message(&[(1, Number(42)), (6, Text("app"))])),
        ]),
        track(&[
            (1, Number(2)),
            (
                4,
                Message(&[(1, Number(42)), (2, Number(43)), (5, Text("main"))]),
            ),
        ]),
        track(&[(1, Number(3)), (2, Text("slices"))]),
        track(&[(1, Number(4)), (2, Text("counter")), (8, Message(&[]))]),
    ]
}

#[track_caller]
fn is_read_as(packets: &[&[(u32, Is<'_>)]], expected: &[&str], left_out: &[(u64, &str)]) {
    let described = tracks();
    let all = described.iter().map(|fields| &fields[..]);
    let all: Vec<_> = all.chain(packets.iter().copied()).collect();
    let (mut lines, replayed) = read_back(&trace(&all));
    let reasons = replayed.left_out.iter();
    let reasons: Vec<_> = reasons.map(|one| (one.count, &*one.reason)).collect();
    assert_eq!(reasons, left_out);
    let before = read_back(&trace(&all[..described.len()])).0;
    lines.retain(|line| !before.contains(line));
    assert_eq!(lines, expected);
}

const BEGIN: (u32, Is<'static>) = (9, Number(1));
const END: (u32, Is<'static>) = (9, Number(2));
const INSTANT: (u32, Is<'static>) = (9, Number(3));
const VALUE: (u32, Is<'static>) = (9, Number(4));
const ON_SLICES: (u32, Is<'static>) = (11, Number(3));
const ON_COUNTER: (u32, Is<'static>) = (11, Number(4));

#[test]
fn annotations_have_values_of_all_types() {
    let values = [
        (4, Message(&[(10, Text("unsigned")), (3, Number(u64::MAX))])),
        (
            4,
            Message(&[(10, Text("signed")), (4, Number(-7_i64 as u64))]),
        ),
        (4, Message(&[(10, Text("flag")), (2, Number(1))])),
        (4, Message(&[(10, Text("fraction")), (5, Double(0.5))])),
        (4, Message(&[(10, Text("pointer")), (7, Number(0xbeef))])),
        (4, Message(&[(10, Text("nothing"))])),
        (4, Message(&[(1, Number(5)), (17, Number(6))])),
        (
            4,
            Message(&[
                (10, Text("table")),
                (11, Message(&[(10, Text("a\"b")), (3, Number(1))])),
                (
                    11,
                    Message(&[
                        (10, Text("list")),
                        (12, Message(&[(6, Text("x"))])),
                        (12, Message(&[(4, Number(2))])),
                    ]),
                ),
                (11, Message(&[(10, Text("none"))])),
            ]),
        ),
    ];
    let mut event = vec![BEGIN, ON_SLICES, (23, Text("with values"))];
    event.extend(values);
    let interned = (
        INTERNED,
        Message(&[
            (3, Message(&[(1, Number(5)), (2, Text("named once"))])),
            (29, Message(&[(1, Number(6)), (2, Text("said once"))])),
        ]),
    );
    is_read_as(
        &[
            &[interned, (EVENT, Message(&event))],
            &[(EVENT, Message(&[END, ON_SLICES]))],
        ],
        &[
            r#"slice trace/Slices/slices with values  1500 0 unsigned=Uint(18446744073709551615) signed=Int(-7) flag=Bool(true) fraction=Double(0.5) pointer=Pointer(48879) named once=Text("said once") table=Json("{\"a\\\"b\":1,\"list\":[\"x\",2],\"none\":null}") [] end Some(Nanos(1600))"#,
        ],
        &[(
            1,
            "argument that is a message of a type of its own, or longer than 16 MiB",
        )],
    );
}

#[test]
fn an_event_may_have_several_categories() {
    let event = [
        INSTANT,
        ON_SLICES,
        (23, Text("now")),
        (22, Text("a")),
        (22, Text("b")),
    ];
    is_read_as(
        &[&[(EVENT, Message(&event))]],
        &["instant trace/Slices/slices now a,b 1500 []"],
        &[],
    );
    let interned = (
        INTERNED,
        Message(&[
            (1, Message(&[(1, Number(1)), (2, Text("c"))])),
            (1, Message(&[(1, Number(2)), (2, Text("d"))])),
        ]),
    );
    let event = [INSTANT, ON_SLICES, (23, Text("now")), (3, Text("\x01\x02"))];
    is_read_as(
        &[&[interned, (EVENT, Message(&event))]],
        &["instant trace/Slices/slices now c,d 1500 []"],
        &[],
    );
}

#[test]
fn events_on_tracks_of_another_kind_are_counted() {
    is_read_as(
        &[
            &[(EVENT, Message(&[VALUE, ON_SLICES, (30, Number(7))]))],
            &[(EVENT, Message(&[BEGIN, ON_COUNTER, (23, Text("a slice"))]))],
            &[(EVENT, Message(&[VALUE, ON_COUNTER, (30, Number(8))]))],
            &[(EVENT, Message(&[VALUE, ON_COUNTER, (44, Double(0.25))]))],
        ],
        &[
            "value trace/Counter(Unspecified)/counter 1700 Int(8)",
            "value trace/Counter(Unspecified)/counter 1800 Double(0.25)",
        ],
        &[
            (1, "value on a track that is no counter"),
            (1, "slice or instant on the track of a counter"),
        ],
    );
}

#[test]
fn counters_have_units_factors_and_differences() {
    let counter = |id, properties: &'static [(u32, Is<'static>)]| {
        let fields = [(1, Number(id)), (2, Text("c")), (8, Message(properties))];
        let fields: &'static [_] = Box::leak(Box::new(fields));
        [(TRACK, Message(fields))]
    };
    let value = |id, value| {
        let fields: &'static [_] = Box::leak(Box::new([VALUE, (11, Number(id)), value]));
        [(EVENT, Message(fields))]
    };
    is_read_as(
        &[
            &counter(5, &[(3, Number(1))]),
            &counter(6, &[(3, Number(2))]),
            &counter(7, &[(3, Number(3)), (4, Number(1024)), (5, Number(1))]),
            &counter(8, &[(6, Text("%"))]),
            &counter(9, &[(6, Text("B/s")), (4, Number(2)), (5, Number(1))]),
            &value(5, (30, Number(1))),
            &value(6, (30, Number(2))),
            &value(7, (30, Number(3))),
            &value(7, (30, Number(4))),
            &value(8, (44, Double(0.5))),
            &value(9, (44, Double(0.25))),
            &value(9, (44, Double(0.5))),
        ],
        &[
            "track trace/Counter(Bytes)/c None",
            "track trace/Counter(BytesPerSecond)/c None",
            "track trace/Counter(Count)/c None",
            "track trace/Counter(Nanoseconds)/c None",
            "track trace/Counter(Percent)/c None",
            "value trace/Counter(Bytes)/c 2200 Int(3072)",
            "value trace/Counter(Bytes)/c 2300 Int(7168)",
            "value trace/Counter(BytesPerSecond)/c 2500 Double(0.5)",
            "value trace/Counter(BytesPerSecond)/c 2600 Double(1.5)",
            "value trace/Counter(Count)/c 2100 Int(2)",
            "value trace/Counter(Nanoseconds)/c 2000 Int(1)",
            "value trace/Counter(Percent)/c 2400 Double(0.5)",
        ],
        &[],
    );
}

#[test]
fn events_of_other_clients_have_a_correlation_id_and_places() {
    let interned = (
        INTERNED,
        Message(&[(
            4,
            Message(&[(1, Number(1)), (2, Text("main.cc")), (4, Number(17))]),
        )]),
    );
    let event = [
        BEGIN,
        (11, Number(2)),
        (23, Text("call")),
        (52, Number(77)),
        (34, Number(1)),
        (6, Message(&[])),
    ];
    is_read_as(
        &[
            &[interned, (EVENT, Message(&event))],
            &[(EVENT, Message(&[END, (11, Number(2))]))],
        ],
        &[
            r#"call 42 43 call Domain(0) Some("") 1500 77 0 None [] [] [] [] 42/thread 42 43/main end Some(Nanos(1600))"#,
        ],
        &[],
    );
}

#[test]
fn work_has_its_own_name_category_and_properties() {
    let interned = (
        INTERNED,
        Message(&[
            (2, Message(&[(1, Number(9)), (2, Text("interned name"))])),
            (29, Message(&[(1, Number(4)), (2, Text("said once"))])),
            (1001, Message(&[(1, Number(3)), (2, Text("named once"))])),
            (24, Message(&[(1, Number(1)), (2, Text("queue 7"))])),
            (
                24,
                Message(&[(1, Number(2)), (2, Text("stage")), (4, Number(0))]),
            ),
        ]),
    );
    let stage = |more: &[(u32, Is<'static>)]| {
        let mut fields = vec![
            (2, Number(50)),
            (11, Number(1)),
            (13, Number(1)),
            (14, Number(2)),
        ];
        fields.extend(more);
        fields
    };
    let launch = (
        21,
        Message(&[
            (1, Message(&[(1, Number(10)), (2, Number(2))])),
            (2, Message(&[(1, Number(64))])),
            (
                3,
                Message(&[(2, Text("registers_per_thread")), (3, Number(32))]),
            ),
            (3, Message(&[(2, Text("share")), (5, Double(0.5))])),
            (3, Message(&[(2, Text("policy")), (6, Text("fair"))])),
            (3, Message(&[(1, Number(3)), (7, Number(4))])),
        ]),
    );
    let named = stage(&[(1, Number(1)), (17, Text("own name")), launch]);
    let interned_name = stage(&[(1, Number(2)), (20, Number(9)), (18, Number(1))]);
    let barrier = stage(&[(1, Number(3)), (17, Text("Barrier"))]);
    let other = stage(&[(1, Number(4)), (17, Text("something"))]);
    let fill = stage(&[(1, Number(5)), (17, Text("Memset"))]);
    is_read_as(
        &[
            &[interned, (STAGE, Message(&named))],
            &[(STAGE, Message(&interned_name))],
            &[(STAGE, Message(&barrier))],
            &[(STAGE, Message(&other))],
            &[(STAGE, Message(&fill))],
        ],
        &[
            r#"Process { pid: ProcessId(0), name: "", rank: "", command: [], order: None }"#,
            r#"agents AgentIndex(0) [Agent { title: "GPU 0", name: "", vendor: "", model: "", architecture: "", pci_address: "", attributes: [] }, Agent { title: "GPU 1", name: "", vendor: "", model: "", architecture: "", pci_address: "", attributes: [] }]"#,
            r#"queue 0 AgentIndex(1) queue 7 Domain(0) false"#,
            r#"work 0 0 0 Some(EventId(1)) 0/AgentIndex(1)/queue 7 0 Unknown own name   None None None Some((Nanos(1500), Nanos(1550))) Some(Nanos(1500)) Some(50) None Some(Launch { grid: [640, 2, 1], workgroup: [64, 1, 1] }) Resources { registers: 0, accumulation_registers: 0, scalar_registers: 0, static_local: 0, dynamic_local: 0, private: 0 } 0 0 [] None ["registers_per_thread=Int(32)", "share=Double(0.5)", "policy=fair", "named once=said once"]"#,
            r#"work 0 0 0 Some(EventId(2)) 0/AgentIndex(1)/queue 7 0 Unknown interned name   None None None Some((Nanos(1600), Nanos(1650))) Some(Nanos(1600)) Some(50) None None Resources { registers: 0, accumulation_registers: 0, scalar_registers: 0, static_local: 0, dynamic_local: 0, private: 0 } 0 0 [EventId(1)] None []"#,
            r#"work 0 0 0 Some(EventId(3)) 0/AgentIndex(1)/queue 7 0 Synchronization Barrier   None None None Some((Nanos(1700), Nanos(1750))) Some(Nanos(1700)) Some(50) None None Resources { registers: 0, accumulation_registers: 0, scalar_registers: 0, static_local: 0, dynamic_local: 0, private: 0 } 0 0 [] None []"#,
            r#"work 0 0 0 Some(EventId(4)) 0/AgentIndex(1)/queue 7 0 Unknown something   None None None Some((Nanos(1800), Nanos(1850))) Some(Nanos(1800)) Some(50) None None Resources { registers: 0, accumulation_registers: 0, scalar_registers: 0, static_local: 0, dynamic_local: 0, private: 0 } 0 0 [] None []"#,
            r#"work 0 0 0 Some(EventId(5)) 0/AgentIndex(1)/queue 7 0 Set Memset   None None None Some((Nanos(1900), Nanos(1950))) Some(Nanos(1900)) Some(50) None None Resources { registers: 0, accumulation_registers: 0, scalar_registers: 0, static_local: 0, dynamic_local: 0, private: 0 } 0 0 [] None []"#,
        ],
        &[],
    );
}

#[test]
fn counters_without_blocks_are_tracks() {
    let counter = |id, name| {
        let spec: &'static [_] = Box::leak(Box::new([(1, Number(id)), (2, Text(name))]));
        (1, Message(spec))
    };
    let described = [counter(5, "busy"), counter(6, "idle")];
    is_read_as(
        &[
            &[(
                GPU_COUNTERS,
                Message(&[(1, Message(&described)), (3, Number(0))]),
            )],
            &[(
                GPU_COUNTERS,
                Message(&[
                    (2, Message(&[(1, Number(5)), (2, Number(40))])),
                    (2, Message(&[(1, Number(6)), (3, Double(0.5))])),
                    (2, Message(&[(1, Number(7)), (2, Number(1))])),
                    (3, Number(0)),
                ]),
            )],
        ],
        &[
            "track trace/Counter(Unspecified)/GPU 0 busy None",
            "track trace/Counter(Unspecified)/GPU 0 idle None",
            "value trace/Counter(Unspecified)/GPU 0 busy 1600 Int(40)",
            "value trace/Counter(Unspecified)/GPU 0 idle 1600 Double(0.5)",
        ],
        &[(
            1,
            "value of a counter of a device without a description before it",
        )],
    );
}

#[test]
fn commands_losses_and_packets_without_a_meaning_are_read() {
    let process = Message(&[(1, Number(42)), (3, Text("app")), (3, Text("--fast"))]);
    is_read_as(
        &[
            &[(PROCESS_TREE, Message(&[(1, process)]))],
            &[(STATS, Message(&[(1, Message(&[(19, Number(3))]))]))],
            &[(70, Message(&[]))],
        ],
        &[
            r#"Process { pid: ProcessId(42), name: "app", rank: "", command: ["app", "--fast"], order: None }"#,
            "loss None None Kind(0) 3 0 0 0",
        ],
        &[(1, "packet of kind 70 (cpu_info)")],
    );
}
