//! A context that is sampled: CUPTI's sampling of it is enabled, configured, read and disabled here.

use super::buffer::SampleBuffer;
use super::ffi::{
    self as sampling, Attribute, ConfigurationParams, Data, DataParams, Pc, StructureSizes,
};
use super::reasons::{CountedReason, Reasons, done, of_context};
use crate::cuda::ffi::{self, Cupti, CuptiStatus, call};
use core::ffi::c_void;
use gputrail_record::{AgentId, StallReason};

/// The most calls for the data of one context in a row.
const MAX_CALLS: usize = 256;

/// A step that the library refuses, and its status.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct RefusedStep {
    pub step: &'static str,
    pub status: CuptiStatus,
}

/// How a context is sampled.
#[derive(Copy, Clone, Debug)]
pub(super) struct How {
    /// Samples are 2 to this power of cycles apart.
    pub exponent: u32,
    /// Whether kernels run one after the other, so that samples know their dispatch.
    pub serialized: bool,
    pub sizes: StructureSizes,
}

/// A context for which sampling is enabled.
pub(super) struct SampledContext {
    context: CudaContext,
    pub agent: AgentId,
    pub reasons: Reasons,
    /// What CUPTI fills by itself. It has the last samples once sampling is disabled.
    collecting: Option<SampleBuffer>,
    /// What is fetched into.
    fetched: SampleBuffer,
}

/// A context of CUDA.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(super) struct CudaContext(pub *mut c_void);

// SAFETY: a handle that CUPTI takes on any thread.
unsafe impl Send for CudaContext {}

/// The samples of one address.
pub(super) struct OfAddress {
    pub pc: Pc,
    /// Samples, and those of them at which no wave issued, by reason.
    pub counts: Vec<(StallReason, u64, u64)>,
}

/// Samples that were fetched.
pub(super) struct Fetched<'a> {
    pub addresses: &'a mut dyn Iterator<Item = OfAddress>,
    pub totals: Data,
}

impl SampledContext {
    /// Enables sampling of a context.
    pub fn enable(
        cupti: &Cupti,
        context: CudaContext,
        agent: AgentId,
        how: How,
    ) -> Result<SampledContext, RefusedStep> {
        let refused = |step| move |status| RefusedStep { step, status };
        let mut params = of_context(context.0);
        // SAFETY: `params` states its size, and a context that CUPTI has told of and whose end it has not.
        done(unsafe { call!(cupti, cuptiPCSamplingEnable(&raw mut params)) })
            .map_err(refused("cuptiPCSamplingEnable"))?;
        let disable = || {
            let mut params = of_context(context.0);
            // SAFETY: `params` is as for the call that has enabled sampling above.
            unsafe { call!(cupti, cuptiPCSamplingDisable(&raw mut params)) };
        };
        // The reasons are known only now.
        let reasons = match Reasons::of(cupti, context.0) {
            Ok(reasons) => reasons,
            Err(status) => {
                disable();
                return Err(refused("cuptiPCSamplingGetStallReasons")(status));
            }
        };
        let buffers = [(); 2].map(|()| SampleBuffer::new(how.sizes, reasons.numbers.len()));
        let [collecting, fetched] = buffers;
        if let Err(status) = configure(cupti, context, how, &reasons, &collecting) {
            // While the buffers are there: CUPTI may have taken one.
            disable();
            return Err(refused("cuptiPCSamplingSetConfigurationAttribute")(status));
        }
        Ok(SampledContext {
            context,
            agent,
            reasons,
            collecting: Some(collecting),
            fetched,
        })
    }

