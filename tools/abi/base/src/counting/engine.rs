//! An engine that counts for a library's program: a context of gputrail, on all devices for which that is wanted.
//!
//! The context is made anew where more is to be counted. Values go to the library. Devices that are counted all the time are read at
//! periods that end when they are read.

use super::{LONGEST_PERIOD, name_of};
use gputrail_interface::c::CounterSetHandle;
use gputrail_record::{AgentId, CounterValue, KernelDispatch, Kind};
use gputrail_tool::counting::{self, CountingMode};
use gputrail_tool::{Buffer, BufferOptions, Context, Error, RecordFormat};
use std::collections::BTreeMap;

/// How a device is counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Way {
    /// Counters that are chosen for each kernel.
    Kernels,
    /// These counters, all the time.
    Always(Vec<&'static str>),
}

impl Way {
    /// Whether a device that is counted in this way need not be changed for another one.
    fn serves(&self, wanted: &Way) -> bool {
        match (self, wanted) {
            (Way::Kernels, Way::Kernels) => true,
            (Way::Always(own), Way::Always(wanted)) => wanted.iter().all(|one| own.contains(one)),
            _ => false,
        }
    }
}

/// How devices are counted.
pub type Ways = BTreeMap<AgentId, Way>;

/// A library, or a part of it, that gets what is counted. Its functions lock nothing that is held while the engine is changed or
/// flushed.
pub trait Counts: Clone + Send + Sync + 'static {
    /// Whether nobody else can count, also before a device is known.
    const IS_RESERVED: bool = false;

    /// Whether a device that cannot be counted, for this reason, is left out.
    fn is_left_out(_reason: &Error) -> bool {
        false
    }

    /// The counters of a kernel that is being enqueued.
    fn choose(&self, _agent: AgentId, _kernel: &KernelDispatch) -> Option<CounterSetHandle> {
        None
    }

    /// Takes the values of a kernel.
    fn kernel(&self, _values: &[CounterValue]) {}

    /// Takes a value of a period of a device.
    fn period(&self, _value: &CounterValue) {}
}

/// The engine.
pub struct Engine<C> {
    counting: Option<(Ways, Context)>,
    /// The buffer of values. It lasts as long as the engine: within callbacks buffers are not destroyed.
    buffer: Option<Buffer>,
    of: C,
}

impl<C: Counts> Engine<C> {
    /// An engine that counts nothing.
    pub const fn new(of: C) -> Engine<C> {
        Engine {
            counting: None,
            buffer: None,
            of,
        }
    }

    /// How devices are counted now.
    pub fn ways(&self) -> Ways {
        let counting = self.counting.as_ref();
        counting.map_or(Ways::new(), |(ways, _)| ways.clone())
    }

    /// Whether anything is counted, or kept from others.
    pub fn counts(&self) -> bool {
        self.counting.is_some()
    }

    /// Has all devices that are known by now counted as it is chosen for each kernel.
    ///
    /// # Errors
    ///
    /// An error of counting. Then it counts as before.
    pub fn count_kernels(&mut self) -> Result<(), Error> {
        let known = counting::agents()?.into_iter();
        self.change(&known.map(|agent| (agent, Way::Kernels)).collect())
    }

    /// Has devices counted in these ways. More may be counted, unless there are none: then it stops, or only keeps others from
    /// counting ([`Counts::IS_RESERVED`]).
    ///
    /// # Errors
    ///
    /// An error of counting. Then it counts as before.
    pub fn change(&mut self, ways: &Ways) -> Result<(), Error> {
        if let Some((own, _)) = &self.counting {
            let serves = |(agent, way)| own.get(agent).is_some_and(|own: &Way| own.serves(way));
            if !ways.is_empty() && ways.iter().all(serves) {
                return Ok(());
            }
        }
        let before = self.counts().then(|| self.ways());
        self.stop();
        self.begin(ways).inspect_err(|_| {
            if let Some(before) = before {
                let _ = self.begin(&before);
            }
        })
    }

    fn begin(&mut self, ways: &Ways) -> Result<(), Error> {
        if ways.is_empty() && !C::IS_RESERVED {
            return Ok(());
        }
        let buffer = match &mut self.buffer {
            Some(buffer) => buffer,
            none => none.insert(buffer(self.of.clone())?),
        };
        let context = Context::new()?;
        if C::IS_RESERVED {
            context.reserve_counters()?;
        }
        context.trace_to(buffer, &[Kind::KERNEL_DISPATCH])?;
        for (agent, way) in ways {
            match count(&self.of, &context, buffer, *agent, way) {
                Err(reason) if C::is_left_out(&reason) => {}
                counted => counted?,
            }
        }
        context.start()?;
        self.counting = Some((ways.clone(), context));
        Ok(())
    }

    /// Ends counting. What has been counted is taken, which within callbacks is not possible.
    pub fn stop(&mut self) {
        let reads = self.reads();
        let _ = self.flush();
        if let Some((_, context)) = self.counting.take() {
            // The context may have been given up, for want of places.
            let _ = context.stop();
        }
        if reads && let Some(buffer) = &self.buffer {
            // Values of the last periods.
            let _ = buffer.flush();
        }
    }

    /// Ends the periods in progress, and has their values taken.
    ///
    /// # Errors
    ///
    /// `BUSY` within callbacks.
    pub fn flush(&self) -> Result<(), Error> {
        match &self.buffer {
            Some(buffer) if self.reads() => buffer.flush(),
            _ => Ok(()),
        }
    }

    /// Whether devices are counted all the time.
    fn reads(&self) -> bool {
        let counting = self.counting.as_ref();
        counting.is_some_and(|(ways, _)| ways.values().any(|way| *way != Way::Kernels))
    }
}

/// Has a device counted.
fn count<C: Counts>(
    of: &C,
    context: &Context,
    buffer: &Buffer,
    agent: AgentId,
    way: &Way,
) -> Result<(), Error> {
    match way {
        Way::Kernels => {
            let (chooser, taker) = (of.clone(), of.clone());
            let choose = move |kernel: &KernelDispatch| chooser.choose(agent, kernel);
            let take = move |values: &[CounterValue]| {
                values.iter().for_each(know_name);
                taker.kernel(values);
            };
            context.count_chosen(buffer, agent, choose, take)
        }
        Way::Always(names) => {
            let mode = CountingMode::Device {
                period: LONGEST_PERIOD,
            };
            context.count_each_instance(buffer, agent, names, mode)
        }
    }
}

/// Looks up the name of a value's counter where no lock is held: then it is known.
fn know_name(value: &CounterValue) {
    drop(name_of(value.counter));
}

/// The buffer of values.
fn buffer<C: Counts>(of: C) -> Result<Buffer, Error> {
    let options = BufferOptions {
        format: RecordFormat::Raw,
        ..BufferOptions::default()
    };
    Buffer::new(options, move |batch| {
        for record in batch.records() {
            // Values of kernels have been taken.
            if let Some(value) = record.get::<CounterValue>()
                && !value.work.is_some()
            {
                know_name(value);
                of.period(value);
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_that_counts_more_need_not_be_changed() {
        let all = Way::Always(vec!["A", "B"]);
        assert!(all.serves(&Way::Always(vec!["B"])));
        assert!(!Way::Always(vec!["B"]).serves(&all));
        assert!(!all.serves(&Way::Kernels) && !Way::Kernels.serves(&all));
        assert!(Way::Kernels.serves(&Way::Kernels));
    }
}
