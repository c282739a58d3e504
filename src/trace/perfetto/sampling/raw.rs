//! Every sample by itself, on request: column by column in our own packets.

use crate::code::aggregate::Outcome;
use crate::record::{HostTrapSample, Nanos};
use crate::trace::perfetto::schema::pc_samples::Raw;

/// Samples of a packet.
const PACKET: usize = 1024;

/// The columns of the next packet.
#[derive(Debug, Default)]
pub(super) struct RawSamples {
    columns: Raw,
    latest: Nanos,
}

/// What a sample is beside its record.
#[derive(Copy, Clone, Debug)]
pub(super) struct Told {
    pub time: Nanos,
    pub address: u32,
    pub outcome: Outcome,
}

impl RawSamples {
    /// A sample, and how many waves there were.
    pub fn add(&mut self, told: Told, sample: &HostTrapSample, waves: u32) {
        let columns = &mut self.columns;
        columns.agents.push(sample.agent.0);
        columns.kernels.push(sample.kernel.0);
        columns.dispatches.push(sample.work.0);
        columns.correlations.push(sample.correlation.0);
        columns.externals.push(sample.external.0);
        columns.exec_masks.push(sample.exec_mask);
        columns.hardware.push(sample.hardware.0);
        columns.workgroups.extend(sample.workgroup);
        columns.waves_in_group.push(sample.wave_in_group.into());
        columns.wave_counts.push(waves);
        columns.absent.push(sample.absent.0.into());
        self.tell(told);
    }

    fn tell(&mut self, told: Told) {
        let columns = &mut self.columns;
        let time = match columns.times.is_empty() {
            true => told.time.0 as i64,
            false => told.time.0.wrapping_sub(self.latest.0) as i64,
        };
        columns.times.push(time);
        self.latest = told.time;
        columns.addresses.push(told.address);
        columns.outcomes.push(told.outcome.code());
    }

    /// Whether there are enough for a packet.
    pub fn is_full(&self) -> bool {
        self.columns.times.len() >= PACKET
    }

    /// The samples that have not been told; none if there are none.
    pub fn take(&mut self) -> Option<Raw> {
        let columns = std::mem::take(&mut self.columns);
        (!columns.times.is_empty()).then_some(columns)
    }
}
