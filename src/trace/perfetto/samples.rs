//! Exact counts of samples, in packets of our own ([`PcSamples`]) that Perfetto skips.

use super::schema::PcSamples;
use super::schema::pc_samples::address::Frame;
use super::schema::pc_samples::{
    Address, Agent, CodeObject, Configuration, Count, Execution, Kernel, Line, Raw, Text, Totals,
};
use crate::model::{
    self, CodeAddress, CodeFrame, ExecutionCount, Executions, OutcomeCount, RawSample, SampleCount,
    SampleTotals, Samples, SourceText,
};
use gputrail_code::aggregate::WaveOutcome;
use gputrail_record::{
    Absent, AgentId, CodeObjectId, CorrelationId, ExternalId, HardwareId, KernelId, Nanos,
    SamplingMethod, SamplingUnit, WorkId,
};

/// The packet of a part of the counts.
pub(super) fn message(samples: &Samples) -> PcSamples {
    PcSamples {
        pid: None,
        process: None,
        texts: all(&samples.texts, |(id, text)| Text {
            id: Some(*id),
            text: Some(text.clone()),
        }),
        agents: all(&samples.agents, |(id, name)| Agent {
            id: Some(id.0),
            name: Some(name.clone()),
        }),
        kernels: all(&samples.kernels, |(id, name)| Kernel {
            id: Some(id.0),
            name: Some(name.clone()),
        }),
        code_objects: all(&samples.code_objects, |(id, path)| CodeObject {
            id: Some(id.0),
            path: Some(path.clone()),
        }),
        addresses: all(&samples.addresses, |address| Address {
            id: Some(address.id),
            code_object: Some(address.code_object.0),
            offset: Some(address.offset),
            symbol: Some(address.symbol),
            instruction: Some(address.instruction),
            frames: all(&address.frames, |frame| Frame {
                function: Some(frame.function),
                file: frame.file,
                line: frame.line,
            }),
            missing: address.missing,
        }),
        lines: all(&samples.lines, |line| Line {
            file: Some(line.file),
            line: Some(line.line),
            text: Some(line.text.clone()),
        }),
        counts: all(&samples.counts, |count| Count {
            agent: Some(count.agent.0),
            kernel: Some(count.kernel.0),
            address: Some(count.address),
            outcomes: count
                .outcomes
                .iter()
                .flat_map(|one| [one.outcome.code().into(), one.samples, one.latency])
                .collect(),
        }),
        totals: all(&samples.totals, |totals| Totals {
            agent: Some(totals.agent.0),
            kernel: Some(totals.kernel.0),
            method: Some(totals.method.0.into()),
            dispatches: Some(totals.dispatches),
            samples: Some(totals.samples),
            dropped: Some(totals.dropped),
        }),
        configurations: all(&samples.configurations, |configuration| Configuration {
            agent: Some(configuration.agent.0),
            method: Some(configuration.method.0.into()),
            unit: Some(configuration.unit.0.into()),
            interval: Some(configuration.interval),
        }),
        invalid: (samples.invalid > 0).then_some(samples.invalid),
        shown_one_of: samples.shown_one_of,
        executions: all(&samples.executions, |count| Execution {
            agent: Some(count.agent.0),
            kernel: Some(count.kernel.0),
            address: Some(count.address),
            executed: Some(count.executions.executed),
            threads: Some(count.executions.threads),
            diverged: Some(count.executions.diverged),
            transactions: Some(count.executions.transactions),
            ideal_transactions: Some(count.executions.ideal_transactions),
        }),
        raw: (!samples.raw.is_empty()).then(|| columns(&samples.raw)),
    }
}

