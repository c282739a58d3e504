//! Sessions, passes and samples, and what their kernels counted.

use super::SessionError;
use crate::counting::{CounterReading, CounterSet, DispatchReadings, Sum};
use gputrail_record::CorrelationId;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// The number of ended sessions whose results are kept; older ones are forgotten.
pub const KEPT_SESSIONS: usize = 8;

/// The sessions of one opened agent.
#[derive(Default)]
pub(super) struct SessionLog {
    /// The session in progress at the back, before it the latest ones that have ended.
    sessions: VecDeque<CounterSession>,
    is_sampling: bool,
    begun: u32,
    /// Kernels that have not ended, by their calls: the session and its part, and the number of kernels.
    pending: HashMap<CorrelationId, (u32, PassSample, u32)>,
}

/// A sample of a pass.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
struct PassSample {
    pass: usize,
    place: usize,
}

/// One session.
pub(super) struct CounterSession {
    number: u32,
    /// The enabled counters, which are those of the set in their order.
    pub enabled: Vec<u32>,
    pub set: Arc<CounterSet>,
    /// The set of each pass alone.
    of_passes: Vec<Arc<CounterSet>>,
    passes: Vec<Pass>,
    is_pass_open: bool,
    is_sample_open: bool,
    has_ended: bool,
}

#[derive(Default)]
struct Pass {
    samples: Vec<SampleCounts>,
    /// The places of the samples, by their ids.
    places: HashMap<u32, usize>,
    has_ended: bool,
}

impl Pass {
    fn sample(&self, id: u32) -> Option<&SampleCounts> {
        self.samples.get(*self.places.get(&id)?)
    }
}

/// The counts of a sample's kernels in one pass.
#[derive(Default)]
struct SampleCounts {
    id: u32,
    /// Kernels that have not ended.
    pending: u32,
    sum: Sum,
}

impl CounterSession {
    /// The ids of its samples, in the order of the first pass.
    pub fn samples(&self) -> Vec<u32> {
        let samples = self.passes.first().map(|pass| &pass.samples[..]);
        let samples = samples.unwrap_or_default();
        samples.iter().map(|sample| sample.id).collect()
    }

    pub fn is_pass_complete(&self, pass: usize) -> bool {
        let is_complete =
            |pass: &Pass| pass.has_ended && pass.samples.iter().all(|sample| sample.pending == 0);
        self.passes.get(pass).is_some_and(is_complete)
    }

    pub fn is_ready(&self) -> bool {
        let mut samples = self.samples().into_iter();
        self.has_ended
            && self.passes.len() >= self.of_passes.len()
            && samples.all(|id| matches!(self.is_sample_ready(id), Ok(true)))
    }

    /// The sample in each pass that it needs; `None` where it is not.
    fn parts(&self, id: u32) -> impl Iterator<Item = Option<&SampleCounts>> {
        (0..self.of_passes.len()).map(move |pass| self.passes.get(pass)?.sample(id))
    }

    pub fn is_sample_ready(&self, id: u32) -> Result<bool, SessionError> {
        if !self.has_ended {
            return Ok(false);
        }
        if self.parts(id).any(|part| part.is_none()) {
            return Err(SessionError::NotInAllPasses(id));
        }
        Ok(self.parts(id).flatten().all(|part| part.pending == 0))
    }

    /// The counts of a sample in all passes. Its time is that of the last one.
    pub fn sum(&self, id: u32) -> Sum {
        let mut all = Sum::default();
        for part in self.parts(id).flatten() {
            all.readings.extend(part.sum.readings.iter().cloned());
            all.duration = part.sum.duration;
            all.kernels = all.kernels.max(part.sum.kernels);
            if part.sum.kernels > 0 {
                all.properties.clone_from(&part.sum.properties);
            }
        }
        // Without kernels nothing has been counted.
        for counted in self.set.counted() {
            if !all.readings.iter().any(|(of, _)| *of == counted) {
                all.readings.push((counted, CounterReading::of(0)));
            }
        }
        all
    }
}

impl SessionLog {
    pub fn check_idle(&self) -> Result<(), SessionError> {
        if self.is_sampling {
            Err(SessionError::Sampling)
        } else {
            Ok(())
        }
    }

    /// Whether kernels of samples have not ended.
    pub fn is_busy(&self) -> bool {
        !self.pending.is_empty()
    }

    fn current(&mut self) -> Result<&mut CounterSession, SessionError> {
        let last = self.sessions.back_mut().filter(|_| self.is_sampling);
        last.ok_or(SessionError::NotSampling)
    }

    /// A session that is in progress or has ended.
    pub fn any(&self, number: u32) -> Result<&CounterSession, SessionError> {
        let found = self.sessions.iter().find(|of| of.number == number);
        found.ok_or(SessionError::NoSession(number))
    }

    /// A session that has ended.
    pub fn ended(&self, number: u32) -> Result<&CounterSession, SessionError> {
        let session = self.any(number)?;
        if session.has_ended {
            Ok(session)
        } else {
            Err(SessionError::NoSession(number))
        }
    }

