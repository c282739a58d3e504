//! Types of the API. The guide names the enumerators; their numbers are those of version 2.

use gputrail_abi::enumeration;
use gputrail_record::{CounterUsage, CounterValueType};
use gputrail_tool::{self as tool, Status as Of};

enumeration! {
    /// The result of a function (`GPA_Status`).
    Status {
        OK = 0, "GPA_STATUS_OK";
        NULL_POINTER = 1, "GPA_STATUS_ERROR_NULL_POINTER";
        COUNTERS_NOT_OPEN = 2, "GPA_STATUS_ERROR_COUNTERS_NOT_OPEN";
        COUNTERS_ALREADY_OPEN = 3, "GPA_STATUS_ERROR_COUNTERS_ALREADY_OPEN";
        INDEX_OUT_OF_RANGE = 4, "GPA_STATUS_ERROR_INDEX_OUT_OF_RANGE";
        NOT_FOUND = 5, "GPA_STATUS_ERROR_NOT_FOUND";
        ALREADY_ENABLED = 6, "GPA_STATUS_ERROR_ALREADY_ENABLED";
        NO_COUNTERS_ENABLED = 7, "GPA_STATUS_ERROR_NO_COUNTERS_ENABLED";
        NOT_ENABLED = 8, "GPA_STATUS_ERROR_NOT_ENABLED";
        SAMPLING_NOT_STARTED = 9, "GPA_STATUS_ERROR_SAMPLING_NOT_STARTED";
        SAMPLING_ALREADY_STARTED = 10, "GPA_STATUS_ERROR_SAMPLING_ALREADY_STARTED";
        SAMPLING_NOT_ENDED = 11, "GPA_STATUS_ERROR_SAMPLING_NOT_ENDED";
        NOT_ENOUGH_PASSES = 12, "GPA_STATUS_ERROR_NOT_ENOUGH_PASSES";
        PASS_NOT_ENDED = 13, "GPA_STATUS_ERROR_PASS_NOT_ENDED";
        PASS_NOT_STARTED = 14, "GPA_STATUS_ERROR_PASS_NOT_STARTED";
        PASS_ALREADY_STARTED = 15, "GPA_STATUS_ERROR_PASS_ALREADY_STARTED";
        SAMPLE_NOT_STARTED = 16, "GPA_STATUS_ERROR_SAMPLE_NOT_STARTED";
        SAMPLE_ALREADY_STARTED = 17, "GPA_STATUS_ERROR_SAMPLE_ALREADY_STARTED";
        SAMPLE_NOT_ENDED = 18, "GPA_STATUS_ERROR_SAMPLE_NOT_ENDED";
        CANNOT_CHANGE_COUNTERS_WHEN_SAMPLING = 19, "GPA_STATUS_ERROR_CANNOT_CHANGE_COUNTERS_WHEN_SAMPLING";
        SESSION_NOT_FOUND = 20, "GPA_STATUS_ERROR_SESSION_NOT_FOUND";
        SAMPLE_NOT_FOUND = 21, "GPA_STATUS_ERROR_SAMPLE_NOT_FOUND";
        SAMPLE_NOT_FOUND_IN_ALL_PASSES = 22, "GPA_STATUS_ERROR_SAMPLE_NOT_FOUND_IN_ALL_PASSES";
        COUNTER_NOT_OF_SPECIFIED_TYPE = 23, "GPA_STATUS_ERROR_COUNTER_NOT_OF_SPECIFIED_TYPE";
        READING_COUNTER_RESULT = 24, "GPA_STATUS_ERROR_READING_COUNTER_RESULT";
        VARIABLE_NUMBER_OF_SAMPLES_IN_PASSES = 25, "GPA_STATUS_ERROR_VARIABLE_NUMBER_OF_SAMPLES_IN_PASSES";
        FAILED = 26, "GPA_STATUS_ERROR_FAILED";
        HARDWARE_NOT_SUPPORTED = 27, "GPA_STATUS_ERROR_HARDWARE_NOT_SUPPORTED";
    }
}

enumeration! {
    /// The type of a counter's values (`GPA_Type`).
    DataType {
        FLOAT32 = 0, "gpa_float32";
        FLOAT64 = 1, "gpa_float64";
        UINT32 = 2, "gpa_uint32";
        UINT64 = 3, "gpa_uint64";
        INT32 = 4, "gpa_int32";
        INT64 = 5, "gpa_int64";
    }
}

