//! Values of counters (rocprofiler-sdk: counter records of dispatch and device counting; CUPTI: `CUpti_ActivityEvent`,
//! `CUpti_ActivityMetric`).

use super::*;

open_enum! {
    /// The type of a counter's value.
    CounterValueType(u8) {
        /// An unsigned integer.
        UINT64 = 0, "uint64";
        /// The bits of a double.
        DOUBLE = 1, "double";
    }
}

open_enum! {
    /// The reason for which a value is invalid; the value is 0 then.
    CounterInvalid(u8) {
        /// The value is valid.
        NO = 0, "valid";
        /// A metric divides by zero.
        DIVISION_BY_ZERO = 1, "division by zero";
        /// A result is larger than a number can be.
        OVERFLOW = 2, "overflow";
        /// A counter or property that a metric needs has no value.
        MISSING = 3, "a counter that it needs has no value";
        /// The dispatch could not be separated from other work of the agent.
        NOT_SERIALIZED = 4, "the dispatch was not alone on the agent";
        /// The counter did not count during the dispatch: others had its place.
        NOT_SCHEDULED = 5, "the counter was never scheduled";
        /// The system does not allow the counter.
        NOT_PERMITTED = 6, "the system does not allow it";
        /// Several passes: the kernel uses shared virtual memory, which cannot be saved.
        SHARED_MEMORY = 7, "several passes: the kernel uses shared virtual memory";
        /// Several passes: the kernel uses a pipe, which cannot be saved.
        PIPE = 8, "several passes: the kernel uses a pipe";
        /// Several passes: memory of the kernel is mapped, so that the program may change it at any time.
        MAPPED = 9, "several passes: memory of the kernel is mapped";
        /// Several passes: memory of the kernel lies in memory of the program, which may change it at any time.
        HOST_POINTER = 10, "several passes: memory of the kernel lies in the program's own";
        /// Several passes: the memory of the kernel is too large to be saved.
        TOO_LARGE = 11, "several passes: the memory of the kernel is too large to save";
        /// Several passes: the kernel may print, or change variables of its program, which cannot be undone.
        SIDE_EFFECTS = 12, "several passes: the kernel may print or change variables of its program";
        /// Several passes: an argument of the kernel was set before counting was configured, or in an unknown way.
        UNKNOWN_ARGUMENT = 13, "several passes: an argument of the kernel is not known";
        /// Several passes: memory of the kernel could not be copied.
        NOT_SAVED = 14, "several passes: memory of the kernel could not be saved";
        /// Several passes: a pass failed, or lasted too long.
        PASS_FAILED = 15, "several passes: a pass failed or lasted too long";
        /// Another range of markers was counted when this one began.
        OTHER_RANGE = 16, "another range was counted at that time";
        /// The end of the dispatch could not be waited for: its work may wait for the program, or takes long.
        NOT_AWAITED = 17, "the dispatch could not be waited for, as after a user event, or on a thread that began late";
    }
}

open_enum! {
    /// The unit of a counter's values (GPUPerfAPI: `GpaUsageType`).
    CounterUsage(u8) {
        /// Events.
        ITEMS = 0, "items";
        /// A share, in percent.
        PERCENTAGE = 1, "percentage";
        /// A share.
        RATIO = 2, "ratio";
        /// Bytes.
        BYTES = 3, "bytes";
        /// Kilobytes.
        KILOBYTES = 4, "kilobytes";
        /// Nanoseconds.
        NANOSECONDS = 5, "nanoseconds";
        /// Milliseconds.
        MILLISECONDS = 6, "milliseconds";
        /// Cycles of the agent's clock.
        CYCLES = 7, "cycles";
        /// Millionths of a joule.
        MICROJOULES = 8, "microjoules";
    }
}

/// The value of a counter or metric for one dispatch, for a span of time of the agent, or for a range of markers. 80 bytes.
///
/// The values of one dispatch, span or range follow each other on a lane; `remaining` tells where they end.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct CounterValue {
    /// Kind [`Kind::COUNTER_VALUE`].
    pub header: Header,
    /// The call that enqueued the dispatch; none for a span of time or a range.
    pub correlation: CorrelationId,
    /// The dispatch; none for a span of time or a range.
    pub work: WorkId,
    /// When the span began; 0 for a dispatch, whose times are in its completion. Of a range: the time of the marker that began
    /// it, in the host's clock.
    pub start: DeviceTime,
    /// When the span ended. Of a range: the time of the marker that ended it, in the host's clock.
    pub end: DeviceTime,
    /// The value: an integer, or the bits of a double.
    pub value: u64,
    /// The agent.
    pub agent: AgentId,
    /// The queue of the dispatch.
    pub queue: QueueId,
    /// The name of the counter or metric.
    pub counter: StringId,
    /// The name of its block; none for metrics.
    pub block: StringId,
    /// The instance of the block; 0xffffffff if all of them are added up.
    pub instance: u32,
    /// The number of values of this dispatch, span or range that follow.
    pub remaining: u16,
    /// The share of the time during which the counter counted, in thousandths. The value is scaled to the whole time.
    pub scheduled: u16,
    /// The type of `value`.
    pub value_type: CounterValueType,
    /// The reason for which the value is invalid.
    pub invalid: CounterInvalid,
    /// The unit.
    pub usage: CounterUsage,
    /// Reserved, 0.
    pub reserved: u8,
    /// The name of the range of markers; none for a dispatch or a span of time.
    pub range: StringId,
}
record!(CounterValue, Kind::COUNTER_VALUE, 80);

/// [`CounterValue::instance`] of a value that all instances of a block have together.
pub const ALL_INSTANCES: u32 = u32::MAX;
/// [`CounterValue::scheduled`] of a counter that counted all the time.
pub const ALWAYS_SCHEDULED: u16 = 1000;

impl CounterValue {
    /// The value as a number, unless it is invalid or of an unknown type.
    pub fn number(&self) -> Option<f64> {
        let number = match self.value_type {
            _ if self.invalid != CounterInvalid::NO => return None,
            CounterValueType::UINT64 => self.value as f64,
            CounterValueType::DOUBLE => f64::from_bits(self.value),
            _ => return None,
        };
        number.is_finite().then_some(number)
    }

    /// The record with an integer as its value.
    pub fn with_uint(mut self, value: u64) -> CounterValue {
        (self.value, self.value_type) = (value, CounterValueType::UINT64);
        self
    }

    /// The record with a floating-point number as its value. A number that is not finite makes it invalid.
    pub fn with_double(mut self, value: f64) -> CounterValue {
        self.value_type = CounterValueType::DOUBLE;
        if value.is_finite() {
            self.value = value.to_bits()
        } else {
            (self.value, self.invalid) = (0, CounterInvalid::OVERFLOW)
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_is_no_number_is_invalid() {
        let blank = CounterValue::blank();
        assert_eq!(blank.with_uint(7).number(), Some(7.0));
        assert_eq!(blank.with_double(0.5).number(), Some(0.5));
        let infinite = blank.with_double(f64::INFINITY);
        assert_eq!(infinite.number(), None);
        assert_eq!(infinite.invalid, CounterInvalid::OVERFLOW);
        // Files may say anything.
        let mut hostile = blank.with_double(1.0);
        hostile.value = f64::NAN.to_bits();
        assert_eq!(hostile.number(), None);
        hostile.value_type = CounterValueType(9);
        assert_eq!(hostile.number(), None);
    }
}
