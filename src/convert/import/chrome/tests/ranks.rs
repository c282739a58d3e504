//! Profiles of several processes and ranks in one file, and ids of processes and threads.

use std::collections::HashMap;
use std::io::{self, Write};

use tempfile::NamedTempFile;

use crate::import::{Inputs, Report};
use gputrail_trace::model::{
    AgentIndex, Call, Consumer, EventId, Parent, Process, ProcessIndex, Producer, Queue,
    QueueIndex, Slice, Track, TrackIndex, TrackKind, Work,
};

/// The processes, queues, tracks and work of a trace, with their names.
#[derive(Default)]
struct Owners {
    /// Ids, ranks and names of the processes.
    processes: Vec<(u32, String, String)>,
    queues: Vec<String>,
    /// Names and threads of tracks.
    tracks: Vec<(String, Option<u32>)>,
    /// Names of work, with the place of its process, its queue, and the name and time of its call.
    work: Vec<(String, u32, String, Option<u64>)>,
    /// The names of calls by the work that they submitted.
    calls: HashMap<EventId, Vec<(String, u32)>>,
    events: Vec<(String, Option<EventId>)>,
    /// Names of slices, and the names of their tracks.
    slices: Vec<(String, String)>,
}

impl Owners {
    fn read(text: &str) -> (Owners, Report) {
        let mut file = NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        let mut owners = Owners::default();
        let report = Inputs::open(&[file.path()])
            .unwrap()
            .produce(&mut owners)
            .unwrap();
        (owners, report)
    }

    /// The names of work with the id of its process and the processes of its calls.
    fn ties(&self) -> Vec<(&str, u32, Vec<u32>)> {
        let pid = |place: u32| self.processes[place as usize].0;
        let all = self.work.iter().zip(&self.events);
        let ties = all.map(|((name, process, ..), (_, event))| {
            let calls = event.and_then(|event| self.calls.get(&event));
            let calls = calls.into_iter().flatten();
            let callers = calls.map(|(_, process)| pid(*process)).collect();
            (&name[..], pid(*process), callers)
        });
        let mut ties: Vec<_> = ties.collect();
        ties.sort();
        ties
    }
}

impl Consumer for Owners {
    gputrail_trace::leave_out!(
        clocks attributes agents counters end instant value counter_values samples stack stack_samples loss note
    );

    fn process(&mut self, _: ProcessIndex, process: &Process<'_>) -> io::Result<()> {
        let (rank, name) = (process.rank.to_owned(), process.name.to_owned());
        self.processes.push((process.pid.0, rank, name));
        Ok(())
    }

    fn track(&mut self, _: TrackIndex, track: &Track<'_>) -> io::Result<()> {
        let thread = match track.kind {
            TrackKind::Thread(_, thread) => Some(thread.0),
            _ => None,
        };
        let name = match track.parent {
            Parent::Trace => format!("/{}", track.name),
            _ => track.name.to_owned(),
        };
        self.tracks.push((name, thread));
        Ok(())
    }

    fn queue(&mut self, _: QueueIndex, queue: &Queue<'_>) -> io::Result<()> {
        let device = match queue.agent {
            AgentIndex::UNKNOWN => "?".to_owned(),
            AgentIndex(device) => device.to_string(),
        };
        self.queues.push(format!("{device} {}", queue.name));
        Ok(())
    }

    fn call(&mut self, call: &Call<'_>) -> io::Result<()> {
        for event in call.submitted {
            let calls = self.calls.entry(*event).or_default();
            calls.push((call.function.name.to_string(), call.process.0));
        }
        Ok(())
    }

    fn slice(&mut self, slice: &Slice<'_>) -> io::Result<()> {
        let track = self.tracks[slice.track.0 as usize].0.clone();
        self.slices.push((slice.name.to_owned(), track));
        Ok(())
    }