    /// Fetches the samples that CUPTI has, in several parts if they are many. Does not wait for the device. The error is
    /// the status of the call that ended it.
    pub fn fetch(
        &self,
        cupti: &Cupti,
        mut take: impl FnMut(Fetched<'_>),
    ) -> Result<(), RefusedStep> {
        for _ in 0..MAX_CALLS {
            self.fetched.clear();
            let mut params = DataParams {
                size: size_of::<DataParams>(),
                private: core::ptr::null_mut(),
                context: self.context.0,
                data: self.fetched.data(),
            };
            // SAFETY: `params` states its size, and a context that is sampled. CUPTI writes to `fetched` in the call alone,
            // whose structures state their sizes and the room for addresses and reasons.
            let status = done(unsafe { call!(cupti, cuptiPCSamplingGetData(&raw mut params)) });
            let remaining = self.pass_on(&self.fetched, &mut take);
            status.map_err(|status| RefusedStep {
                step: "cuptiPCSamplingGetData",
                status,
            })?;
            if remaining == 0 {
                break;
            }
        }
        Ok(())
    }

    /// Disables sampling, and takes the last samples.
    pub fn disable(
        mut self,
        cupti: &Cupti,
        mut take: impl FnMut(Fetched<'_>),
    ) -> Result<(), RefusedStep> {
        let fetched = self.fetch(cupti, &mut take);
        let mut params = of_context(self.context.0);
        // SAFETY: `params` states its size, and a context that is sampled. CUPTI writes the last samples to `collecting`,
        // which `self` still has.
        let status = done(unsafe { call!(cupti, cuptiPCSamplingDisable(&raw mut params)) });
        match (status, self.collecting.take()) {
            (Ok(()), Some(collecting)) => {
                self.pass_on(&collecting, &mut take);
            }
            // CUPTI may go on to write to it.
            (Err(_), collecting) => std::mem::forget(collecting),
            (Ok(()), None) => {}
        }
        let disabled = status.map_err(|status| RefusedStep {
            step: "cuptiPCSamplingDisable",
            status,
        });
        fetched.and(disabled)
    }

    /// Passes on the samples in a buffer, and returns the number of addresses that further calls will give.
    fn pass_on(&self, buffer: &SampleBuffer, take: &mut impl FnMut(Fetched<'_>)) -> usize {
        let totals = buffer.totals();
        if totals.count > 0 || totals.total > 0 || totals.dropped > 0 || totals.is_full != 0 {
            let mut addresses = buffer.addresses().map(|(pc, reasons)| OfAddress {
                pc,
                counts: self.counts(reasons.unwrap_or(&[])),
            });
            take(Fetched {
                addresses: &mut addresses,
                totals,
            });
        }
        totals.remaining
    }

    fn counts(&self, reasons: &[sampling::Reason]) -> Vec<(StallReason, u64, u64)> {
        let mut counts: Vec<(StallReason, u64, u64)> = Vec::new();
        for reason in reasons.iter().filter(|reason| reason.samples > 0) {
            let (stall, samples, latency) = match self.reasons.get(reason.number) {
                CountedReason::Samples(stall) => (stall, reason.samples.into(), 0),
                CountedReason::Latency(stall) => (stall, 0, reason.samples.into()),
                CountedReason::Other => continue,
            };
            match counts.iter_mut().find(|(known, ..)| *known == stall) {
                Some(of) => (of.1, of.2) = (of.1 + samples, of.2 + latency),
                None => counts.push((stall, samples, latency)),
            }
        }
        // Samples at which no wave issued are part of those with the reason.
        for (_, samples, latency) in &mut counts {
            *samples = (*samples).max(*latency);
        }
        counts
    }
}

fn configure(
    cupti: &Cupti,
    context: CudaContext,
    how: How,
    reasons: &Reasons,
    collecting: &SampleBuffer,
) -> Result<(), CuptiStatus> {
    let mode = if how.serialized {
        sampling::KERNEL_SERIALIZED
    } else {
        sampling::CONTINUOUS
    };
    let attribute = |what, value: [u64; 2]| Attribute {
        what,
        status: ffi::SUCCESS,
        value: [value[0], value[1], 0],
    };
    let numbers = [
        reasons.numbers.len() as u64,
        reasons.numbers.as_ptr() as u64,
    ];
    let mut attributes = [
        attribute(sampling::COLLECTION_MODE, [mode, 0]),
        attribute(sampling::STALL_REASONS, numbers),
        attribute(sampling::OUTPUT_FORMAT, [sampling::PARSED, 0]),
        attribute(sampling::DATA_BUFFER, [collecting.data() as u64, 0]),
        attribute(sampling::SAMPLING_PERIOD, [how.exponent.into(), 0]),
    ];
    let mut params = ConfigurationParams {
        size: size_of::<ConfigurationParams>(),
        private: core::ptr::null_mut(),
        context: context.0,
        count: attributes.len(),
        attributes: attributes.as_mut_ptr(),
    };
    // SAFETY: `params` states its size, and `count` attributes. `SampledContext` keeps the list of reasons and
    // `collecting`, where CUPTI writes, until sampling is disabled.
    let status = done(unsafe {
        call!(
            cupti,
            cuptiPCSamplingSetConfigurationAttribute(&raw mut params)
        )
    });
    // The status of an attribute says more than that of the call.
    let of_attribute = attributes.iter().map(|attribute| attribute.status);
    let of_attribute = of_attribute.filter(|status| *status != ffi::SUCCESS);
    match status {
        Err(status) => Err(of_attribute.min().unwrap_or(status)),
        Ok(()) => Ok(()),
    }
}
