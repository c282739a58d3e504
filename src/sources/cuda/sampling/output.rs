//! The records that fetched samples become.

use super::code::SampledCode;
use super::context::{Fetched, OfAddress, RefusedStep, SampledContext};
use super::losses::Losses;
use crate::cuda::ffi::Cupti;
use crate::cuda::objects::OBJECTS;
use crate::cuda::recent::{RECENT, RecentCall};
use core::ffi::{CStr, c_char};
use gputrail_capture::names::Names;
use gputrail_collect::correlation::HostThread;
use gputrail_collect::process;
use gputrail_collect::sampling::SampleDelivery;
use gputrail_collect::sampling::lines::WrittenLines;
use gputrail_interface::sampling::Request;
use gputrail_record::{
    AgentId, KernelId, NotIssued, SampleAggregate, SamplingMethod, SamplingTotals, WorkId,
};
use std::collections::{BTreeMap, HashSet};

/// The status of CUPTI if the hardware's buffer is full.
const OUT_OF_MEMORY: i32 = 8;

/// What becomes of samples.
#[derive(Default)]
pub(super) struct SampleOutput {
    code: SampledCode,
    lines: WrittenLines,
    pub losses: Losses,
}

/// Samples of one context that are fetched together.
pub(super) struct SampleBatch {
    agent: AgentId,
    wanted: Option<(SampleDelivery, Request)>,
    /// Samples and their calls, by CUPTI's number of the call.
    calls: BTreeMap<u32, (RecentCall, u64)>,
    total: u64,
    dropped: u64,
    /// Samples in records.
    counted: u64,
    /// Copies of names, which are ours to free.
    copies: HashSet<usize>,
}

impl SampleBatch {
    pub fn of(agent: AgentId, wanted: Option<(SampleDelivery, Request)>) -> SampleBatch {
        SampleBatch {
            agent,
            wanted,
            calls: BTreeMap::new(),
            total: 0,
            dropped: 0,
            counted: 0,
            copies: HashSet::new(),
        }
    }

    /// Totals of the samples of a call, or of those that have none.
    fn totals(
        &self,
        request: Request,
        call: &RecentCall,
        (total, dropped): (u64, u64),
    ) -> SamplingTotals {
        let mut totals = SamplingTotals::blank();
        (totals.correlation, totals.work) = (call.correlation, call.work);
        (totals.total, totals.dropped) = (total, dropped);
        (totals.interval, totals.unit) = (request.interval, request.unit);
        (totals.agent, totals.method) = (self.agent, request.method);
        totals
    }
}

impl Drop for SampleBatch {
    fn drop(&mut self) {
        for copy in &self.copies {
            // SAFETY: a text that CUPTI made with malloc for us, and that nothing refers to any more.
            unsafe { libc::free(*copy as *mut _) };
        }
    }
}

impl SampleOutput {
    /// Computes what is needed of modules that were loaded since.
    pub fn learn(&mut self, cupti: &Cupti) {
        self.code.learn(cupti);
    }

    /// Sampling of a context begins: says so to those who read the records.
    pub fn begin(&mut self, sampled: &SampledContext, request: Request, delivery: SampleDelivery) {
        self.losses.unknown(&sampled.reasons.unknown);
        let batch = SampleBatch::of(sampled.agent, Some((delivery, request)));
        let totals = batch.totals(request, &RecentCall::default(), (0, 0));
        with_host(|host| {
            host.write_to(delivery.buffers, totals);
        });
    }

