//! Files of trace events and the stream that they become; a corpus of damaged files, each with its documented result.

mod arrows;
mod damage;
mod ranks;
mod writers;
mod xla;

use std::io::{self, Write};

use tempfile::NamedTempFile;

use crate::import::{Inputs, Report};
use gputrail_record::Nanos;
use gputrail_trace::model::{
    Call, Consumer, CounterValue, Instant, Parent, Process, ProcessIndex, Producer, Slice,
    SliceEnd, Track, TrackIndex, Value, Work,
};

/// The stream as lines of text.
#[derive(Default)]
struct Lines {
    tracks: Vec<String>,
    lines: Vec<String>,
}

impl Lines {
    fn add(&mut self, line: String) -> io::Result<()> {
        self.lines.push(line);
        Ok(())
    }

    fn label(&self, track: TrackIndex) -> &str {
        &self.tracks[track.0 as usize]
    }
}

fn arguments(list: &[gputrail_trace::model::EventArgument<'_>]) -> String {
    let one = |argument: &gputrail_trace::model::EventArgument<'_>| {
        let value = match argument.value {
            Value::Text(text) | Value::Json(text) => text.to_owned(),
            Value::Uint(number) => number.to_string(),
            Value::Int(number) => number.to_string(),
            Value::Double(number) => number.to_string(),
            other => format!("{other:?}"),
        };
        format!(" {}={value}", argument.name)
    };
    list.iter().map(one).collect()
}

impl Consumer for Lines {
    gputrail_trace::leave_out!(
        clocks attributes agents queue counters end counter_values samples stack stack_samples loss note
    );

    fn process(&mut self, _: ProcessIndex, process: &Process<'_>) -> io::Result<()> {
        self.add(format!("process {} {}", process.pid.0, process.name))
    }

    fn track(&mut self, _: TrackIndex, track: &Track<'_>) -> io::Result<()> {
        let parent = match track.parent {
            Parent::Track(parent) => format!("{}/", self.label(parent)),
            _ => String::new(),
        };
        self.tracks.push(format!("{parent}{}", track.name));
        Ok(())
    }

    fn slice(&mut self, slice: &Slice<'_>) -> io::Result<()> {
        let track = self.label(slice.track).to_owned();
        let end = slice.end.map_or("-".to_owned(), |end| end.0.to_string());
        let flows = match slice.flows.len() {
            0 => String::new(),
            count => format!(" flows:{count}"),
        };
        self.add(format!(
            "[{track}] {} {}..{end}{}{flows}",
            slice.name,
            slice.start.0,
            arguments(slice.arguments)
        ))
    }

    fn end_slice(&mut self, end: &SliceEnd<'_>) -> io::Result<()> {
        let track = self.label(end.track).to_owned();
        self.add(format!("[{track}] end flows:{}", end.flows.len()))
    }

    fn call(&mut self, call: &Call<'_>) -> io::Result<()> {
        let end = call.end.map_or("-".to_owned(), |end| end.0.to_string());
        let work: Vec<u64> = call.submitted.iter().map(|id| id.0).collect();
        let name = &call.function.name;
        self.add(format!("call {name} {}..{end} {work:?}", call.start.0))
    }

    fn work(&mut self, work: &Work<'_>) -> io::Result<()> {
        let event = work.event.map_or(0, |event| event.0);
        let enqueued = work.enqueued.map_or(0, |time| time.0);
        let (name, args) = (work.stage.name, arguments(work.arguments));
        let why = work.unfinished.unwrap_or("");
        self.add(format!(
            "work {event} {name} {:?} enqueued {enqueued}{args}{why}",
            work.interval.map(|(start, end)| (start.0, end.0))
        ))
    }

    fn instant(&mut self, instant: &Instant<'_>) -> io::Result<()> {
        let track = self.label(instant.track).to_owned();
        self.add(format!("[{track}] {} at {}", instant.name, instant.time.0))
    }

