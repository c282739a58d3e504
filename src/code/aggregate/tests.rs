//! Counting of samples by address and outcome.

use super::*;
use gputrail_record::{Absent, Issue, Snapshot};
use proptest::prelude::*;
use std::collections::BTreeMap;

fn stochastic(work: u64, kernel: u32, offset: u64, reason: NotIssued) -> StochasticSample {
    StochasticSample {
        work: WorkId(work),
        kernel: KernelId(kernel),
        agent: AgentId(1),
        code_object: CodeObjectId(1),
        offset,
        snapshot: Snapshot(0).with_reason_not_issued(u32::from(reason.0)),
        ..StochasticSample::blank()
    }
}

fn host_trap(work: u64, kernel: u32, offset: u64) -> HostTrapSample {
    HostTrapSample {
        work: WorkId(work),
        kernel: KernelId(kernel),
        agent: AgentId(1),
        offset,
        ..HostTrapSample::blank()
    }
}

#[test]
fn samples_are_distinguished_by_dispatch_address_and_outcome() {
    let mut aggregates = Aggregates::default();
    for _ in 0..3 {
        aggregates.stochastic(&stochastic(7, 1, 16, NotIssued::WAITCNT));
    }
    aggregates.stochastic(&stochastic(7, 1, 16, NotIssued::BARRIER_WAIT));
    aggregates.stochastic(&stochastic(7, 1, 32, NotIssued::WAITCNT));
    aggregates.stochastic(&stochastic(8, 1, 16, NotIssued::WAITCNT));
    let mut issued = stochastic(7, 1, 16, NotIssued::NONE);
    issued.issue = Issue(0)
        .with_issued(1)
        .with_instruction(InstructionType::VALU.0);
    aggregates.stochastic(&issued);
    let dispatch = aggregates.take(WorkId(7)).unwrap();
    assert_eq!(dispatch.samples(), 6);
    let records: Vec<_> = dispatch.records().collect();
    let told = |record: &SampleAggregate| {
        (
            record.offset,
            record.reason,
            record.instruction,
            record.samples,
            record.latency_samples,
        )
    };
    let told: Vec<_> = records.iter().map(told).collect();
    let none = InstructionType::NONE;
    assert_eq!(
        told,
        [
            (16, NotIssued::WAITCNT, none, 3, 3),
            (16, NotIssued::BARRIER_WAIT, none, 1, 1),
            (16, NotIssued::NONE, InstructionType::VALU, 1, 0),
            (32, NotIssued::WAITCNT, none, 1, 1),
        ]
    );
    assert_eq!(dispatch.outcomes()[0].1, 4);
    assert!(dispatch.outcomes()[2].0.issued());
    assert_eq!(aggregates.take(WorkId(8)).unwrap().samples(), 1);
    assert!(aggregates.take(WorkId(8)).is_none());
}

#[test]
fn a_sample_whose_arbiter_is_not_known_is_no_latency_sample() {
    let mut sample = stochastic(7, 1, 16, NotIssued::WAITCNT);
    sample.absent = Absent::ARBITER;
    let mut aggregates = Aggregates::default();
    aggregates.stochastic(&sample);
    let dispatch = aggregates.take(WorkId(7)).unwrap();
    assert_eq!(dispatch.records().next().unwrap().latency_samples, 0);
}

#[test]
fn earlier_counts_add_up() {
    let (mut first, mut second) = (Aggregates::default(), Aggregates::default());
    for offset in [0, 0, 8] {
        first.host_trap(&host_trap(3, 2, offset));
    }
    for record in first.take(WorkId(3)).unwrap().records() {
        second.aggregate(&record);
        second.aggregate(&record);
    }
    let dispatch = second.take(WorkId(3)).unwrap();
    let counts = dispatch.records().map(|record| record.samples);
    assert_eq!(counts.collect::<Vec<_>>(), [4, 2]);
    assert_eq!(dispatch.outcomes(), [(WaveOutcome::HOST_TRAP, 6)]);
}

