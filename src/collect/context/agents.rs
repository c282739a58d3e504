//! Services of a context that use agents: PC sampling and counter collection.

use super::{Context, RecordBuffer, ToolError};
use crate::agents::AgentRefusal;
use crate::counting::{
    Countable, CounterSet, CountingError, CountingRequest, CountingService, DispatchCounting,
};
use crate::sampling::{SamplingError, SamplingService};
use crate::switchboard::ForAll;
use gputrail_interface::counting::CountingMode;
use gputrail_interface::sampling::{Configuration, Deliver, Request, SamplingPeriod};
use gputrail_record::{AgentId, SamplingMethod, SamplingUnit};
use std::num::NonZeroU32;
use std::sync::Arc;

impl Context {
    /// Configures PC sampling: `agent` is sampled according to `request` while the context is started, and the records
    /// go to `buffer`. A context can sample several agents. Only one context of the process can have this service,
    /// until it is dropped (rocprofiler-sdk: `rocprofiler_configure_pc_sampling_service`).
    ///
    /// [`AgentId::ALL`] stands for all agents that can be sampled, also those that the process comes to know later, even while the
    /// context is started. Agents that cannot do what `request` says are left out, which a message says; those that the context has
    /// configured for themselves keep that.
    ///
    /// # Errors
    ///
    /// [`ToolError::Sampling`], which names what the agent can do; [`ToolError::Locked`] after the first start;
    /// [`ToolError::NoSuchBuffer`].
    pub fn sample(
        &self,
        buffer: &RecordBuffer,
        agent: AgentId,
        request: Request,
        deliver: Deliver,
    ) -> Result<(), ToolError> {
        let slot = buffer.slot_on(&self.board)?;
        if agent == AgentId::ALL {
            return self.sample_all(buffer, deliver, move |_, _| Ok(request));
        }
        Ok(self
            .board
            .sample(self.key, slot, agent, request, deliver)??)
    }

    /// Has all agents sampled as `request_of` says.
    fn sample_all(
        &self,
        buffer: &RecordBuffer,
        deliver: Deliver,
        request_of: impl Fn(&SamplingService, AgentId) -> Result<Request, SamplingError>
        + Send
        + Sync
        + 'static,
    ) -> Result<(), ToolError> {
        self.board.sampling().check_turn()?;
        let (key, slot) = (self.key, buffer.slot_on(&self.board)?);
        let samples = ForAll::Samples(Box::new(request_of), deliver);
        let refused = |conflict| SamplingError::from(AgentRefusal::<Configuration>::from(conflict));
        let served = self.board.serve_all(key, slot, samples)?;
        Ok(served.map_err(refused)?)
    }

    /// Configures PC sampling with CUPTI's parameters (`cuptiActivityConfigurePCSampling`). Returns the resulting
    /// request; for [`AgentId::ALL`], whose requests differ, one without an interval.
    ///
    /// # Errors
    ///
    /// As for [`Context::sample`].
    pub fn sample_every(
        &self,
        buffer: &RecordBuffer,
        agent: AgentId,
        period: SamplingPeriod,
        deliver: Deliver,
    ) -> Result<Request, ToolError> {
        if agent == AgentId::ALL {
            self.sample_all(buffer, deliver, move |sampling, agent| {
                sampling.request(agent, period)
            })?;
            return Ok(Request {
                method: SamplingMethod::default(),
                unit: SamplingUnit::default(),
                interval: 0,
            });
        }
        let request = self.board.sampling().request(agent, period)?;
        self.sample(buffer, agent, request, deliver)?;
        Ok(request)
    }

    /// The configurations with which `agent` can be sampled at this moment: only the active one if it is configured,
    /// none if it cannot be sampled.
    ///
    /// # Errors
    ///
    /// [`SamplingError::UnknownAgent`], [`SamplingError::Debugger`], [`SamplingError::Busy`] from within a buffer's
    /// callback.
    pub fn sampling_configurations(&self, agent: AgentId) -> Result<Vec<Configuration>, ToolError> {
        Ok(self.board.sampling().configurations(agent)?)
    }

    /// Configures counter collection: the counters and metrics with these `names` are counted on `agent` while the context
    /// is started, and their [values](gputrail_record::CounterValue) go to `buffer`. A context can count on several agents.
    /// Only one context of the process can have this service, until it is dropped, and it excludes PC sampling
    /// (rocprofiler-sdk: `rocprofiler_configure_dispatch_counting_service`, `rocprofiler_configure_device_counting_service`).
    ///
    /// [`AgentId::ALL`] stands for all agents that have counters, also those that the process comes to know later, even while the
    /// context is started. Agents that do not have all of these counters are left out, which a message says; those that the context
    /// has configured for themselves keep that.
    ///
    /// # Errors
    ///
    /// [`ToolError::Counting`], which names the nearest counters, or what the agent can do; [`ToolError::Locked`] after the
    /// first start; [`ToolError::NoSuchBuffer`].
    pub fn count(
        &self,
        buffer: &RecordBuffer,
        agent: AgentId,
        names: &[impl AsRef<str>],
        mode: CountingMode,
    ) -> Result<(), ToolError> {
        let names = owned(names);
        self.count_by(buffer, agent, move |counting, agent| {
            counting.request(agent, &names, mode, None)
        })
    }

