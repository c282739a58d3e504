//! Reports about samples that are generated here.

use super::*;
use gputrail_record::{Absent, CorrelationId, ExternalId, HardwareId, WorkId};
use gputrail_trace::model::{CodeFrame, OutcomeCount, SampleCount, SampleTotals, SourceText};

fn not_issued(reason: NotIssued, samples: u64, latency: u64) -> OutcomeCount {
    let outcome = WaveOutcome {
        method: SamplingMethod::STOCHASTIC,
        instruction: InstructionType::NONE,
        reason,
        stall: reason.into(),
    };
    OutcomeCount {
        outcome,
        samples,
        latency,
    }
}

fn issued(samples: u64) -> OutcomeCount {
    let outcome = WaveOutcome {
        method: SamplingMethod::STOCHASTIC,
        instruction: InstructionType::VALU,
        reason: NotIssued::NONE,
        stall: StallReason::NONE,
    };
    OutcomeCount {
        outcome,
        samples,
        latency: 0,
    }
}

/// Samples of one kernel at three addresses, of `sampler`.
fn samples(sampler: u32) -> Samples {
    let address = |id, offset, instruction, line: u32| CodeAddress {
        id,
        code_object: CodeObjectId(3),
        offset,
        instruction,
        missing: (line == 0).then_some(4),
        frames: vec![CodeFrame {
            function: 1,
            file: (line != 0).then_some(2),
            line: Some(line),
        }],
        ..CodeAddress::default()
    };
    let count = |address, outcomes: Vec<OutcomeCount>| SampleCount {
        agent: AgentId(0),
        kernel: KernelId(1),
        address,
        outcomes,
    };
    let texts = ["saxpy", "a.cl", "s_waitcnt", "no lines: build with -g"];
    Samples {
        sampler: SamplerIndex(sampler),
        texts: (1..).zip(texts.map(str::to_owned)).collect(),
        kernels: vec![(KernelId(1), "saxpy".into())],
        addresses: vec![
            address(1, 16, 3, 5),
            address(2, 24, 3, 5),
            address(3, 32, 0, 0),
        ],
        lines: (3..8)
            .map(|line| SourceText {
                file: 2,
                line,
                text: format!("line {line}"),
            })
            .collect(),
        counts: vec![
            count(1, vec![not_issued(NotIssued::WAITCNT, 60, 10), issued(20)]),
            count(2, vec![not_issued(NotIssued::BARRIER_WAIT, 15, 0)]),
            count(3, vec![not_issued(NotIssued::WAITCNT, 5, 0)]),
        ],
        totals: vec![SampleTotals {
            agent: AgentId(0),
            kernel: KernelId(1),
            method: SamplingMethod::STOCHASTIC,
            dispatches: 2,
            samples: 104,
            dropped: 4,
        }],
        ..Samples::default()
    }
}

#[test]
fn samples_are_put_together_by_kernel_line_and_instruction() {
    let mut hotspots = HotspotAnalysis::default();
    hotspots.samples(&samples(9)).unwrap();
    let report = hotspots.report();
    assert_eq!((report.samples, report.dropped), (100, 4));
    let [kernel] = &report.kernels[..] else {
        panic!("{report:?}");
    };
    assert_eq!((&kernel.name[..], kernel.dispatches), ("saxpy", 2));
    assert_eq!(kernel.tally.issue_rate(), Some(0.2));
    let leading = [("waitcnt", 65), ("barrier wait", 15)];
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
    let mut hotspots = HotspotAnalysis::default();
    hotspots.samples(&samples(9)).unwrap();
    hotspots.samples(&samples(10)).unwrap();
    let report = hotspots.report();
    assert_eq!((report.kernels.len(), report.samples), (1, 200));
    assert_eq!(report.kernels[0].instructions.len(), 3);
}

#[test]
fn ids_that_stand_for_nothing_are_counted_all_the_same() {
    let mut hotspots = HotspotAnalysis::default();
    let unknown = OutcomeCount {
        outcome: WaveOutcome::from_code(u32::MAX),
        samples: u64::MAX,
        latency: 0,
    };
    let samples = Samples {
        counts: vec![SampleCount {
            agent: AgentId(0),
            kernel: KernelId(5),
            address: 77,
            outcomes: vec![unknown, unknown],
        }],
        ..Samples::default()
    };
    hotspots.samples(&samples).unwrap();
    let report = hotspots.report();
    assert_eq!(report.samples, u64::MAX);
    assert_eq!(report.kernels[0].name, "unknown kernel");
}

#[test]
fn samples_come_one_by_one_where_they_are_kept() {
    let mut rows = Vec::new();
    {
        let mut hotspots = HotspotAnalysis::with_each(|sample| {
            rows.push((
                sample.time.0,
                sample.instruction.to_owned(),
                sample.line.map(|(file, line)| format!("{file}:{line}")),
                sample.wave_count,
            ));
        });
        let raw = |time, address, wave_count| RawSample {
            time: Nanos(time),
            address,
            outcome: WaveOutcome::HOST_TRAP,
            agent: AgentId(0),
            kernel: KernelId(1),
            work: WorkId(1),
            correlation: CorrelationId(1),
            external: ExternalId::NONE,
            exec_mask: 1,
            hardware: HardwareId(0),
            workgroup: [0; 3],
            wave_in_group: 0,
            wave_count,
            absent: Absent(0),
        };
        let samples = Samples {
            raw: vec![raw(100, 1, 4), raw(105, 3, 0)],
            ..samples(1)
        };
        hotspots.samples(&samples).unwrap();
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