    /// Writes the records of samples.
    pub fn take(&mut self, cupti: &Cupti, batch: &mut SampleBatch, fetched: Fetched<'_>) {
        let totals = fetched.totals;
        self.losses.foreign = self.losses.foreign.saturating_add(totals.foreign);
        self.losses.dropped = self.losses.dropped.saturating_add(totals.dropped);
        batch.total = batch.total.saturating_add(totals.total);
        batch.dropped = batch.dropped.saturating_add(totals.dropped);
        if totals.is_full != 0 {
            self.losses.full();
        }
        let (Some(names), Some((delivery, _))) = (process::names(), batch.wanted) else {
            return;
        };
        let mut records = Vec::new();
        for address in fetched.addresses {
            self.add(cupti, names, batch, &address, &mut records);
        }
        // The code comes before what refers to it.
        for changed in self.code.store(names) {
            self.lines.forget(changed);
        }
        let samples: u64 = records.iter().map(|record| record.samples).sum();
        batch.counted += samples;
        let mut written = 0;
        with_host(|host| {
            for record in &mut records {
                self.lines.of(names, host, record);
                if host.write_to(delivery.buffers, *record) {
                    written += record.samples;
                }
            }
        });
        self.losses.unwritten += samples - written;
        batch.dropped += samples - written;
    }

    /// The records of an address.
    fn add(
        &mut self,
        cupti: &Cupti,
        names: &Names,
        batch: &mut SampleBatch,
        address: &OfAddress,
        records: &mut Vec<SampleAggregate>,
    ) {
        let pc = &address.pc;
        let mut record = SampleAggregate::blank();
        (record.agent, record.offset) = (batch.agent, pc.offset);
        record.method = SamplingMethod::STOCHASTIC;
        // CUPTI's words alone.
        record.reason = NotIssued::NONE;
        if !pc.function.is_null() {
            // SAFETY: a text of CUPTI's.
            let function = unsafe { CStr::from_ptr(pc.function.cast_const()) };
            record.kernel = kernel(names, pc.function);
            let key = (pc.crc, record.kernel, function);
            let (object, is_copy) = self
                .code
                .object((cupti, names), batch.agent, key, pc.offset);
            record.code_object = object;
            if is_copy {
                batch.copies.insert(pc.function as usize);
            }
        }
        let call = match pc.correlation {
            0 => None,
            id => RECENT.get(id).map(|call| (id, call)),
        };
        if let Some((_, call)) = &call {
            (record.correlation, record.work) = (call.correlation, call.work);
        }
        for (stall, samples, latency) in &address.counts {
            (record.stall, record.samples) = (*stall, *samples);
            record.latency_samples = *latency;
            if let Some((id, call)) = call.filter(|(_, call)| call.work.is_some()) {
                let of_call = batch.calls.entry(id).or_insert((call, 0));
                of_call.1 = of_call.1.saturating_add(*samples);
            }
            records.push(record);
        }
    }

    /// All samples of a batch were taken: writes their totals.
    pub fn end(&mut self, batch: SampleBatch, result: Result<(), RefusedStep>) {
        match result {
            Ok(()) => {}
            Err(refused) if refused.status == OUT_OF_MEMORY => self.losses.full(),
            Err(refused) => self.losses.refused(refused),
        }
        let Some((delivery, request)) = batch.wanted else {
            return;
        };
        let of_calls: u64 = batch.calls.values().map(|(_, samples)| samples).sum();
        // Dropped samples belong to no call, and neither do those that earlier versions do not count.
        let all = batch.total.max(batch.counted.saturating_add(batch.dropped));
        let rest = all.saturating_sub(of_calls);
        with_host(|host| {
            for (call, samples) in batch.calls.values() {
                let totals = batch.totals(request, call, (*samples, 0));
                host.write_to(delivery.buffers, totals);
            }
            if rest > 0 {
                let none = RecentCall {
                    work: WorkId::NONE,
                    ..RecentCall::default()
                };
                let totals = batch.totals(request, &none, (rest, batch.dropped));
                host.write_to(delivery.buffers, totals);
            }
        });
    }
}

fn kernel(names: &Names, function: *mut c_char) -> KernelId {
    // SAFETY: a text of CUPTI's.
    unsafe { OBJECTS.lock().kernel(names, function as u64) }
}

/// Works with the calling thread's lanes, unless it is ending or in the middle of a record.
fn with_host(work: impl FnOnce(&mut HostThread)) {
    if let Some(thread) = process::current() {
        thread.with(work);
    }
}