    /// [`Context::count`] for each range of markers whose name matches `pattern` (`*` stands for any text, `?` for one
    /// character), as a whole. Ranges inside of such a range belong to it. One range of the process is counted at a time:
    /// the values of a range of another thread that begins meanwhile are invalid. The context has to trace or call back for
    /// markers, and for kernel dispatches (CUPTI: ranges that are pushed and popped, `CUPTI_UserRange`).
    ///
    /// With [`CountingMode::Range`], [`Context::count`] does so for the outermost ranges, whatever their names.
    ///
    /// # Errors
    ///
    /// As for [`Context::count`].
    pub fn count_ranges(
        &self,
        buffer: &RecordBuffer,
        agent: AgentId,
        names: &[impl AsRef<str>],
        pattern: &str,
    ) -> Result<(), ToolError> {
        let (names, pattern) = (owned(names), pattern.to_owned());
        self.count_by(buffer, agent, move |counting, agent| {
            let request = counting.request(agent, &names, CountingMode::Range, None)?;
            Ok(request.of_ranges(Some(pattern.clone())))
        })
    }

    /// [`Context::count`] for each dispatch, with at most `per_pass` counters in a pass: a kernel runs once for each pass.
    ///
    /// # Errors
    ///
    /// As for [`Context::count`].
    pub fn count_in_passes(
        &self,
        buffer: &RecordBuffer,
        agent: AgentId,
        names: &[impl AsRef<str>],
        per_pass: NonZeroU32,
    ) -> Result<(), ToolError> {
        let names = owned(names);
        self.count_by(buffer, agent, move |counting, agent| {
            counting.request(agent, &names, CountingMode::Dispatch, Some(per_pass))
        })
    }

    /// [`Context::count`] with a value for each instance of a block in the place of their sum: the values of a counter
    /// follow each other, by the number of the instance.
    ///
    /// # Errors
    ///
    /// As for [`Context::count`].
    pub fn count_each_instance(
        &self,
        buffer: &RecordBuffer,
        agent: AgentId,
        names: &[impl AsRef<str>],
        mode: CountingMode,
    ) -> Result<(), ToolError> {
        let names = owned(names);
        self.count_by(buffer, agent, move |counting, agent| {
            let request = counting.request(agent, &names, mode, None)?;
            Ok(request.with_each_instance(true))
        })
    }

    /// Configures counter collection with counters that `tool` chooses for each kernel: while the context is started, the
    /// kernels of `agent` run one after the other, and each that is counted runs once for each pass of its counters. The
    /// values go to `tool` and to `buffer`. The context has to trace or call back for kernel dispatches (rocprofiler-sdk:
    /// `rocprofiler_configure_callback_dispatch_counting_service`; ROCProfiler v1: `rocprofiler_set_queue_callbacks`).
    ///
    /// # Errors
    ///
    /// As for [`Context::count`].
    pub fn count_chosen(
        &self,
        buffer: &RecordBuffer,
        agent: AgentId,
        tool: Arc<dyn DispatchCounting>,
    ) -> Result<(), ToolError> {
        self.count_by(buffer, agent, move |counting, agent| {
            counting.request_of(agent, tool.clone())
        })
    }

    /// A set of counters and metrics for [`Context::count_chosen`], with at most `per_pass` counters in a pass
    /// (rocprofiler-sdk: `rocprofiler_create_counter_config`).
    ///
    /// # Errors
    ///
    /// As for [`Context::count`], of what does not depend on the context.
    pub fn counter_set(
        &self,
        agent: AgentId,
        names: &[impl AsRef<str>],
        per_pass: Option<NonZeroU32>,
    ) -> Result<Arc<CounterSet>, ToolError> {
        Ok(self.board.counting().set(agent, names, per_pass)?)
    }

    /// [`Context::count`] with a request that `request_of` makes for an agent: for `agent`, or for each.
    fn count_by(
        &self,
        buffer: &RecordBuffer,
        agent: AgentId,
        request_of: impl Fn(&CountingService, AgentId) -> Result<CountingRequest, CountingError>
        + Send
        + Sync
        + 'static,
    ) -> Result<(), ToolError> {
        if agent != AgentId::ALL {
            let request = request_of(self.board.counting(), agent)?;
            return self.count_request(buffer, agent, request);
        }
        self.board.counting().check_turn()?;
        let (key, slot) = (self.key, buffer.slot_on(&self.board)?);
        let counters = ForAll::Counters(Box::new(request_of));
        let refused = |conflict| CountingError::from(AgentRefusal::<Countable>::from(conflict));
        let served = self.board.serve_all(key, slot, counters)?;
        Ok(served.map_err(refused)?)
    }

    /// [`Context::count`] with a request that has been made.
    pub(crate) fn count_request(
        &self,
        buffer: &RecordBuffer,
        agent: AgentId,
        request: CountingRequest,
    ) -> Result<(), ToolError> {
        let slot = buffer.slot_on(&self.board)?;
        Ok(self.board.count(self.key, slot, agent, request)??)
    }

    /// The counters that `agent` offers; `None` if it has none.
    ///
    /// # Errors
    ///
    /// [`CountingError::UnknownAgent`], [`CountingError::Busy`] from within a buffer's callback.
    pub fn countable(&self, agent: AgentId) -> Result<Option<Countable>, ToolError> {
        Ok(self.board.counting().configurations(agent)?.pop())
    }

    /// Declares that the tool itself collects counters in this context, by means of its own. It excludes PC sampling, as in
    /// rocprofiler-sdk.
    ///
    /// # Errors
    ///
    /// [`SamplingError::Counters`] if it samples.
    pub fn collects_counters(&self) -> Result<(), ToolError> {
        Ok(self.board.collects_counters(self.key)??)
    }

    /// Reserves counter collection for this context, also before its agents are known: no other context can count while this
    /// one is there.
    ///
    /// # Errors
    ///
    /// [`CountingError::OtherContext`]; [`CountingError::Sampling`] if this one samples.
    pub fn reserve_counters(&self) -> Result<(), ToolError> {
        Ok(self.board.reserve_counters(self.key)??)
    }
}

fn owned(names: &[impl AsRef<str>]) -> Vec<String> {
    names.iter().map(|name| name.as_ref().to_owned()).collect()
}