    fn value(&mut self, track: TrackIndex, time: Nanos, value: CounterValue) -> io::Result<()> {
        let track = self.label(track).to_owned();
        self.add(format!("[{track}] {value:?} from {}", time.0))
    }
}

/// The stream of a file with these bytes, and the report.
fn read(bytes: &[u8]) -> (Vec<String>, Report) {
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(bytes).unwrap();
    let mut lines = Lines::default();
    let inputs = Inputs::open(&[file.path()]).unwrap();
    let report = inputs.produce(&mut lines).unwrap();
    (lines.lines, report)
}

/// The stream of events on process 1 and thread 1, without the line about the process.
fn stream(events: &str) -> Vec<String> {
    let (lines, report) = read(format!("[{events}]").as_bytes());
    assert!(report.is_sound(), "{:?}", report.findings);
    assert_eq!(lines[0], "process 1 process 1");
    lines[1..].to_vec()
}

/// A slice on process 1 and thread 1.
fn x(name: &str, ts: &str, dur: &str) -> String {
    format!(r#"{{"ph":"X","name":"{name}","ts":{ts},"dur":{dur},"pid":1,"tid":1}}"#)
}

#[test]
fn slices_come_in_the_order_of_their_begins_and_outer_ones_first() {
    let events = [x("in", "2", "1"), x("late", "9", "1"), x("out", "2", "5")];
    let expected = [
        "[] out 2000..7000",
        "[] in 2000..3000",
        "[] late 9000..10000",
    ];
    assert_eq!(stream(&events.join(",")), expected);
}

#[test]
fn slices_that_overlap_without_nesting_get_rows_of_their_own() {
    let events = [
        x("a", "1", "4"),
        x("b", "3", "4"),
        x("c", "6", "4"),
        x("d", "8", "1"),
    ];
    let expected = [
        "[] a 1000..5000",
        "[/overlapping] b 3000..7000",
        "[] c 6000..10000",
        "[] d 8000..9000",
    ];
    assert_eq!(stream(&events.join(",")), expected);
}

#[test]
fn begins_and_ends_are_put_together_with_the_arguments_of_both() {
    let events = r#"{"ph":"B","name":"a","ts":1,"pid":1,"tid":1,"args":{"x":1}},
        {"ph":"B","name":"b","ts":1,"pid":1,"tid":1},
        {"ph":"E","ts":4,"pid":1,"tid":1},
        {"ph":"E","ts":4,"pid":1,"tid":1,"args":{"y":"z"}},
        {"ph":"B","name":"open","ts":6,"pid":1,"tid":1}"#;
    let expected = [
        "[] a 1000..4000 x=1 y=z",
        "[] b 1000..4000",
        "[] open 6000..-",
    ];
    assert_eq!(stream(events), expected);
}

#[test]
fn slices_with_ids_share_a_row_only_if_they_have_one_id() {
    let part = |ph: &str, name: &str, id: u32, ts: u32| {
        format!(r#"{{"ph":"{ph}","cat":"c","name":"{name}","id":{id},"ts":{ts},"pid":1,"tid":1}}"#)
    };
    let events = [
        part("b", "request", 1, 1),
        part("b", "request", 2, 2),
        part("b", "inner", 1, 3),
        part("n", "mark", 1, 4),
        part("e", "inner", 1, 5),
        part("e", "request", 1, 6),
        part("e", "request", 2, 7),
    ];
    let lines = stream(&events.join(","));
    let names: Vec<&str> = lines
        .iter()
        .map(|line| line.split(" id=").next().unwrap())
        .collect();
    let expected = [
        "[request] request 1000..6000",
        "[request] mark at 4000",
        "[request] inner 3000..5000",
        "[request] request 2000..7000",
    ];
    let mut sorted = [names, expected.to_vec()];
    sorted.iter_mut().for_each(|list| list.sort_unstable());
    assert_eq!(sorted[0], sorted[1]);
}

#[test]
fn counters_have_a_track_for_each_series() {
    let events = r#"{"ph":"C","name":"memory","ts":1,"pid":1,"args":{"used":5,"free":2.5}},
        {"ph":"C","name":"load","ts":2,"pid":1,"args":{"load":-3}}"#;
    let expected = [
        "[memory · used] Int(5) from 1000",
        "[memory · free] Double(2.5) from 1000",
        "[load] Int(-3) from 2000",
    ];
    assert_eq!(stream(events), expected);
}

#[test]
fn values_of_a_profiler_range_hold_until_its_end() {
    let range = |ts: u32| {
        format!(
            r#"{{"ph":"X","cat":"cuda_profiler_range","name":"k","ts":{ts},"dur":2,"pid":1,"tid":1,
            "args":{{"flops.sum":{ts}00,"note":"none"}}}}"#
        )
    };
    let lines = stream(&[range(1), range(3)].join(","));
    let values: Vec<_> = lines
        .iter()
        .filter(|line| line.starts_with("[flops.sum]"))
        .collect();
    let expected = [
        "[flops.sum] Int(100) from 1000",
        "[flops.sum] Int(0) from 3000",
        "[flops.sum] Int(300) from 3000",
        "[flops.sum] Int(0) from 5000",
    ];
    assert_eq!(values, expected);
    let slices = lines.iter().filter(|line| line.contains(" k ")).count();
    assert_eq!(slices, 2, "the ranges stay slices: {lines:?}");
}

