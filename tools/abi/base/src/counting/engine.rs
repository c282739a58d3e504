//! What counts the counters that a library's program has enabled: one context of gputrail, on all devices.
//!
//! It is made anew where more is to be counted. What is counted goes to the library: of devices that are read all the time at periods
//! that end when they are read.

use super::LONGEST_PERIOD;
use gputrail_interface::c::CounterSetHandle;
use gputrail_record::{AgentId, CounterValue, KernelDispatch, Kind};
use gputrail_tool::counting::CountingMode;
use gputrail_tool::{Buffer, BufferOptions, Context, Error, RecordFormat};
use std::collections::BTreeMap;
use std::marker::PhantomData;

/// How a device is counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Way {
    /// What is chosen for each kernel.
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

/// A library that gets what is counted. None of its functions locks what is held while the engine is changed or flushed.
pub trait Counts: 'static {
    /// The counters of a kernel that is being enqueued.
    fn choose(_agent: AgentId, _kernel: &KernelDispatch) -> Option<CounterSetHandle> {
        None
    }

    /// Takes the values of a kernel.
    fn kernel(_values: &[CounterValue]) {}

    /// Takes a value of a period of a device.
    fn period(value: &CounterValue);
}

/// The engine.
pub struct Engine<C> {
    /// The buffer of values. It lasts as long as the process: within callbacks buffers are not destroyed.
    buffer: Option<Buffer>,
    counting: Option<(Ways, Context)>,
    of: PhantomData<fn() -> C>,
}

impl<C: Counts> Engine<C> {
    /// An engine that counts nothing.
    #[allow(clippy::new_without_default)] // for statics alone
    pub const fn new() -> Engine<C> {
        Engine {
            buffer: None,
            counting: None,
            of: PhantomData,
        }
    }

    /// How devices are counted now.
    pub fn ways(&self) -> Ways {
        let counting = self.counting.as_ref();
        counting.map_or(Ways::new(), |(ways, _)| ways.clone())
    }

    /// Has devices counted in these ways: more may be counted, unless there are none. What has been counted is delivered, which within
    /// callbacks is not possible.
    ///
    /// # Errors
    ///
    /// Those of counting. Then it counts as before.
    pub fn change(&mut self, ways: &Ways) -> Result<(), Error> {
        let serves = |own: &Ways| {
            let mut wanted = ways.iter();
            wanted.all(|(agent, way)| own.get(agent).is_some_and(|own| own.serves(way)))
        };
        let before = match &self.counting {
            Some((own, _)) if !ways.is_empty() && serves(own) => return Ok(()),
            Some((own, context)) => {
                let own = own.clone();
                let _ = self.flush();
                context.stop()?;
                self.counting = None;
                // What it had counted when it stopped.
                let _ = self.flush_buffer();
                own
            }
            None => Ways::new(),
        };
        self.begin(ways).inspect_err(|_| {
            let _ = self.begin(&before);
        })
    }

    fn begin(&mut self, ways: &Ways) -> Result<(), Error> {
        if ways.is_empty() {
            return Ok(());
        }
        let buffer = match &mut self.buffer {
            Some(buffer) => buffer,
            none => none.insert(Self::buffer()?),
        };
        let context = Context::new()?;
        context.trace_to(buffer, &[Kind::KERNEL_DISPATCH])?;
        for (agent, way) in ways {
            let agent = *agent;
            match way {
                Way::Kernels => {
                    let choose = move |kernel: &KernelDispatch| C::choose(agent, kernel);
                    context.count_chosen(buffer, agent, choose, C::kernel)?;
                }
                Way::Always(names) => {
                    let mode = CountingMode::Device {
                        period: LONGEST_PERIOD,
                    };
                    context.count_each_instance(buffer, agent, names, mode)?;
                }
            }
        }
        context.start()?;
        self.counting = Some((ways.clone(), context));
        Ok(())
    }

    fn buffer() -> Result<Buffer, Error> {
        let options = BufferOptions {
            format: RecordFormat::Raw,
            ..BufferOptions::default()
        };
        Buffer::new(options, |batch| {
            for record in batch.records() {
                // Those of kernels have been counted.
                if let Some(value) = record.get::<CounterValue>()
                    && !value.work.is_some()
                {
                    C::period(value);
                }
            }
        })
    }

    /// Ends the periods in progress, and has their values taken.
    ///
    /// # Errors
    ///
    /// `BUSY` within callbacks.
    pub fn flush(&self) -> Result<(), Error> {
        let reads = |(ways, _): &(Ways, Context)| ways.values().any(|way| *way != Way::Kernels);
        if self.counting.as_ref().is_some_and(reads) {
            return self.flush_buffer();
        }
        Ok(())
    }

    fn flush_buffer(&self) -> Result<(), Error> {
        self.buffer.as_ref().map_or(Ok(()), Buffer::flush)
    }
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
