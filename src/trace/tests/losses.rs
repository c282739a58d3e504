//! Damage, losses and early ends of captures: what their traces and reports say of them.

use bytemuck::bytes_of;
use proptest::prelude::*;

use super::making::*;
use gputrail_buffer::clock::TickSource;
use gputrail_capture::{FileHeader, Reader, Writer};
use gputrail_record::*;
use gputrail_trace::capture::Options;
use gputrail_trace::make_trace;
use gputrail_trace::model::WorkKind;
use gputrail_trace::perfetto::schema::trace_packet::Data;
use gputrail_trace::perfetto::schema::trace_stats;
use gputrail_trace::perfetto::{Exporter, reader};

#[test]
fn losses_reach_the_thread_the_statistics_and_the_report() {
    let making = Making::new(1);
    let loss = Loss {
        count: 12,
        first: Ticks(100),
        last: Ticks(200),
        thread: MAIN,
        lost: Kind::API,
        ..Loss::blank()
    };
    making.run(ThreadId(0), &[bytes_of(&loss)]);
    let (report, trace) = making.convert();
    assert_eq!(report.lost, 12);
    let lost = trace
        .events()
        .into_iter()
        .find(|event| event.name == "records lost");
    assert_eq!(lost.unwrap().time, 100);
    let Some(Data::TraceStats(stats)) = &trace.packets.last().unwrap().data else {
        panic!("statistics at the end");
    };
    assert_eq!(stats.buffer_stats[0].trace_writer_packet_loss, Some(12));
}

#[test]
fn a_damaged_run_costs_itself_alone_and_is_reported() {
    let making = Making::new(1);
    making.run(MAIN, &[bytes_of(&call(1, 0, 100, 150))]);
    let damaged_at = making.writer.bytes();
    making.run(MAIN, &[bytes_of(&call(2, 0, 200, 250))]);
    making.run(MAIN, &[bytes_of(&call(3, 0, 300, 350))]);
    let mut bytes = std::fs::read(&making.path).unwrap();
    bytes[damaged_at as usize + 60] ^= 1;
    std::fs::write(&making.path, bytes).unwrap();
    let (report, trace) = making.convert();
    assert_eq!(report.calls, 2);
    assert!(
        trace
            .events()
            .iter()
            .any(|event| event.name == "not readable")
    );
    let [(path, finding)] = &report.findings[..] else {
        panic!("{:?}", report.findings);
    };
    assert_eq!(path, &making.path);
    assert!(finding.offset >= damaged_at);
}

#[test]
fn a_capture_without_clocks_is_reported_and_left_out() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run.gputrail");
    let header = FileHeader::new(
        TickSource::Virtual.code(),
        ProcessId(1),
        1_000_000_000,
        0,
        [0; 16],
    );
    drop(Writer::create(&path, &header).unwrap());
    let (report, _) = converted(&[Reader::open(&path).unwrap()], &Options::default());
    assert!(
        report.findings[0]
            .1
            .what
            .contains("no usable clock snapshot")
    );
}

