//! Sessions of counters: passes over the same work, and samples of parts of it (GPUPerfAPI).
//!
//! A tool opens the counters of an agent, or of one of its queues, enables some, and begins a session. It does its work once for
//! each pass, and brackets the parts whose values it wants: the samples, which have the same ids in each pass. A sample has the
//! kernels that are enqueued between its begin and its end. While a session lasts, the agent's kernels run one after the other,
//! and no other tool of the process counts or samples.

use super::Error;
use super::counting::text as library_text;
use super::functions::{act, ask, c_string, call, check, list, text};
use gputrail_interface::c::{
    CounterSessionsHandle, CounterSessionsOptions, SampleValue, SessionCounter as CounterData,
    SizedStruct,
};
use gputrail_interface::counting::{Number, SampleNumber, SessionOptions};
use gputrail_record::{AgentId, CounterInvalid, CounterUsage, CounterValueType};

/// A counter or metric that can be enabled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionCounter {
    /// Its name.
    pub name: &'static str,
    /// A description.
    pub description: &'static str,
    /// The type of its values: whole numbers of counters, floating-point numbers of metrics.
    pub value_type: CounterValueType,
    /// The unit of its values.
    pub usage: CounterUsage,
}

/// The counters of an agent, opened for sessions. Dropping it ends the session in progress, outside of callbacks.
#[derive(Debug)]
pub struct CounterSessions(CounterSessionsHandle);

impl CounterSessions {
    /// Opens the counters that an agent can count now, none of them enabled.
    ///
    /// # Errors
    ///
    /// `NO_SUCH_AGENT`, `COUNTERS_NOT_AVAILABLE`; `BUSY` within a buffer's callback.
    pub fn open(agent: AgentId, options: SessionOptions) -> Result<CounterSessions, Error> {
        let asked = CounterSessionsOptions {
            queue: options.queue.unwrap_or_default(),
            per_pass: options.per_pass.map_or(0, |limit| limit.get()),
            ..CounterSessionsOptions::blank()
        };
        let mut handle = CounterSessionsHandle::default();
        // SAFETY: options of that size, and a place for the handle.
        check(unsafe { call!(gputrail_counter_sessions_open(agent, &asked, &mut handle)) })?;
        Ok(CounterSessions(handle))
    }

    /// The counters and metrics, by their index.
    ///
    /// # Errors
    ///
    /// `NOT_INITIALISED` after the tool's end.
    pub fn counters(&self) -> Result<Vec<SessionCounter>, Error> {
        let all: Vec<CounterData> = list!(gputrail_counter_sessions_counters(self.0))?;
        let of = |one: CounterData| SessionCounter {
            name: library_text(one.name),
            description: library_text(one.description),
            value_type: one.value_type,
            usage: one.usage,
        };
        Ok(all.into_iter().map(of).collect())
    }

    /// The index of the counter with this name, upper and lower case alike.
    ///
    /// # Errors
    ///
    /// `NOT_FOUND`, with the nearest names.
    pub fn find(&self, name: &str) -> Result<u32, Error> {
        let name = c_string(name)?;
        let mut found = 0;
        // SAFETY: a text that ends with a 0, and a place for the answer.
        check(unsafe {
            call!(gputrail_counter_sessions_find(
                self.0,
                name.as_ptr(),
                &mut found
            ))
        })?;
        Ok(found)
    }

    /// Enables a counter for the sessions that begin later.
    ///
    /// # Errors
    ///
    /// `OUT_OF_RANGE`, `ALREADY_ENABLED`, `SESSION_STARTED`.
    pub fn enable(&self, counter: u32) -> Result<(), Error> {
        act!(gputrail_counter_sessions_enable(self.0, counter))
    }

    /// Disables a counter for the sessions that begin later.
    ///
    /// # Errors
    ///
    /// `OUT_OF_RANGE`, `NOT_ENABLED`, `SESSION_STARTED`.
    pub fn disable(&self, counter: u32) -> Result<(), Error> {
        act!(gputrail_counter_sessions_disable(self.0, counter))
    }

    /// Enables or disables all counters.
    ///
    /// # Errors
    ///
    /// `SESSION_STARTED`.
    pub fn enable_all(&self, on: bool) -> Result<(), Error> {
        act!(gputrail_counter_sessions_enable_all(self.0, i32::from(on)))
    }

    /// The indexes of the enabled counters, in ascending order.
    ///
    /// # Errors
    ///
    /// `NOT_INITIALISED` after the tool's end.
    pub fn enabled(&self) -> Result<Vec<u32>, Error> {
        list!(gputrail_counter_sessions_enabled(self.0))
    }

    /// The number of passes that the enabled counters need; 0 if none is enabled.
    ///
    /// # Errors
    ///
    /// `INVALID_ARGUMENT` if they need too many; `COUNTERS_NOT_AVAILABLE`.
    pub fn passes(&self) -> Result<u32, Error> {
        ask!(gputrail_counter_sessions_passes(self.0))
    }

    /// Begins a session with the enabled counters, and returns its number.
    ///
    /// # Errors
    ///
    /// `SESSION_STARTED`, `NO_COUNTERS_ENABLED`, `CONTEXT_CONFLICT`; as for [`CounterSessions::passes`].
    pub fn begin(&self) -> Result<u32, Error> {
        ask!(gputrail_counter_sessions_begin(self.0))
    }

    /// Ends the session.
    ///
    /// # Errors
    ///
    /// `SESSION_NOT_STARTED`, `PASS_STARTED`; `BUSY` within a buffer's callback.
    pub fn end(&self) -> Result<(), Error> {
        act!(gputrail_counter_sessions_end(self.0))
    }

