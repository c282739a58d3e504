//! The layouts in the documents of `schemas/` are those of the code.

use gputrail_record::*;

const RECORDS: &str = include_str!("../schemas/records.md");
const CAPTURE: &str = include_str!("../schemas/capture.md");
const MAPPING: &str = include_str!("../schemas/mapping.md");

/// A row of a table of fields.
struct Row<'a> {
    offset: usize,
    bytes: usize,
    cells: Vec<&'a str>,
}

/// The rows of the first table after `heading`.
fn table<'a>(document: &'a str, heading: &str) -> Vec<Row<'a>> {
    let line = format!("\n{heading}\n");
    let (_, after) = document
        .split_once(&line)
        .unwrap_or_else(|| panic!("no {heading:?}"));
    let lines = after.lines().skip_while(|line| !line.starts_with('|'));
    let lines = lines.take_while(|line| line.starts_with('|')).skip(2);
    let row = |line: &'a str| {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        Row {
            offset: cells[0].parse().unwrap(),
            bytes: cells[1].parse().unwrap(),
            cells,
        }
    };
    lines.map(row).collect()
}

/// Whether the fields follow one another from 0 to `size`.
fn is_without_gaps(rows: &[Row<'_>], size: usize) -> bool {
    let ends = rows.iter().map(|row| row.offset + row.bytes);
    let begins = rows.iter().map(|row| row.offset).chain([size]);
    begins.eq(std::iter::once(0).chain(ends))
}

fn check<R: Record>(sources: &str) {
    check_layout::<R>(sources, &format!("kind {:#04x}, ", R::KIND.0));
}

fn check_layout<T>(sources: &str, kind: &str) {
    let name = std::any::type_name::<T>().rsplit("::").next().unwrap();
    let heading = format!("### `{name}`: {kind}{} bytes", size_of::<T>());
    let rows = table(RECORDS, &heading);
    assert!(is_without_gaps(&rows, size_of::<T>()), "{heading}");
    let (_, declaration) = sources
        .split_once(&format!("\npub struct {name} {{\n"))
        .unwrap();
    let (declaration, _) = declaration.split_once("\n}").unwrap();
    let declared = declaration
        .lines()
        .filter_map(|line| line.trim().strip_prefix("pub "));
    let declared = declared.map(|field| field.split(':').next().unwrap());
    let described = rows.iter().map(|row| row.cells[2].trim_matches('`'));
    assert!(declared.eq(described), "fields of {name}");
}

macro_rules! records {
    ($($type:ident),* $(,)?) => {
        /// The types of all kinds of records.
        const KINDS_WITH_A_TYPE: &[Kind] = &[$($type::KIND),*];

        #[test]
        fn every_record_is_described_with_its_kind_size_and_fields() {
            let sources = concat!(
                include_str!("../src/record/agent_attribute.rs"),
                include_str!("../src/record/annotation.rs"),
                include_str!("../src/record/api.rs"),
                include_str!("../src/record/call_stack.rs"),
                include_str!("../src/record/child.rs"),
                include_str!("../src/record/clock.rs"),
                include_str!("../src/record/counter.rs"),
                include_str!("../src/record/device_state.rs"),
                include_str!("../src/record/graph.rs"),
                include_str!("../src/record/instruction.rs"),
                include_str!("../src/record/link.rs"),
                include_str!("../src/record/loss.rs"),
                include_str!("../src/record/marker.rs"),
                include_str!("../src/record/memory.rs"),
                include_str!("../src/record/names.rs"),
                include_str!("../src/record/overhead.rs"),
                include_str!("../src/record/sample.rs"),
                include_str!("../src/record/synchronization.rs"),
                include_str!("../src/record/work.rs"),
            );
            $(check::<$type>(sources);)*
            check_layout::<WorkHeader>(sources, "");
        }
    };
}

records!(
    Api,
    KernelDispatch,
    MemoryCopy,
    MemorySet,
    Allocation,
    Synchronization,
    Completion,
    Retirement,
    Dependency,
    ChildKernel,
    Preemption,
    InstructionCount,
    GraphNode,
    GraphChange,
    Arguments,
    Overhead,
    Environment,
    UnifiedMemoryCounter,
    Loss,
    ClockSnapshot,
    ClockPair,
    CallStack,
    HostModule,
    StringName,
    Process,
    Thread,
    Agent,
    Context,
    Queue,
    Stream,
    Event,
    Module,
    CodeObject,
    CodeBytes,
    AgentAttribute,
    Link,
    KernelSymbol,
    OperationName,
    Note,
    ExternalCorrelation,
    ExternalName,
    Marker,
    Retirement,
    HostTrapSample,
    StochasticSample,
    InvalidSample,
    SamplingTotals,
    SampleAggregate,
    SourceLocator,
    InstructionCorrelation,
    CounterValue,
);

#[test]
fn every_kind_is_listed_with_its_record_or_as_reserved() {
    for (kind, name) in Kind::ALL {
        let begin = format!("\n| {:#04x} | {name} | ", kind.0);
        let (_, rest) = RECORDS
            .split_once(&begin)
            .unwrap_or_else(|| panic!("no {begin:?}"));
        assert_eq!(
            rest.starts_with("reserved: "),
            !KINDS_WITH_A_TYPE.contains(kind),
            "{name}"
        );
    }
}

#[test]
fn every_value_is_listed_with_its_name() {
    let described = |of: &str, values: &[(u64, &str)]| {
        let (_, list) = RECORDS.split_once(&format!("\n* `{of}`: ")).expect(of);
        let list = list.split("\n* ").next().unwrap().split_whitespace();
        let list = format!(
            "{};",
            list.collect::<Vec<_>>().join(" ").trim_end_matches('.')
        );
        for (value, name) in values {
            assert!(
                list.contains(&format!("{value} {name};")),
                "{of} {value} {name}: {list}"
            );
        }
    };
    macro_rules! values {
        ($($type:ident),* $(,)?) => {$(
            let values: Vec<(u64, &str)> =
                $type::ALL.iter().map(|(value, name)| (u64::from(value.0), *name)).collect();
            described(stringify!($type), &values);
        )*};
    }
    values!(
        Domain,
        LaunchType,
        Unfinished,
        SynchronizationType,
        MemoryKind,
        TransferKind,
        AllocationOperation,
        OverheadKind,
        EnvironmentKind,
        UnifiedMemoryCounterKind,
        PreemptionKind,
        InstructionClass,
        AccessDirection,
        AgentKind,
        AgentAttributeKind,
        LinkKind,
        StreamFlag,
        OperationGroup,
        NoteKind,
        ArgumentType,
        MarkerKind,
        PayloadKind,
        SamplingMethod,
        SamplingUnit,
        InstructionType,
        NotIssued,
        StallReason,
        CounterValueType,
        CounterInvalid,
        CounterUsage,
    );
}

#[test]
fn every_bit_field_is_described_where_it_lies() {
    macro_rules! fields {
        ($($type:ident),* $(,)?) => {$(
            let list: Vec<String> = $type::FIELDS.iter().map(|(name, at, bits)| format!("`{name}` {at} ({bits})")).collect();
            let list = format!("\n* `{}`: {}.\n", stringify!($type), list.join(", "));
            let written: Vec<&str> = RECORDS.split_whitespace().collect();
            let expected: Vec<&str> = list.split_whitespace().collect();
            assert!(written.windows(expected.len()).any(|words| words == expected), "{list}");
        )*};
    }
    fields!(HardwareId, Issue, Snapshot, MemoryCounters);
    let absent = Absent::ALL.iter();
    let absent: Vec<String> = absent
        .map(|(bit, name)| format!("{name} {}", bit.0.trailing_zeros()))
        .collect();
    let written: Vec<&str> = RECORDS.split_whitespace().collect();
    let absent = format!("a bit each: {}.", absent.join(", "));
    assert!(written.join(" ").contains(&absent), "{absent}");
}

#[test]
fn the_headers_of_a_capture_are_described_without_gaps() {
    assert!(is_without_gaps(
        &table(CAPTURE, "## File header, 64 bytes"),
        64
    ));
    assert!(is_without_gaps(
        &table(CAPTURE, "## Chunk header, 48 bytes"),
        48
    ));
}

#[test]
fn all_documents_describe_this_version() {
    let version = format!("ersion {FORMAT_VERSION}, as");
    assert!(RECORDS.contains(&version) && CAPTURE.contains(&version));
    assert!(MAPPING.contains("the version is that of the\nrecords"));
}

#[test]
fn a_real_capture_has_the_documented_headers() {
    use gputrail_capture::{FileHeader, Writer};
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run.gputrail");
    let header = FileHeader::new(4, ProcessId(77), 1_000_000_000, 5, [9; 16]);
    let writer = Writer::create(&path, &header).unwrap();
    writer.metadata_record(&Thread::blank()).unwrap();
    writer.end().unwrap();
    let bytes = std::fs::read(&path).unwrap();
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());

    assert_eq!(&bytes[..8], b"GPUTRAIL");
    assert_eq!(
        (word(8), word(12), word(16), word(20)),
        (FORMAT_VERSION, 64, 4, 77)
    );
    assert_eq!(
        (word(24), word(32), word(40)),
        (1_000_000_000, 5, 0x0909_0909)
    );
    assert_eq!(word(56), crc32fast::hash(&bytes[..56]));

    let chunk = 64;
    assert_eq!(&bytes[chunk..chunk + 4], b"GTCK");
    assert_eq!(
        (word(chunk + 4), word(chunk + 8)),
        (2, size_of::<Thread>() as u32)
    );
    let payload = &bytes[chunk + 48..][..size_of::<Thread>()];
    assert_eq!(word(chunk + 12), crc32fast::hash(payload));
    assert_eq!(word(chunk + 44), crc32fast::hash(&bytes[chunk..chunk + 44]));

    let end = chunk + 48 + size_of::<Thread>();
    assert_eq!(
        (word(end + 4), word(end + 8), bytes.len()),
        (3, 0, end + 48)
    );
}
