use std::io::Cursor;

use super::*;
use crate::model::{Consumer, Machine, SystemClocks, TraceHeader};
use crate::perfetto::Exporter;
use crate::perfetto::reader::{Known, Packet, Visitor, read};
use gputrail_record::Nanos;

/// A trace with clock snapshots only, one a second from `first` to `last`.
fn readings(first: u64, last: u64) -> Vec<u8> {
    let clocks = |second: u64| SystemClocks {
        boottime: Nanos(second * 1_000_000_000),
        monotonic: Nanos(second * 1_000_000_000 - 5),
        realtime: Nanos((1 << 60) | (second * 1_000_000_000)),
        ..SystemClocks::default()
    };
    let mut bytes = Vec::new();
    let mut trace = Exporter::new(&mut bytes);
    let mut write = || {
        trace.begin(&TraceHeader {
            identity: first,
            clocks: clocks(first),
            machine: Machine {
                host: "one".into(),
                ..Machine::default()
            },
            ..TraceHeader::default()
        })?;
        (first + 1..=last).try_for_each(|second| trace.clocks(&clocks(second)))?;
        trace.finish()
    };
    write().expect("memory takes all");
    drop(trace);
    bytes
}

/// BOOTTIME of all clock snapshots of a machine in a trace, in their order.
#[derive(Default)]
struct Readings(Vec<u64>);

impl Visitor for Readings {
    fn packet(&mut self, packet: &Packet<'_>, _: &Known, _: &mut Findings) {
        if let (field::trace_packet::CLOCK_SNAPSHOT, snapshot) = packet.data {
            self.0.extend(of_machine(snapshot));
        }
    }
}

#[test]
fn readings_of_one_machines_clocks_never_go_back() {
    let traces = [readings(100, 104), readings(102, 107)];
    let surveys = traces.each_ref().map(|trace| survey(Cursor::new(trace)));
    let placements = place(&surveys, &Default::default()).expect("one machine");
    let parts = traces.iter().zip(&surveys).zip(placements);
    let parts = parts.map(|((trace, survey), place)| (Cursor::new(trace), survey, place));
    let mut merged = Vec::new();
    let findings = merge(parts.collect(), &mut merged).expect("memory takes all");
    assert_eq!(findings, [[], []]);
    let mut told = Readings::default();
    let outcome = read(Cursor::new(&merged), &mut told);
    assert_eq!(outcome.findings.list(), []);
    let seconds: Vec<u64> = told.0.iter().map(|time| time / 1_000_000_000).collect();
    // The snapshots of the second trace that come after those of the first: readers reject times that go back.
    assert_eq!(seconds, (100..=107).collect::<Vec<_>>());
}