    fn work(&mut self, work: &Work<'_>) -> io::Result<()> {
        let (name, queue) = (work.stage.name.to_owned(), work.queue.0 as usize);
        let enqueued = work.enqueued.map(|time| time.0);
        let latency = enqueued.and_then(|time| Some(work.start?.0 - time));
        self.events.push((name.clone(), work.event));
        let queue = self.queues[queue].clone();
        self.work.push((name, work.process.0, queue, latency));
        Ok(())
    }
}

fn call(pid: &str, ts: u32, correlation: u32) -> String {
    format!(
        r#"{{"ph":"X","cat":"cuda_runtime","name":"launch","pid":{pid},"tid":1,"ts":{ts},"dur":5,"args":{{"correlation":{correlation}}}}}"#
    )
}

fn kernel(name: &str, pid: &str, ts: u32, correlation: u32) -> String {
    format!(
        r#"{{"ph":"X","cat":"kernel","name":"{name}","pid":{pid},"tid":7,"ts":{ts},"dur":5,"args":{{"stream":7,"correlation":{correlation}}}}}"#
    )
}

fn read(events: &[String]) -> (Owners, Report) {
    let (owners, report) = Owners::read(&format!("[{}]", events.join(",\n")));
    assert!(report.is_sound(), "{:?}", report.findings);
    assert_eq!(report.unrepresented, []);
    (owners, report)
}

#[test]
fn texts_of_process_ids_name_processes_and_their_ranks() {
    let forms: [(&[&str], &[&str]); 4] = [
        (
            &["[TP00] 42", "[TP00] 0", "[TP01] 43", "[TP01] 1"],
            &["TP00", "TP01"],
        ),
        (
            &["[TP00 42]", "[TP00 0]", "[TP01 43]", "[TP01 1]"],
            &["TP00", "TP01"],
        ),
        (
            &[
                "TP0-DECODE_42",
                "TP0-DECODE_0",
                "TP1-DECODE_43",
                "TP1-DECODE_1",
            ],
            &["TP0-DECODE", "TP1-DECODE"],
        ),
        (&["42_0", "0_0", "43_1", "1_1"], &["rank 0", "rank 1"]),
    ];
    for (pids, ranks) in forms {
        let [host, device, other_host, other_device] =
            [0, 1, 2, 3].map(|place| format!("{:?}", pids[place]));
        // Mixed, as a tool that sorts by time leaves them.
        let events = [
            call(&host, 10, 9),
            call(&other_host, 11, 9),
            kernel("one", &device, 20, 9),
            kernel("other", &other_device, 21, 9),
            kernel("without a call", &other_device, 22, 8),
        ];
        let (owners, _) = read(&events);
        let found: Vec<_> = owners
            .processes
            .iter()
            .map(|(pid, rank, _)| (*pid, &rank[..]))
            .collect();
        assert_eq!(found, [(42, ranks[0]), (43, ranks[1])], "{pids:?}");
        let expected = [
            ("one", 42, vec![42]),
            ("other", 43, vec![43]),
            ("without a call", 43, vec![]),
        ];
        assert_eq!(owners.ties(), expected, "{pids:?}");
        let mut queues = owners.queues;
        queues.sort();
        assert_eq!(queues, ["0 stream 7", "1 stream 7"]);
    }
}

#[test]
fn ranks_whose_devices_alone_are_in_the_file_have_processes() {
    let events = [
        call("\"[TP00] 42\"", 10, 9),
        kernel("one", "\"[TP00] 0\"", 20, 9),
        kernel("other", "\"[TP01] 1\"", 21, 9),
    ];
    let (owners, _) = read(&events);
    let ranks: Vec<_> = owners
        .processes
        .iter()
        .map(|(_, rank, _)| &rank[..])
        .collect();
    assert_eq!(ranks, ["TP00", "TP01"]);
    let ties = owners.ties();
    let [("one", 42, callers), ("other", other, _)] = &ties[..] else {
        panic!("{ties:?}");
    };
    assert_eq!(callers, &[42]);
    assert_ne!(*other, 42);
}