/// The part of the counts in a packet.
pub(super) fn samples(message: &PcSamples) -> Samples {
    Samples {
        texts: all(&message.texts, |text| (text.id(), text.text().to_owned())),
        agents: all(&message.agents, |agent| {
            (AgentId(agent.id()), agent.name().to_owned())
        }),
        kernels: all(&message.kernels, |kernel| {
            (KernelId(kernel.id()), kernel.name().to_owned())
        }),
        code_objects: all(&message.code_objects, |object| {
            (CodeObjectId(object.id()), object.path().to_owned())
        }),
        addresses: all(&message.addresses, |address| CodeAddress {
            id: address.id(),
            code_object: CodeObjectId(address.code_object()),
            offset: address.offset(),
            symbol: address.symbol(),
            instruction: address.instruction(),
            frames: all(&address.frames, |frame| CodeFrame {
                function: frame.function(),
                file: frame.file,
                line: frame.line,
            }),
            missing: address.missing,
        }),
        lines: all(&message.lines, |line| SourceText {
            file: line.file(),
            line: line.line(),
            text: line.text().to_owned(),
        }),
        counts: all(&message.counts, |count| SampleCount {
            agent: AgentId(count.agent()),
            kernel: KernelId(count.kernel()),
            address: count.address(),
            outcomes: count
                .outcomes
                .chunks_exact(3)
                .map(|numbers| OutcomeCount {
                    outcome: WaveOutcome::from_code(numbers[0] as u32),
                    samples: numbers[1],
                    latency: numbers[2],
                })
                .collect(),
        }),
        totals: all(&message.totals, |totals| SampleTotals {
            agent: AgentId(totals.agent()),
            kernel: KernelId(totals.kernel()),
            method: SamplingMethod(totals.method() as u8),
            dispatches: totals.dispatches(),
            samples: totals.samples(),
            dropped: totals.dropped(),
        }),
        configurations: all(&message.configurations, |configuration| {
            model::AgentConfiguration {
                agent: AgentId(configuration.agent()),
                method: SamplingMethod(configuration.method() as u8),
                unit: SamplingUnit(configuration.unit() as u8),
                interval: configuration.interval(),
            }
        }),
        executions: all(&message.executions, |count| ExecutionCount {
            agent: AgentId(count.agent()),
            kernel: KernelId(count.kernel()),
            address: count.address(),
            executions: Executions {
                executed: count.executed(),
                threads: count.threads(),
                diverged: count.diverged(),
                transactions: count.transactions(),
                ideal_transactions: count.ideal_transactions(),
            },
        }),
        invalid: message.invalid(),
        shown_one_of: message.shown_one_of,
        raw: message.raw.as_ref().map(rows).unwrap_or_default(),
        ..Samples::default()
    }
}

fn all<T, U>(list: &[T], one: impl Fn(&T) -> U) -> Vec<U> {
    list.iter().map(one).collect()
}

/// Single samples as columns, which compress well.
fn columns(samples: &[RawSample]) -> Raw {
    let mut columns = Raw::default();
    let mut latest = Nanos(0);
    for sample in samples {
        let since = sample.time.0.wrapping_sub(latest.0);
        latest = sample.time;
        columns.times.push(since as i64);
        columns.addresses.push(sample.address);
        columns.agents.push(sample.agent.0);
        columns.kernels.push(sample.kernel.0);
        columns.outcomes.push(sample.outcome.code());
        columns.dispatches.push(sample.work.0);
        columns.correlations.push(sample.correlation.0);
        columns.externals.push(sample.external.0);
        columns.exec_masks.push(sample.exec_mask);
        columns.hardware.push(sample.hardware.0);
        columns.workgroups.extend(sample.workgroup);
        columns.waves_in_group.push(sample.wave_in_group.into());
        columns.wave_counts.push(sample.wave_count);
        columns.absent.push(sample.absent.0.into());
    }
    columns
}

fn rows(columns: &Raw) -> Vec<RawSample> {
    let mut time = 0_i64;
    let row = |(row, since): (usize, &i64)| {
        time = time.wrapping_add(*since);
        let long = |column: &[u64]| column.get(row).copied().unwrap_or(0);
        let short = |column: &[u32]| column.get(row).copied().unwrap_or(0);
        let workgroup = columns.workgroups.chunks_exact(3).nth(row);
        RawSample {
            time: Nanos(time as u64),
            address: short(&columns.addresses),
            outcome: WaveOutcome::from_code(short(&columns.outcomes)),
            agent: AgentId(short(&columns.agents)),
            kernel: KernelId(short(&columns.kernels)),
            work: WorkId(long(&columns.dispatches)),
            correlation: CorrelationId(long(&columns.correlations)),
            external: ExternalId(long(&columns.externals)),
            exec_mask: long(&columns.exec_masks),
            hardware: HardwareId(long(&columns.hardware)),
            workgroup: workgroup.map_or([0; 3], |group| [group[0], group[1], group[2]]),
            wave_in_group: short(&columns.waves_in_group) as u8,
            wave_count: short(&columns.wave_counts),
            absent: Absent(short(&columns.absent) as u16),
        }
    };
    columns.times.iter().enumerate().map(row).collect()
}