    /// Begins a pass.
    ///
    /// # Errors
    ///
    /// `SESSION_NOT_STARTED`, `PASS_STARTED`.
    pub fn begin_pass(&self) -> Result<(), Error> {
        act!(gputrail_counter_sessions_begin_pass(self.0))
    }

    /// Ends the pass.
    ///
    /// # Errors
    ///
    /// `PASS_NOT_STARTED`, `SAMPLE_STARTED`, `SAMPLES_DIFFER`.
    pub fn end_pass(&self) -> Result<(), Error> {
        act!(gputrail_counter_sessions_end_pass(self.0))
    }

    /// Begins a sample: kernels that are enqueued from now on belong to it.
    ///
    /// # Errors
    ///
    /// `SESSION_NOT_STARTED`, `PASS_NOT_STARTED`, `SAMPLE_STARTED`; `INVALID_ARGUMENT` if the pass has had this id.
    pub fn begin_sample(&self, sample: u32) -> Result<(), Error> {
        act!(gputrail_counter_sessions_begin_sample(self.0, sample))
    }

    /// Ends the sample.
    ///
    /// # Errors
    ///
    /// `SAMPLE_NOT_STARTED`.
    pub fn end_sample(&self) -> Result<(), Error> {
        act!(gputrail_counter_sessions_end_sample(self.0))
    }

    /// Whether a pass of a session, from 0, has been ended and its kernels have. Does not wait.
    ///
    /// # Errors
    ///
    /// `NO_SUCH_SESSION`.
    pub fn is_pass_complete(&self, session: u32, pass: u32) -> Result<bool, Error> {
        let is: i32 = ask!(gputrail_counter_sessions_is_pass_complete(
            self.0, session, pass
        ))?;
        Ok(is != 0)
    }

    /// Whether all results of a session can be read at once. Does not wait.
    ///
    /// # Errors
    ///
    /// `NO_SUCH_SESSION`.
    pub fn is_ready(&self, session: u32) -> Result<bool, Error> {
        let is: i32 = ask!(gputrail_counter_sessions_is_ready(self.0, session))?;
        Ok(is != 0)
    }

    /// Whether the results of a sample can be read at once. Does not wait.
    ///
    /// # Errors
    ///
    /// `NO_SUCH_SESSION`, `NO_SUCH_SAMPLE`.
    pub fn is_sample_ready(&self, session: u32, sample: u32) -> Result<bool, Error> {
        let is: i32 = ask!(gputrail_counter_sessions_is_sample_ready(
            self.0, session, sample
        ))?;
        Ok(is != 0)
    }

    /// The number of samples of a session.
    ///
    /// # Errors
    ///
    /// `NO_SUCH_SESSION`.
    pub fn samples(&self, session: u32) -> Result<u32, Error> {
        ask!(gputrail_counter_sessions_samples(self.0, session))
    }

    /// The values of all enabled counters for a sample, by ascending index. Waits for the sample's kernels.
    ///
    /// # Errors
    ///
    /// `NO_SUCH_SESSION`, `NO_SUCH_SAMPLE`; `BUSY` within a callback if it would have to wait.
    pub fn values(&self, session: u32, sample: u32) -> Result<Vec<(u32, SampleNumber)>, Error> {
        let all: Vec<SampleValue> =
            list!(gputrail_counter_sessions_values(self.0, session, sample))?;
        let of = |one: SampleValue| {
            let value = match one.value_type {
                _ if one.invalid != CounterInvalid::NO => Err(one.invalid),
                CounterValueType::DOUBLE => Ok(Number::Double(f64::from_bits(one.value))),
                _ => Ok(Number::Uint(one.value)),
            };
            (one.counter, value)
        };
        Ok(all.into_iter().map(of).collect())
    }

    /// The value of a counter for a sample, a whole number. Waits for the sample's kernels.
    ///
    /// # Errors
    ///
    /// `WRONG_TYPE` of metrics; `OUT_OF_RANGE`, `NOT_ENABLED`, `NO_VALUE`; as for [`CounterSessions::values`].
    pub fn uint(&self, session: u32, sample: u32, counter: u32) -> Result<u64, Error> {
        ask!(gputrail_counter_sessions_uint64(
            self.0, session, sample, counter
        ))
    }

    /// The value of a metric for a sample, a floating-point number. Waits for the sample's kernels.
    ///
    /// # Errors
    ///
    /// `WRONG_TYPE` of counters; as for [`CounterSessions::uint`].
    pub fn double(&self, session: u32, sample: u32, counter: u32) -> Result<f64, Error> {
        ask!(gputrail_counter_sessions_double(
            self.0, session, sample, counter
        ))
    }

    /// The results of a session as text, a line for each sample; before them a line of names if `headings`. `None` if there
    /// are none. Waits for the session's kernels.
    pub fn csv(&self, session: u32, headings: bool) -> Option<String> {
        text!(gputrail_counter_sessions_csv(
            self.0,
            session,
            i32::from(headings)
        ))
    }

    /// Closes the opened counters, unless a session is in progress: their results are gone, and other functions say so.
    ///
    /// # Errors
    ///
    /// `SESSION_STARTED`, and they stay open; `BUSY` within a callback.
    pub fn close(&self) -> Result<(), Error> {
        act!(gputrail_counter_sessions_close(self.0))
    }
}

impl Drop for CounterSessions {
    fn drop(&mut self) {
        // What is in progress is ended first, whatever it is; the library may have ended.
        let _ = self.end_sample();
        let _ = self.end_pass();
        let _ = self.end();
        let _ = self.close();
    }
}