#[test]
fn profiles_one_behind_the_other_have_ids_of_their_own() {
    let events = [
        call("42", 1000, 11),
        kernel("first", "0", 1020, 11),
        call("43", 1500, 11),
        kernel("second", "1", 1520, 11),
        kernel("same device number", "0", 1530, 12),
    ];
    let (owners, _) = read(&events);
    let expected = [
        ("first", 42, vec![42]),
        ("same device number", 43, vec![]),
        ("second", 43, vec![43]),
    ];
    assert_eq!(owners.ties(), expected);
    let latencies: Vec<_> = owners.work.iter().map(|(.., latency)| *latency).collect();
    assert_eq!(latencies, [Some(20_000), Some(20_000), None]);
}

#[test]
fn ids_that_no_two_processes_have_tie_across_the_file() {
    // The second process begins while work of the first one is still to come.
    let events = [
        call("42", 10, 1),
        call("43", 20, 2),
        kernel("late", "0", 30, 1),
        kernel("own", "0", 40, 2),
    ];
    let (owners, _) = read(&events);
    assert_eq!(
        owners.ties(),
        [("late", 42, vec![42]), ("own", 43, vec![43])]
    );
}

#[test]
fn in_mixed_profiles_devices_tell_the_process_or_nothing_is_tied() {
    let mut events = Vec::new();
    for round in 0..8 {
        let (time, id) = (100 * round, round);
        events.extend([
            call("42", time, id),
            kernel("of the first", "0", time + 20, id),
            call("43", time + 30, id),
            kernel("of the second", "1", time + 50, id),
        ]);
    }
    let (owners, report) = read(&events);
    assert!(owners.ties().iter().all(|(name, process, callers)| {
        let expected = if *name == "of the first" { 42 } else { 43 };
        *process == expected && callers[..] == [expected]
    }));
    assert_eq!(report.remarks, []);
    // Sorted by time, and on one device: nothing says whose the work is.
    let mut events = Vec::new();
    for round in 0..8 {
        let (time, id) = (100 * round, round + 1);
        let both = [call("42", time, id), call("43", time + 1, id)];
        let swap = round % 2 == 1;
        let [first, second] = both;
        events.extend(if swap {
            [second, first]
        } else {
            [first, second]
        });
        events.push(kernel("of somebody", "0", time + 20, id));
    }
    let (owners, report) = read(&events);
    assert!(owners.ties().iter().all(|(.., callers)| callers.is_empty()));
    let [remark] = &report.remarks[..] else {
        panic!("{:?}", report.remarks);
    };
    assert!(
        remark.reason.contains("calls of several processes"),
        "{remark}"
    );
    assert_eq!(remark.count, 8);
}

#[test]
fn work_belongs_to_the_first_of_two_calls_with_its_id() {
    let events = [
        call("42", 10, 1),
        call("42", 12, 1),
        kernel("k", "0", 30, 1),
    ];
    let (owners, _) = read(&events);
    assert_eq!(owners.ties(), [("k", 42, vec![42])]);
}