enumeration! {
    /// The unit of a counter's values (`GPA_Usage_Type`).
    UsageType {
        RATIO = 0, "ratio";
        PERCENTAGE = 1, "percentage";
        CYCLES = 2, "cycles";
        MILLISECONDS = 3, "milliseconds";
        BYTES = 4, "bytes";
        ITEMS = 5, "items";
        KILOBYTES = 6, "kilobytes";
    }
}

enumeration! {
    /// The type of a message, and a set of them (`GPA_Logging_Type`).
    LoggingType {
        NONE = 0, "none";
        ERROR = 1, "error";
        MESSAGE = 2, "message";
        TRACE = 4, "trace";
    }
}

impl LoggingType {
    /// Whether this set has that type.
    pub fn has(self, one: LoggingType) -> bool {
        self.0 & one.0 != 0
    }
}

impl From<CounterValueType> for DataType {
    fn from(value_type: CounterValueType) -> DataType {
        match value_type {
            CounterValueType::DOUBLE => DataType::FLOAT64,
            _ => DataType::UINT64,
        }
    }
}

impl From<CounterUsage> for UsageType {
    /// Nanoseconds, which the API has no unit for, are items.
    fn from(usage: CounterUsage) -> UsageType {
        match usage {
            CounterUsage::PERCENTAGE => UsageType::PERCENTAGE,
            CounterUsage::RATIO => UsageType::RATIO,
            CounterUsage::BYTES => UsageType::BYTES,
            CounterUsage::KILOBYTES => UsageType::KILOBYTES,
            CounterUsage::MILLISECONDS => UsageType::MILLISECONDS,
            CounterUsage::CYCLES => UsageType::CYCLES,
            _ => UsageType::ITEMS,
        }
    }
}

/// A failed call: its status, and a sentence for the logging callback.
#[derive(Debug)]
pub struct Failure {
    pub status: Status,
    pub text: String,
}

impl Failure {
    pub fn new(status: Status, text: impl Into<String>) -> Failure {
        Failure {
            status,
            text: text.into(),
        }
    }

    /// The same failure by the name that a function has for it.
    pub fn told_as(mut self, from: Status, to: Status) -> Failure {
        if self.status == from {
            self.status = to;
        }
        self
    }
}

impl From<tool::Error> for Failure {
    fn from(error: tool::Error) -> Failure {
        let status = match error.status {
            Of::NULL_POINTER => Status::NULL_POINTER,
            Of::OUT_OF_RANGE => Status::INDEX_OUT_OF_RANGE,
            Of::NOT_FOUND => Status::NOT_FOUND,
            Of::ALREADY_ENABLED => Status::ALREADY_ENABLED,
            Of::NOT_ENABLED => Status::NOT_ENABLED,
            Of::NO_COUNTERS_ENABLED => Status::NO_COUNTERS_ENABLED,
            Of::SESSION_STARTED => Status::SAMPLING_ALREADY_STARTED,
            Of::SESSION_NOT_STARTED => Status::SAMPLING_NOT_STARTED,
            Of::PASS_STARTED => Status::PASS_ALREADY_STARTED,
            Of::PASS_NOT_STARTED => Status::PASS_NOT_STARTED,
            Of::SAMPLE_STARTED => Status::SAMPLE_ALREADY_STARTED,
            Of::SAMPLE_NOT_STARTED => Status::SAMPLE_NOT_STARTED,
            Of::SAMPLES_DIFFER => Status::VARIABLE_NUMBER_OF_SAMPLES_IN_PASSES,
            Of::NO_SUCH_SESSION => Status::SESSION_NOT_FOUND,
            Of::NO_SUCH_SAMPLE => Status::SAMPLE_NOT_FOUND,
            Of::WRONG_TYPE => Status::COUNTER_NOT_OF_SPECIFIED_TYPE,
            Of::NO_VALUE => Status::READING_COUNTER_RESULT,
            Of::COUNTERS_NOT_AVAILABLE | Of::NO_SUCH_AGENT => Status::HARDWARE_NOT_SUPPORTED,
            _ => Status::FAILED,
        };
        Failure::new(status, error.text)
    }
}