#[test]
fn flows_pass_through_the_innermost_slice_around_them() {
    let point = |ph: &str, ts: u32| {
        format!(r#"{{"ph":"{ph}","cat":"f","name":"f","id":7,"ts":{ts},"pid":1,"tid":1,"bp":"e"}}"#)
    };
    let events = [
        x("out", "1", "8"),
        x("in", "1", "2"),
        point("s", 1),
        point("t", 5),
        x("next", "20", "5"),
        point("f", 20),
    ];
    let expected = [
        "[] out 1000..9000",
        "[] in 1000..3000 flows:1",
        "[] end flows:1",
        "[] next 20000..25000 flows:1",
    ];
    assert_eq!(stream(&events.join(",")), expected);
}

#[test]
fn device_work_is_tied_to_its_call_wherever_either_stands() {
    let events = r#"{"traceEvents":[
        {"ph":"X","cat":"kernel","name":"k","ts":5,"dur":3,"pid":0,"tid":7,"args":{"stream":7,"device":0,"correlation":9,"x":1.5}},
        {"ph":"X","cat":"kernel","name":"k","ts":6,"dur":3,"pid":0,"tid":7,"args":{"stream":7,"device":0,"correlation":9}},
        {"ph":"X","cat":"kernel","name":"k","ts":0,"dur":0,"pid":0,"tid":7,"args":{"stream":7,"correlation":9}},
        {"ph":"X","cat":"kernel","name":"k","ts":7,"dur":-4,"pid":0,"tid":7,"args":{"stream":7,"correlation":8}},
        {"ph":"X","cat":"cuda_runtime","name":"cudaGraphLaunch","ts":1,"dur":1,"pid":1,"tid":1,"args":{"correlation":9}}],
        "baseTimeNanoseconds":1000000}"#;
    let (lines, report) = read(events.as_bytes());
    let expected = [
        "process 1 process 1",
        "work 1 k Some((1005000, 1008000)) enqueued 1001000 x=1.5",
        "work 2 k Some((1006000, 1009000)) enqueued 1001000",
        "work 3 k None enqueued 0 impossible duration (us)=-4its duration is impossible",
        "call cudaGraphLaunch 1001000..1002000 [1, 2]",
    ];
    assert_eq!(lines, expected);
    let [lost] = &report.unrepresented[..] else {
        panic!("{:?}", report.unrepresented);
    };
    assert!(lost.reason.contains("without times") && lost.count == 1);
    assert!(
        report
            .remarks
            .iter()
            .any(|one| one.reason.contains("impossible duration"))
    );
}