#[test]
fn ids_of_arrows_count_for_each_process() {
    let slice = |pid: u32, name: &str, ts: u32| {
        format!(
            r#"{{"ph":"X","cat":"cpu_op","name":"{name}","pid":{pid},"tid":1,"ts":{ts},"dur":10}}"#
        )
    };
    let point = |ph: &str, pid: u32, ts: u32| {
        format!(
            r#"{{"ph":"{ph}","cat":"fwdbwd","name":"fwdbwd","id":1,"bp":"e","pid":{pid},"tid":1,"ts":{ts}}}"#
        )
    };
    let events = [
        slice(42, "a", 0),
        slice(43, "b", 5),
        slice(42, "c", 20),
        slice(43, "d", 25),
        point("s", 42, 1),
        point("s", 43, 6),
        point("f", 42, 21),
        point("f", 43, 26),
    ];
    let mut file = NamedTempFile::new().unwrap();
    write!(file, "[{}]", events.join(",")).unwrap();
    #[derive(Default)]
    struct Flows(Vec<(String, Vec<u64>)>);
    impl Consumer for Flows {
        gputrail_trace::leave_out!(
            clocks attributes agents process track queue counters call end instant work value counter_values
            samples stack stack_samples loss note
        );

        fn slice(&mut self, slice: &Slice<'_>) -> io::Result<()> {
            let flows = slice.flows.iter().map(|point| point.flow.0).collect();
            self.0.push((slice.name.to_owned(), flows));
            Ok(())
        }
    }
    let mut flows = Flows::default();
    let inputs = Inputs::open(&[file.path()]).unwrap();
    let report = inputs.produce(&mut flows).unwrap();
    assert_eq!(report.unrepresented, []);
    flows.0.sort();
    let [a, b, c, d] = [0, 1, 2, 3].map(|place| flows.0[place].1.clone());
    assert_eq!((a.len(), b.len()), (1, 1));
    assert!(a == c && b == d && a != b, "{:?}", flows.0);
}

#[test]
fn threads_have_ids_that_viewers_show() {
    let slice =
        |name: &str, ids: &str| format!(r#"{{"ph":"X","name":"{name}","ts":1,"dur":2{ids}}}"#);
    let events = [
        slice("known", r#","pid":" 42 ","tid":2147483647"#),
        slice("large", r#","pid":42,"tid":4294967295"#),
        slice("other", r#","pid":42,"tid":3000000000"#),
        slice("none", r#","pid":42"#),
        slice("no process", r#","pid":-1,"tid":0"#),
    ];
    let (owners, _) = read(&events);
    assert_eq!(
        owners.processes,
        [(42, String::new(), "process 42".to_owned())]
    );
    let track = |name: &str| {
        let slice = owners.slices.iter().find(|(slice, _)| slice == name);
        &slice.unwrap().1[..]
    };
    assert_eq!(track("known"), "");
    assert_eq!(track("large"), "thread 4294967295");
    assert_eq!(track("other"), "thread 3000000000");
    assert_eq!(track("none"), "events of no thread");
    assert_eq!(track("no process"), "/no process · thread 0");
    let mut threads: Vec<u32> = owners.tracks.iter().filter_map(|(_, id)| *id).collect();
    threads.sort_unstable();
    threads.dedup();
    assert_eq!(threads.len(), 4);
    assert!(threads.iter().all(|id| i32::try_from(*id).is_ok()));
}

#[test]
fn kernels_that_name_no_process_are_work_of_an_unknown_device() {
    let event = |name: &str, stream: u32, ts: f64| {
        format!(
            r#"{{"args":{{"call_stack":["ROOT","{name}"]}},"cat":"kernel","dur":4.064,"name":"{name}","ph":"X","tid":{stream},"ts":{ts:.1}}}"#
        )
    };
    let object = |events: &[String]| {
        format!(
            r#"{{"displayTimeUnit": "us", "traceEvents": [{}]}}"#,
            events.join(", ")
        )
    };
    let text = [
        object(&[event("gemm", 7, 0.0), event("add", 7, 10.5)]),
        object(&[event("copy", 13, 2.0)]),
    ];
    let (owners, report) = Owners::read(&text.join("\n"));
    assert!(report.is_sound(), "{:?}", report.findings);
    assert_eq!(report.counts.kernels, 3);
    let found: Vec<_> = owners
        .work
        .iter()
        .map(|(name, _, queue, _)| (&name[..], &queue[..]))
        .collect();
    let expected = [
        ("gemm", "? stream 7"),
        ("copy", "? stream 13"),
        ("add", "? stream 7"),
    ];
    assert_eq!(found, expected);
}
