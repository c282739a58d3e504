//! Where kernels spend their time, told from samples made up here.

use super::*;
use crate::trace::perfetto::schema::pc_samples::address::Frame;
use crate::trace::perfetto::schema::pc_samples::{
    Count, Kernel as KernelEntry, Line, Text, Totals,
};

fn outcome(reason: NotIssued) -> u64 {
    let outcome = Outcome {
        method: SamplingMethod::STOCHASTIC,
        instruction: InstructionType::NONE,
        reason,
        stall: reason.into(),
    };
    outcome.code().into()
}

const ISSUED: u64 = Outcome {
    method: SamplingMethod::STOCHASTIC,
    instruction: InstructionType::VALU,
    reason: NotIssued::NONE,
    stall: StallReason::NONE,
}
.stall
.0 as u64
    | (InstructionType::VALU.0 as u64) << 16
    | (SamplingMethod::STOCHASTIC.0 as u64) << 24;

fn text(id: u32, text: &str) -> Text {
    Text {
        id: Some(id),
        text: Some(text.into()),
    }
}

fn told() -> PcSamples {
    let address = |id, offset, instruction, line: u32| Address {
        id: Some(id),
        code_object: Some(3),
        offset: Some(offset),
        instruction: Some(instruction),
        missing: (line == 0).then_some(4),
        frames: vec![Frame {
            function: Some(1),
            file: (line != 0).then_some(2),
            line: Some(line),
        }],
        ..Address::default()
    };
    let count = |address, outcomes: Vec<u64>| Count {
        kernel: Some(1),
        address: Some(address),
        outcomes,
        ..Count::default()
    };
    PcSamples {
        pid: Some(7),
        texts: vec![
            text(1, "saxpy"),
            text(2, "a.cl"),
            text(3, "s_waitcnt"),
            text(4, "no lines: build with -g"),
        ],
        kernels: vec![KernelEntry {
            id: Some(1),
            name: Some("saxpy".into()),
        }],
        addresses: vec![
            address(1, 16, 3, 5),
            address(2, 24, 3, 5),
            address(3, 32, 0, 0),
        ],
        lines: (3..8)
            .map(|line| Line {
                file: Some(2),
                line: Some(line),
                text: Some(format!("line {line}")),
            })
            .collect(),
        counts: vec![
            count(1, vec![outcome(NotIssued::WAITCNT), 60, 10, ISSUED, 20, 0]),
            count(2, vec![outcome(NotIssued::BARRIER_WAIT), 15, 0]),
            count(3, vec![outcome(NotIssued::WAITCNT), 5, 0]),
        ],
        totals: vec![Totals {
            kernel: Some(1),
            dispatches: Some(2),
            samples: Some(104),
            dropped: Some(4),
            ..Totals::default()
        }],
        ..PcSamples::default()
    }
}

#[test]
fn samples_are_put_together_by_kernel_line_and_instruction() {
    let mut hotspots = Hotspots::default();
    hotspots.samples(9, &told());
    let report = hotspots.report();
    assert_eq!((report.samples, report.dropped), (100, 4));
    let [kernel] = &report.kernels[..] else {
        panic!("{report:?}");
    };
    assert_eq!((&kernel.name[..], kernel.dispatches), ("saxpy", 2));
    assert_eq!(kernel.tally.issue_rate(), Some(0.2));
    let leading = [(NotIssued::WAITCNT, 65), (NotIssued::BARRIER_WAIT, 15)];
    assert_eq!(kernel.tally.leading(), leading);
    let [line] = &kernel.lines[..] else {
        panic!("{kernel:?}");
    };
    assert_eq!((line.line, line.tally.samples), (5, 95));
    assert_eq!(line.text.as_deref(), Some("line 5"));
    assert_eq!(kernel.source.len(), 5, "with what is around it");
    let instructions = kernel.instructions.iter();
    let instructions: Vec<_> = instructions
        .map(|one| (one.offset, one.tally.samples, one.line))
        .collect();
    assert_eq!(
        instructions,
        [(16, 80, Some(0)), (24, 15, Some(0)), (32, 5, None)]
    );
    assert_eq!(kernel.missing, [("no lines: build with -g".to_owned(), 5)]);
}

#[test]
fn kernels_of_several_processes_with_one_name_are_one() {
    let mut hotspots = Hotspots::default();
    hotspots.samples(9, &told());
    hotspots.samples(10, &told());
    let report = hotspots.report();
    assert_eq!((report.kernels.len(), report.samples), (1, 200));
    assert_eq!(report.kernels[0].instructions.len(), 3);
}

#[test]
fn ids_that_stand_for_nothing_are_counted_all_the_same() {
    let mut hotspots = Hotspots::default();
    hotspots.samples(
        1,
        &PcSamples {
            counts: vec![Count {
                kernel: Some(5),
                address: Some(77),
                outcomes: vec![u64::MAX, u64::MAX, 0, 1, 5],
                ..Count::default()
            }],
            ..PcSamples::default()
        },
    );
    let report = hotspots.report();
    assert_eq!(report.samples, u64::MAX);
    assert_eq!(report.kernels[0].name, "unknown kernel");
}

#[test]
fn samples_are_told_one_by_one_where_they_are_kept() {
    let mut rows = Vec::new();
    {
        let mut hotspots = Hotspots::with_each(|sample| {
            rows.push((
                sample.time.0,
                sample.instruction.to_owned(),
                sample.line.map(|(file, line)| format!("{file}:{line}")),
                sample.wave_count,
            ));
        });
        let mut samples = told();
        samples.raw = Some(Raw {
            times: vec![100, 5],
            addresses: vec![1, 3],
            wave_counts: vec![4],
            ..Raw::default()
        });
        hotspots.samples(1, &samples);
    }
    let line = Some("a.cl:5".to_owned());
    assert_eq!(
        rows,
        [
            (100, "s_waitcnt".to_owned(), line, 4),
            (105, String::new(), None, 0)
        ]
    );
}