#[test]
fn samples_without_a_dispatch_are_kept_by_kernel() {
    let mut aggregates = Aggregates::default();
    aggregates.host_trap(&host_trap(0, 1, 0));
    aggregates.host_trap(&host_trap(0, 2, 0));
    assert!(aggregates.take(WorkId::NONE).is_none());
    let kernels: Vec<_> = std::iter::from_fn(|| aggregates.oldest())
        .map(|dispatch| (dispatch.kernel, dispatch.samples()))
        .collect();
    assert_eq!(kernels, [(KernelId(1), 1), (KernelId(2), 1)]);
}

#[test]
fn memory_is_bounded_and_nothing_is_lost_by_that() {
    let mut aggregates = Aggregates::default();
    let mut kernels = SampledKernels::default();
    let samples = 3 * MAX_ENTRIES as u64;
    for number in 0..samples {
        // Each dispatch has 5 addresses, all of which are sampled repeatedly.
        let dispatch = number / 5 % (2 * MAX_DISPATCHES as u64);
        aggregates.host_trap(&host_trap(dispatch + 1, 1, number % 100));
        while let Some(dispatch) = aggregates.excess() {
            kernels.fold(&dispatch);
            aggregates.give_back(dispatch);
        }
        assert!(aggregates.places.len() <= MAX_DISPATCHES);
        assert!(aggregates.entries <= MAX_ENTRIES);
        assert!(aggregates.order.len() <= 3 * MAX_DISPATCHES);
    }
    while let Some(dispatch) = aggregates.oldest() {
        kernels.fold(&dispatch);
    }
    assert_eq!(aggregates.entries, 0);
    let all = kernels.take();
    let [(AgentId(1), KernelId(1), kernel)] = &all[..] else {
        panic!("{all:?}");
    };
    let counted: u64 = kernel.entries().map(|(_, _, count)| count.samples).sum();
    assert_eq!((kernel.entries().count(), counted), (100, samples));
}

#[test]
fn totals_of_dispatches_add_up() {
    let mut kernels = SampledKernels::default();
    // The last ones are of samples whose dispatch is not known.
    for (work, total, dropped) in [(1, 10, 1), (2, 20, 0), (0, 5, 2)] {
        let totals = SamplingTotals {
            work: WorkId(work),
            total,
            dropped,
            agent: AgentId(1),
            method: SamplingMethod::HOST_TRAP,
            ..SamplingTotals::blank()
        };
        kernels.totals(KernelId(4), &totals);
    }
    let all = kernels.take();
    let expected = Totals {
        dispatches: 2,
        samples: 35,
        dropped: 3,
    };
    assert_eq!(all[0].2.totals(), [(SamplingMethod::HOST_TRAP, expected)]);
    assert_eq!(kernels.entries(), 0);
}

proptest! {
    #[test]
    fn counting_agrees_with_a_plain_table(
        samples in prop::collection::vec((0_u64..6, 0_u32..3, 0_u64..5, 0_u8..10), 0..300),
        takes in prop::collection::vec(0_u64..6, 0..50),
    ) {
        let mut aggregates = Aggregates::default();
        let mut expected: BTreeMap<(u64, u64, u8), u64> = BTreeMap::new();
        let mut found = BTreeMap::new();
        let mut keep = |dispatch: DispatchSamples| {
            for (address, outcome, count) in dispatch.entries() {
                let key = (dispatch.work.0, address.offset, outcome.reason.0);
                *found.entry(key).or_insert(0) += count.samples;
            }
        };
        let mut takes = takes.into_iter();
        for (number, (work, kernel, offset, reason)) in samples.into_iter().enumerate() {
            aggregates.stochastic(&stochastic(work, kernel, offset, NotIssued(reason)));
            *expected.entry((work, offset, reason)).or_insert(0) += 1;
            if number % 5 == 0 && let Some(work) = takes.next() {
                aggregates.take(WorkId(work)).into_iter().for_each(&mut keep);
            }
        }
        std::iter::from_fn(|| aggregates.oldest()).for_each(&mut keep);
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn an_outcome_is_one_number(code: u32) {
        prop_assert_eq!(WaveOutcome::from_code(code).code(), code);
    }
}