    /// Begins a session; none is in progress.
    pub fn begin(&mut self, set: Arc<CounterSet>, enabled: Vec<u32>) -> u32 {
        self.begun += 1;
        self.is_sampling = true;
        let passes = set.passes().len().max(1);
        let of_pass = |pass| Arc::new(set.of_pass(pass));
        self.sessions.push_back(CounterSession {
            number: self.begun,
            enabled,
            of_passes: (0..passes).map(of_pass).collect(),
            set,
            passes: Vec::new(),
            is_pass_open: false,
            is_sample_open: false,
            has_ended: false,
        });
        self.begun
    }

    pub fn end(&mut self) -> Result<(), SessionError> {
        let session = self.current()?;
        if session.is_pass_open {
            return Err(SessionError::PassStarted);
        }
        session.has_ended = true;
        self.is_sampling = false;
        while self.sessions.len() > KEPT_SESSIONS {
            self.sessions.pop_front();
        }
        Ok(())
    }

    pub fn begin_pass(&mut self) -> Result<(), SessionError> {
        let session = self.current()?;
        if session.is_pass_open {
            return Err(SessionError::PassStarted);
        }
        session.is_pass_open = true;
        session.passes.push(Pass::default());
        Ok(())
    }

    pub fn end_pass(&mut self) -> Result<(), SessionError> {
        let session = self.current().map_err(|_| SessionError::PassNotStarted)?;
        if !session.is_pass_open {
            return Err(SessionError::PassNotStarted);
        }
        if session.is_sample_open {
            return Err(SessionError::SampleStarted);
        }
        session.is_pass_open = false;
        let first = session.samples().len();
        let Some(pass) = session.passes.last_mut() else {
            return Ok(());
        };
        pass.has_ended = true;
        match pass.samples.len() {
            samples if samples != first => Err(SessionError::OtherSamples { samples, first }),
            _ => Ok(()),
        }
    }

    pub fn begin_sample(&mut self, id: u32) -> Result<(), SessionError> {
        let session = self.current()?;
        let pass = session.passes.last_mut().filter(|_| session.is_pass_open);
        let pass = pass.ok_or(SessionError::PassNotStarted)?;
        if session.is_sample_open {
            return Err(SessionError::SampleStarted);
        }
        if pass.places.contains_key(&id) {
            return Err(SessionError::SampleExists(id));
        }
        session.is_sample_open = true;
        pass.places.insert(id, pass.samples.len());
        pass.samples.push(SampleCounts {
            id,
            ..SampleCounts::default()
        });
        Ok(())
    }

    pub fn end_sample(&mut self) -> Result<(), SessionError> {
        let session = self.current().map_err(|_| SessionError::SampleNotStarted)?;
        if !session.is_sample_open {
            return Err(SessionError::SampleNotStarted);
        }
        session.is_sample_open = false;
        Ok(())
    }

    /// The sample that has begun, with the number of its session.
    fn open_sample(&mut self) -> Option<(u32, PassSample)> {
        let session = self.current().ok()?;
        if !session.is_sample_open {
            return None;
        }
        let pass = session.passes.len().checked_sub(1)?;
        let place = session.passes.last()?.samples.len().checked_sub(1)?;
        Some((session.number, PassSample { pass, place }))
    }

    /// A sample of a session that is kept, and the counters of its pass. Passes that are not needed have none.
    fn sample(
        &mut self,
        number: u32,
        part: PassSample,
    ) -> Option<(&mut SampleCounts, &Arc<CounterSet>)> {
        let mut sessions = self.sessions.iter_mut();
        let session = sessions.find(|session| session.number == number)?;
        let samples = &mut session.passes.get_mut(part.pass)?.samples;
        let set = session.of_passes.get(part.pass)?;
        Some((samples.get_mut(part.place)?, set))
    }

    /// The counters of a kernel that is about to be enqueued by `call`. The kernels of one call (a graph's) belong to one
    /// sample, since they may end in another order.
    pub fn choose(&mut self, call: CorrelationId) -> Option<Arc<CounterSet>> {
        let (number, part) = match self.pending.get(&call) {
            Some((number, part, _)) => (*number, *part),
            None => self.open_sample()?,
        };
        let (sample, set) = self.sample(number, part)?;
        sample.pending += 1;
        let set = set.clone();
        let (.., kernels) = self.pending.entry(call).or_insert((number, part, 0));
        *kernels += 1;
        Some(set)
    }

    pub fn measured(&mut self, dispatch: &DispatchReadings) {
        if let Some(sample) = self.ended_kernel(dispatch.call) {
            sample.sum.add(dispatch);
        }
    }

    pub fn abandoned(&mut self, call: CorrelationId) {
        self.ended_kernel(call);
    }

    /// Takes a kernel off those that have not ended, and returns its sample, unless its session is no longer kept.
    fn ended_kernel(&mut self, call: CorrelationId) -> Option<&mut SampleCounts> {
        let (number, part, kernels) = self.pending.get_mut(&call)?;
        let (number, part) = (*number, *part);
        *kernels -= 1;
        if *kernels == 0 {
            self.pending.remove(&call);
        }
        let (sample, _) = self.sample(number, part)?;
        sample.pending -= 1;
        Some(sample)
    }
}
