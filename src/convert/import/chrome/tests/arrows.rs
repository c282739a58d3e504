//! Arrows, and the slices that they are at.

use super::{read, stream, x};

/// A point of an arrow on process 1.
fn point(ph: &str, id: u32, tid: u32, ts: u32) -> String {
    format!(
        r#"{{"ph":"{ph}","cat":"c","name":"arrow","id":{id},"bp":"e","pid":1,"tid":{tid},"ts":{ts}}}"#
    )
}

/// A slice on process 1.
fn slice(name: &str, tid: u32, ts: u32, dur: u32) -> String {
    format!(r#"{{"ph":"X","name":"{name}","pid":1,"tid":{tid},"ts":{ts},"dur":{dur}}}"#)
}

/// The lines without the names of tracks, and what is not in the stream.
fn arrows(events: &[String]) -> (Vec<String>, Vec<(String, u64)>) {
    let (lines, report) = read(format!("[{}]", events.join(",")).as_bytes());
    assert!(report.is_sound(), "{:?}", report.findings);
    let lost = report.unrepresented.iter();
    let lost = lost
        .map(|one| (one.reason.to_string(), one.count))
        .collect();
    let lines = lines[1..].iter().map(|line| match line.split_once("] ") {
        Some((_, rest)) => rest.to_owned(),
        None => line.clone(),
    });
    (lines.collect(), lost)
}

#[test]
fn an_arrow_to_a_slice_that_has_waited_leads_to_its_end() {
    let events = [
        slice("wait for batch", 1, 100, 900),
        slice("load batch", 2, 500, 200),
        point("s", 7, 2, 690),
        point("f", 7, 1, 950),
    ];
    let (mut lines, lost) = arrows(&events);
    lines.sort();
    let expected = [
        "end flows:1",
        "load batch 500000..700000 flows:1",
        "wait for batch 100000..1000000",
    ];
    assert_eq!(
        (&lines[..], &lost[..]),
        (&expected.map(String::from)[..], &[][..])
    );
}

#[test]
fn an_arrow_from_a_slice_that_has_begun_long_ago_leads_from_its_begin() {
    let events = [
        slice("outer", 1, 0, 1000),
        slice("inner", 1, 100, 10),
        point("s", 7, 1, 500),
        slice("short", 2, 510, 10),
        point("f", 7, 2, 515),
    ];
    let (mut lines, lost) = arrows(&events);
    lines.sort();
    let expected = [
        "inner 100000..110000",
        "outer 0..1000000 flows:1",
        "short 510000..520000 flows:1",
    ];
    assert_eq!(
        (&lines[..], &lost[..]),
        (&expected.map(String::from)[..], &[][..])
    );
}

#[test]
fn an_arrow_may_have_several_ends() {
    let events = [
        slice("from", 1, 0, 10),
        slice("to", 2, 20, 10),
        slice("and", 3, 40, 10),
        point("s", 7, 1, 5),
        point("f", 7, 2, 25),
        point("f", 7, 3, 45),
    ];
    let expected = [
        "from 0..10000 flows:2",
        "to 20000..30000 flows:1",
        "and 40000..50000 flows:1",
    ];
    let (lines, lost) = arrows(&events);
    assert_eq!(
        (&lines[..], &lost[..]),
        (&expected.map(String::from)[..], &[][..])
    );
}

#[test]
fn events_may_name_the_arrows_themselves() {
    let event = |name: &str, tid: u32, ts: u32, more: &str| {
        format!(r#"{{"ph":"X","name":"{name}","pid":1,"tid":{tid},"ts":{ts},"dur":10,{more}}}"#)
    };
    let events = [
        event("around", 1, 100, r#""bind_id":5"#),
        event("enqueue", 1, 100, r#""bind_id":"0x7","flow_out":true"#),
        event(
            "pass",
            2,
            150,
            r#""bind_id":"0x7","flow_in":true,"flow_out":true"#,
        ),
        event("execute", 3, 200, r#""bind_id":"0x7","flow_in":true"#),
    ];
    let expected = [
        "around 100000..110000 bind_id=5",
        "enqueue 100000..110000 flows:1",
        "pass 150000..160000 flows:1",
        "execute 200000..210000 flows:1",
    ];
    let (lines, lost) = arrows(&events);
    assert_eq!(
        (&lines[..], &lost[..]),
        (&expected.map(String::from)[..], &[][..])
    );
}

/// A call with a correlation id, and its kernel, of an older version of PyTorch's profiler.
fn launched() -> [String; 2] {
    [
        r#"{"ph":"X","cat":"Runtime","name":"cudaLaunchKernel","pid":1,"tid":"1","ts":1000,"dur":10,"args":{"correlation":11}}"#.to_owned(),
        r#"{"ph":"X","cat":"Kernel","name":"gemm","pid":0,"tid":"stream 7","ts":1020,"dur":100,"args":{"device":0,"stream":7,"correlation":11}}"#.to_owned(),
    ]
}

fn on_device(ph: &str, id: u32, ts: u32) -> String {
    format!(
        r#"{{"ph":"{ph}","id":{id},"cat":"async","name":"launch","bp":"e","pid":0,"tid":"stream 7","ts":{ts}}}"#
    )
}

fn on_host(ph: &str, id: u32, ts: u32) -> String {
    format!(
        r#"{{"ph":"{ph}","id":{id},"cat":"async","name":"launch","bp":"e","pid":1,"tid":1,"ts":{ts}}}"#
    )
}

#[test]
fn an_arrow_whose_id_is_that_of_the_call_and_its_work_is_their_tie() {
    let [call, kernel] = launched();
    let events = [
        call,
        kernel,
        on_host("s", 11, 1000),
        on_device("f", 11, 1020),
    ];
    let (lines, report) = read(format!("[{}]", events.join(",")).as_bytes());
    assert_eq!(report.unrepresented, []);
    assert_eq!(report.arrows, 2);
    assert!(lines.contains(&"call cudaLaunchKernel 1000000..1010000 [1]".to_owned()));
}

#[test]
fn arrows_at_device_work_are_counted_and_not_tied_to_what_is_around_it() {
    let [call, kernel] = launched();
    let sync = r#"{"ph":"X","cat":"cuda_sync","name":"wait","pid":0,"tid":"stream 7","ts":1000,"dur":500,"args":{"device":0,"stream":7}}"#;
    let events = [
        call,
        kernel,
        sync.to_owned(),
        slice("after", 1, 1200, 100),
        on_host("s", 1, 1005),
        on_device("f", 1, 1030),
        on_device("s", 2, 1030),
        on_host("f", 2, 1210),
        // Behind the kernel, and inside of the wait.
        on_device("s", 3, 1130),
        on_host("f", 3, 1220),
    ];
    let (lines, lost) = arrows(&events);
    assert_eq!(lost, [("arrow that touches device work".to_owned(), 2)]);
    let with_flow: Vec<_> = lines
        .iter()
        .filter(|line| line.contains("flows:"))
        .collect();
    assert_eq!(with_flow.len(), 2, "{lines:?}");
}

#[test]
fn an_arrow_that_ties_work_may_end_before_it_begins() {
    let arrow = |ph: &str, pid: u32, id: u32, ts: u32| {
        format!(
            r#"{{"ph":"{ph}","bp":"e","name":"HostToDevice{id}","cat":"HostToDevice","id":"{id}","pid":{pid},"tid":3,"ts":{ts}}}"#
        )
    };
    let task = |name: &str, id: u32, ts: u32| {
        format!(
            r#"{{"ph":"X","name":"{name}","pid":800,"tid":3,"ts":{ts},"dur":5,"args":{{"Task Type":"AI_CORE","Stream Id":3,"Task Id":{id}}}}}"#
        )
    };
    let events = [
        slice("launch", 3, 980, 40),
        task("earlier", 6, 970),
        task("matmul", 7, 990),
        arrow("s", 1, 9, 1005),
        arrow("f", 800, 9, 990),
        // Work that begins before the call.
        arrow("s", 1, 8, 1006),
        arrow("f", 800, 8, 970),
        // Without a begin.
        arrow("f", 800, 10, 991),
    ];
    let (lines, report) = read(format!("[{}]", events.join(",")).as_bytes());
    assert!(
        lines.contains(&"call launch 980000..1020000 [2]".to_owned()),
        "{lines:?}"
    );
    assert_eq!(report.arrows, 2);
    let lost = report.unrepresented.iter();
    let lost: Vec<_> = lost.map(|one| (&*one.reason, one.count)).collect();
    let expected = [
        (
            "arrow to device work that begins before the call in which the arrow does",
            1,
        ),
        ("end of an arrow that does not begin", 1),
    ];
    assert_eq!(lost, expected);
}

#[test]
fn arrows_with_one_end_are_counted() {
    let events = [
        slice("a", 1, 0, 10),
        point("s", 1, 1, 5),
        point("f", 2, 1, 5),
        point("s", 3, 1, 50),
        r#"{"ph":"f","cat":"c","name":"arrow","id":1,"pid":1,"tid":1,"ts":60}"#.to_owned(),
    ];
    let (lines, mut lost) = arrows(&events);
    assert_eq!(lines, ["a 0..10000"]);
    lost.sort();
    let expected = [
        ("begin of an arrow that does not end", 1),
        ("end of an arrow behind which no slice begins", 1),
        ("end of an arrow that does not begin", 1),
        ("end of an arrow that is in no slice", 1),
    ];
    assert_eq!(
        lost,
        expected.map(|(reason, count)| (reason.to_owned(), count))
    );
}

#[test]
fn the_begin_of_an_arrow_may_stand_behind_its_end_in_the_file() {
    let events = [
        slice("from", 1, 0, 10),
        slice("to", 2, 5, 10),
        point("f", 7, 2, 5),
        point("s", 7, 1, 5),
    ];
    let (lines, lost) = arrows(&events);
    let expected = [
        "from 0..10000 flows:1".to_owned(),
        "to 5000..15000 flows:1".to_owned(),
    ];
    assert_eq!((&lines[..], &lost[..]), (&expected[..], &[][..]));
}

#[test]
fn an_end_that_is_in_no_slice_is_at_the_next_one() {
    let events = [
        x("from", "0", "10"),
        r#"{"ph":"s","cat":"c","id":1,"pid":1,"tid":1,"ts":5}"#.to_owned(),
        r#"{"ph":"f","cat":"c","id":1,"pid":1,"tid":1,"ts":15}"#.to_owned(),
        x("to", "20", "10"),
    ];
    let expected = ["[] from 0..10000 flows:1", "[] to 20000..30000 flows:1"];
    assert_eq!(stream(&events.join(",")), expected);
}