#[test]
fn nothing_that_has_no_place_goes_uncounted() {
    let events = r#"{"ph":"E","ts":1,"pid":1,"tid":1},{"ph":"?","ts":1},{"name":"no phase"},
        {"ph":"X","name":"no time"},{"ph":"X","name":"x","ts":"soon"},{"ph":"X","ts":1e300,"name":"far"},
        {"ph":"M","name":"trace_buffer_overflowed","args":{}},{"ph":"f","ts":1,"id":1,"pid":1,"tid":1,"bp":"e"}"#;
    let (_, report) = read(format!("[{events}]").as_bytes());
    let count: u64 = report.unrepresented.iter().map(|one| one.count).sum();
    assert_eq!(count, 8, "{:#?}", report.unrepresented);
    assert!(
        report
            .unrepresented
            .iter()
            .all(|one| one.first.len() as u64 == one.count)
    );
}

/// A damaged file: its bytes, how many of the slices a, b, c are read, and the finding.
struct Damaged {
    bytes: Vec<u8>,
    slices: usize,
    finding: Option<(u64, &'static str)>,
}

/// The corpus. `a` and `c` are whole in all files.
fn corpus() -> Vec<(&'static str, Damaged)> {
    let [a, b, c] = ["a", "b", "c"].map(|name| x(name, "1", "1"));
    let place = a.len() as u64 + 2;
    let with = |middle: &[u8]| {
        let parts: [&[u8]; 5] = [b"[", a.as_bytes(), b",", middle, b","];
        [&parts.concat(), c.as_bytes(), b"]"].concat()
    };
    let damaged = |bytes, slices, finding| Damaged {
        bytes,
        slices,
        finding,
    };
    let whole = format!("{{\"traceEvents\":[{a},{b},{c}]}}");
    let deep = format!(
        "{{\"ph\":\"X\",\"args\":{}1{}",
        "[".repeat(5000),
        "]".repeat(4999)
    );
    vec![
        (
            "the end of the array is missing",
            damaged(format!("[{a},{b},{c}").into(), 3, None),
        ),
        (
            "a comma behind the last event",
            damaged(format!("[{a},{b},{c},]").into(), 3, None),
        ),
        (
            "the end of the object is missing",
            damaged(
                whole[..whole.len() - 2].into(),
                3,
                Some((whole.len() as u64 - 2, "end of the file")),
            ),
        ),
        (
            "cut in the middle of an event",
            damaged(
                format!("[{a},{b},{}", &c[..c.len() - 3]).into(),
                2,
                Some((a.len() as u64 + b.len() as u64 + c.len() as u64, "the rest")),
            ),
        ),
        (
            "bytes that are no UTF-8 are replaced",
            damaged(
                with(&[&b.as_bytes()[..18], b"\xff", &b.as_bytes()[18..]].concat()),
                3,
                Some((place, "repaired")),
            ),
        ),
        (
            "control characters in a name are kept",
            damaged(
                with(b.replace("\"b\"", "\"b\n\x01\"").as_bytes()),
                3,
                Some((place, "repaired")),
            ),
        ),
        (
            "NaN becomes a text",
            damaged(
                with(
                    b.replace("\"pid\":1", "\"pid\":1,\"args\":{\"x\":NaN}")
                        .as_bytes(),
                ),
                3,
                Some((place, "repaired")),
            ),
        ),
        (
            "a quote is missing",
            damaged(
                with(b.replace("\"b\"", "\"b").as_bytes()),
                2,
                Some((place, "skipped")),
            ),
        ),
        (
            "a bracket is missing",
            damaged(
                with(&b.as_bytes()[..b.len() - 1]),
                2,
                Some((place, "skipped")),
            ),
        ),
        (
            "a bracket too many",
            damaged(with(b"}"), 2, Some((place, "skipped"))),
        ),
        (
            "a value that is no event",
            damaged(with(b"null"), 2, Some((place, "`n`"))),
        ),
        (
            "deep nesting that does not end",
            damaged(with(deep.as_bytes()), 2, Some((place, "skipped"))),
        ),
        (
            "deep nesting that ends",
            damaged(with(format!("{deep}]}}").as_bytes()), 2, None),
        ),
        (
            "quotes and brackets that end nowhere: each byte is looked at a few times only",
            damaged(
                with("{\"".repeat(1 << 18).as_bytes()),
                2,
                Some((place, "skipped")),
            ),
        ),
        (
            "the last of duplicate keys counts",
            damaged(
                with(
                    b.replace("\"ph\":\"X\"", "\"ph\":\"M\",\"ph\":\"X\"")
                        .as_bytes(),
                ),
                3,
                None,
            ),
        ),
        (
            "huge numbers are kept as texts",
            damaged(
                with(
                    b.replace(
                        "\"pid\":1",
                        "\"pid\":1,\"args\":{\"x\":123456789012345678901234567890}",
                    )
                    .as_bytes(),
                ),
                3,
                None,
            ),
        ),
        (
            "zeros between events",
            damaged(with(&[0; 4096]), 2, Some((place, "skipped"))),
        ),
    ]
}

#[test]
fn everything_before_and_after_damage_is_read() {
    for (
        name,
        Damaged {
            bytes,
            slices,
            finding,
        },
    ) in corpus()
    {
        let (lines, report) = read(&bytes);
        let count = lines
            .iter()
            .filter(|line| line.contains("1000..2000"))
            .count();
        assert_eq!(count, slices, "{name}: {lines:#?} {:?}", report.findings);
        match (finding, &report.findings[..]) {
            (None, []) => {}
            (Some((from, words)), [found]) => {
                let text = found.to_string();
                assert!(text.contains(words), "{name}: {text}");
                assert!(
                    found.offset.is_some_and(|at| at >= from.saturating_sub(1)),
                    "{name}: {text}"
                );
            }
            (expected, found) => panic!("{name}: {expected:?}, {found:?}"),
        }
    }
}

#[test]
fn a_file_cut_anywhere_is_read_up_to_there() {
    let whole = format!(
        "{{\"traceEvents\":[{},{}],\"x\":[1]}}",
        x("a", "1", "1"),
        x("b", "2", "1")
    );
    // A file that is cut before it has events has no known format.
    let begin = whole.find('[').unwrap() + 1;
    for cut in begin..whole.len() {
        let (lines, report) = read(&whole.as_bytes()[..cut]);
        let expected = whole[..cut].matches("\"tid\":1}").count();
        assert_eq!(
            lines.iter().filter(|line| line.contains("000..")).count(),
            expected,
            "{cut}"
        );
        assert_eq!(report.findings.len(), 1, "{cut}: {:?}", report.findings);
    }
}

#[test]
fn an_archive_cut_anywhere_is_read_up_to_there() {
    let events: Vec<String> = (1..500)
        .map(|i| x(&format!("e{i}"), &i.to_string(), "0.5"))
        .collect();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    write!(gzip, "[{}]", events.join(",")).unwrap();
    let whole = gzip.finish().unwrap();
    for cut in (whole.len() / 2..whole.len()).step_by(101) {
        let (lines, report) = read(&whole[..cut]);
        assert!(lines.len() > 1, "{cut}");
        assert!(!report.is_sound(), "{cut}");
        assert!(
            report.findings[0].found.contains("error"),
            "{cut}: {:?}",
            report.findings
        );
        assert_eq!(report.further_findings, 0, "{cut}");
    }
}

#[test]
fn events_longer_than_a_window_are_read() {
    let long = "y".repeat(3 << 18);
    let events = [x("a", "1", "1"), x(&long, "2", "1"), x("c", "3.25", "1.5")];
    let lines = stream(&events.join(",\n"));
    assert_eq!(lines.len(), 3);
    assert_eq!(lines[2], "[] c 3250..4750");
}

#[test]
fn a_profile_that_is_cut_says_that_the_base_of_its_times_may_be_missing() {
    let events = [x("a", "1", "1"), x("b", "5", "1")].join(",\n");
    let whole =
        format!("{{\"schemaVersion\":1,\"traceEvents\":[{events}],\"baseTimeNanoseconds\":7}}");
    let about_base = |text: &str| {
        let (_, report) = read(text.as_bytes());
        let mut remarks = report.remarks.iter();
        remarks.any(|remark| remark.reason.contains("baseTimeNanoseconds"))
    };
    assert!(!about_base(&whole));
    for end in ["],\"base", "}],", ",\"dur"] {
        let cut = whole.rfind(end).unwrap();
        assert!(about_base(&whole[..cut]), "{}", &whole[..cut]);
    }
    // Programs that write no object have no base.
    assert!(!about_base(&format!("[{events}")));
}

#[test]
fn clocks_of_ranks_are_aligned_by_the_operations_that_they_share() {
    let rank = |rank: u32, ahead: u64| {
        let operation = |number: u64| {
            let begin = 1000 * number + ahead + u64::from(rank) * 7;
            let end = 1000 * number + 500 + ahead;
            let group = r#""Collective name":"allreduce","Process Group Name":"0","Process Group Ranks":"[0, 1]""#;
            format!(
                r#"{{"ph":"X","cat":"kernel","name":"ncclDevKernel_AllReduce_Sum_f32_RING_LL()","ts":{begin},"dur":{},"pid":0,"tid":7,
                "args":{{"device":0,"stream":7,"correlation":{number},{group}}}}}"#,
                end - begin
            )
        };
        let events: Vec<String> = (1..6).map(operation).collect();
        let mut file = NamedTempFile::new().unwrap();
        write!(
            file,
            r#"{{"baseTimeNanoseconds":1760000000000000000,"distributedInfo":{{"rank":{rank}}},"traceEvents":[{}]}}"#,
            events.join(",")
        )
        .unwrap();
        file
    };
    /// The ends of all work.
    #[derive(Default)]
    struct Ends(Vec<u64>);
    impl Consumer for Ends {
        gputrail_trace::leave_out!(
            clocks attributes agents process track queue counters call slice end instant value counter_values
            samples stack stack_samples loss note
        );

        fn work(&mut self, work: &Work<'_>) -> io::Result<()> {
            self.0.extend(work.interval.map(|(_, end)| end.0));
            Ok(())
        }
    }
    // The second clock is ahead by 3 ms.
    let files = [rank(0, 0), rank(1, 3000)];
    let read = |aligns: bool| {
        let inputs = Inputs::open(&files.each_ref().map(NamedTempFile::path)).unwrap();
        let mut ends = Ends::default();
        let report = inputs.with_alignment(aligns).produce(&mut ends).unwrap();
        (ends.0, report)
    };
    let (ends, report) = read(true);
    assert_eq!(ends[..5], ends[5..]);
    let [aligned] = &report.aligned[..] else {
        panic!("{:?}", report.aligned);
    };
    assert_eq!(
        (aligned.moved, aligned.error.0, aligned.operations),
        (-3_000_000, 0, 5)
    );
    assert_eq!(aligned.file, files[1].path());
    let (ends, report) = read(false);
    assert_eq!(ends[5] - ends[0], 3_000_000);
    assert!(report.aligned.is_empty());
}

#[test]
fn processes_and_names_beyond_the_limit_are_counted() {
    let event = |pid: u32| {
        format!(
            r#"{{"ph":"M","name":"process_name","pid":{pid},"args":{{"name":"p"}}}},
            {{"ph":"X","name":"work","ts":1,"dur":1,"pid":{pid},"tid":1}}"#
        )
    };
    let events: Vec<String> = (1..=65_538).map(event).collect();
    let (lines, report) = read(format!("[{}]", events.join(",")).as_bytes());
    let slices = lines.iter().filter(|line| line.contains(" work ")).count();
    assert_eq!(slices, 65_538);
    let said = format!("{:?} {:?}", report.unrepresented, report.remarks);
    assert!(
        said.contains("name of a process or thread beyond the first 65,536"),
        "{said}"
    );
    assert!(
        said.contains("event of a process beyond the first 65,536"),
        "{said}"
    );
}