#[test]
fn a_full_disk_is_reported_with_what_had_been_written() {
    struct Full;
    impl std::io::Write for Full {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let making = Making::new(1);
    let error = make_trace(
        &[making.capture()],
        Exporter::new(Full),
        &Options::default(),
        &mut (),
    )
    .unwrap_err();
    assert_eq!(
        (error.written, error.source.kind()),
        (0, std::io::ErrorKind::StorageFull)
    );
    assert!(making.directory.path().exists());
}

/// A record of any kind, its body anything.
fn any_record() -> impl Strategy<Value = Vec<u8>> {
    let kinds = prop::sample::select(vec![
        Kind::API,
        Kind::KERNEL_DISPATCH,
        Kind::MEMORY_COPY,
        Kind::MEMORY_SET,
        Kind::SYNCHRONIZATION,
        Kind::COMPLETION,
        Kind::ARGUMENTS,
        Kind::OVERHEAD,
        Kind::LOSS,
        Kind::NOTE,
        Kind::MEMORY_ALLOCATION,
        Kind(0xee),
    ]);
    // Words that collide, absurd words, and meaningful words.
    let word = prop_oneof![4 => 0u64..4, 1 => any::<u64>(), 3 => 1_000u64..2_000, 1 => Just(u64::MAX), 1 => Just(1 << 32 | 1)];
    (kinds, any::<u8>(), prop::collection::vec(word, 0..24)).prop_map(|(kind, flags, body)| {
        let header = Header {
            kind,
            flags,
            words: body.len() as u16 + 1,
            sequence: 0,
        };
        let mut bytes = bytes_of(&header).to_vec();
        body.iter()
            .for_each(|word| bytes.extend_from_slice(&word.to_le_bytes()));
        bytes
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_records_give_a_trace(records in prop::collection::vec(any_record(), 1..60)) {
        let making = Making::new(1);
        let records: Vec<&[u8]> = records.iter().map(|record| &record[..]).collect();
        making.run(MAIN, &records);
        let options = Options { arguments: true, ..Options::default() };
        let (report, trace) = converted(&[making.capture()], &options);
        let begins = trace.events().iter().filter(|event| event.kind == 1).count() as u64;
        prop_assert!(begins >= report.calls);
        // A launch of a graph is a slice above its nodes, and no work of its own.
        let work = trace.stages().into_iter().filter(|(_, event, interned)| {
            stage_name(event, interned) != WorkKind::GRAPH
        });
        prop_assert!(work.count() as u64 <= report.work());
    }
}

/// The findings of `check`, and the result of `info`, for the trace of a capture.
fn examined(making: &Making) -> (Vec<String>, reader::TraceContents) {
    let mut out = Vec::new();
    let captures = [making.capture()];
    make_trace(
        &captures,
        Exporter::new(&mut out),
        &Options::default(),
        &mut (),
    )
    .unwrap();
    let checked = reader::check(&out[..]);
    let findings = checked.findings.list().iter().map(ToString::to_string);
    (findings.collect(), reader::info(&out[..]))
}

#[test]
fn a_recording_that_ended_early_is_incomplete_and_why_and_since_when_is_found() {
    let making = Making::new(1);
    making.run(MAIN, &[bytes_of(&call(1, 0, 1000, 2000))]);
    let note = Note {
        time: Ticks(9000),
        what: NoteKind::ENDED_EARLY,
        text: making.names.string("no space left on the device"),
        ..Note::blank()
    };
    making.writer.metadata_record(&note).unwrap();
    let (findings, info) = examined(&making);
    let expected = "the recording is incomplete from 9000 ns on: no space left on the device";
    assert!(
        findings.len() == 1 && findings[0].contains(expected),
        "{findings:?}"
    );
    let early = (Nanos(9000), "no space left on the device".to_owned());
    assert_eq!(info.ended_early, [early]);
    let (_, trace) = making.convert();
    let failed = trace_stats::FinalFlushOutcome::FinalFlushFailed;
    let stats = trace.packets.iter().find_map(|packet| match &packet.data {
        Some(Data::TraceStats(stats)) => Some(stats),
        _ => None,
    });
    assert_eq!(stats.unwrap().final_flush_outcome(), failed);
}

#[test]
fn check_does_not_expect_records_that_were_not_selected() {
    for (configuration, complaints) in [
        ("session, discard policy", 1),
        ("session, discard policy; selected: kernel=gemm", 0),
        ("session, overwrite policy", 0),
    ] {
        let making = Making::new(1);
        let mut process = Process::blank();
        process.id = ProcessId(1);
        process.configuration = making.names.string(configuration);
        making.names.process(process);
        // Work whose call was not recorded.
        making.run(
            MAIN,
            &[
                bytes_of(&making.dispatch(1, 1, 1000)),
                bytes_of(&making.completion(1, 1500, 2500)),
            ],
        );
        let (findings, _) = examined(&making);
        assert_eq!(findings.len(), complaints, "{configuration}: {findings:?}");
    }
}
