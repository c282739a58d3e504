//! Statuses: the results of the functions of the C API.

use core::ffi::CStr;

/// The result of a function: `GPUTRAIL_OK`, or an error. Values keep their meaning in all versions.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[repr(transparent)]
pub struct Status(pub i32);

macro_rules! statuses {
    ($($name:ident = $value:literal, $text:literal;)*) => {
        impl Status {
            $(#[doc = $text] pub const $name: Status = Status($value);)*

            /// Every status that this version returns: its name without the prefix, its value and its sentence.
            pub const ALL: &'static [(&'static str, Status, &'static str)] =
                &[$((stringify!($name), Status($value), $text)),*];

            /// Its name and its sentence, for C; `None` for a status of another version.
            pub fn texts(self) -> Option<(&'static CStr, &'static CStr)> {
                let texts: (&str, &str) = match self {
                    $(Status::$name => (concat!("GPUTRAIL_", stringify!($name), "\0"), concat!($text, "\0")),)*
                    _ => return None,
                };
                let c = |text: &'static str| CStr::from_bytes_with_nul(text.as_bytes()).ok();
                Some((c(texts.0)?, c(texts.1)?))
            }
        }
    };
}

statuses! {
    OK = 0, "it is done";
    END = 1, "no more elements";
    NULL_POINTER = -1, "a required pointer is null";
    INVALID_ARGUMENT = -2, "invalid argument";
    WRONG_SIZE = -3, "the size field of a structure is not its size in any version of this library";
    TOO_SMALL = -4, "the memory for the answer is too small; the required size was returned";
    NOT_INITIALISED = -5, "gputrail_initialise has not been called in this process, or gputrail_finalise has";
    NOT_AVAILABLE = -6, "the library cannot work in this process: it is ending, or the system refused memory";
    NO_SUCH_CONTEXT = -7, "no such context: it has been destroyed, or the id belongs to another kind of object";
    NO_SUCH_BUFFER = -8, "no such buffer: it has been destroyed, or the id belongs to another kind of object";
    NO_SUCH_SUBSCRIBER = -9, "no such subscriber: it has been ended, or the id belongs to another kind of object";
    NO_SUCH_SERVICE = -10, "the context has no service for this buffer or subscriber";
    LOCKED = -11, "the context has been started before, which locks its services";
    CONFLICT = -12, "the context has such a service already";
    STARTED = -13, "the context is started already";
    STOPPED = -14, "the context is not started";
    UNKNOWN_KIND = -15, "nothing produces records of this kind for buffers: see gputrail_kind_producer";
    UNKNOWN_OPERATION = -16, "unknown operation or domain";
    NOT_ALONE = -17, "this kind of records requires another one, which was not selected";
    BUSY = -18, "not allowed within a callback";
    LAYOUT = -19, "invalid buffer sizes";
    OUT_OF_MEMORY = -20, "the system refused memory";
    NO_THREAD = -21, "the system refused a thread";
    TOO_MANY = -22, "too many objects of this kind";
    NOT_FOUND = -23, "no object has this id or name";
    MALFORMED = -24, "malformed records";
    STACK_EMPTY = -25, "the stack is empty";
    STACK_FULL = -26, "the stack is full";
    CLOCK_UNKNOWN = -27, "the agent's clock is unknown: it has not yet been read together with the host's";
    NO_SUCH_TOOL = -28, "no such tool: it has been finalised, or the id belongs to another kind of object";
    NO_SUCH_TIMELINE = -29, "no such timeline: it has been destroyed, or the id belongs to another kind of object";
    ATTRIBUTES_LOCKED = -30, "a context has been started: attributes are set before that";
    NO_SUCH_FLIGHT = -31, "no such flight recorder: it has been stopped, or the id belongs to another kind of object";
    NOT_WRITTEN = -32, "a file could not be written";
    NO_SUCH_THREAD = -33, "no such callback thread: it has been destroyed, or the id belongs to another kind of object";
    NO_SUCH_WATCH = -34, "no such watch: it has been ended, or the id belongs to another kind of object";
    SAMPLING_NOT_AVAILABLE = -35, "the agent does not offer this sampling configuration at present: query its configurations again";
    CONTEXT_CONFLICT = -36, "another context has this service, or this one has a service that excludes it";
    NO_SUCH_AGENT = -37, "no source has an agent with this id";
    TOO_LATE = -38, "the program has used OpenCL already: its calls can no longer be observed";
    COUNTERS_NOT_AVAILABLE = -39, "the agent does not offer these counters, or not in this way: ask which it has";
    NO_SUCH_COUNTER_GROUP = -40, "no such group of counters: it has been destroyed, or the id belongs to another kind of object";
    WRONG_TYPE = -41, "the value is of another type";
    NO_SUCH_COUNTER_SET = -42, "no such set of counters: it has been destroyed, or the id belongs to another kind of object";
    SAMPLING_INCOMPATIBLE_SYSTEM = -43, "the system does not allow PC sampling: its kernel or driver lacks it, or a setting forbids it";
    SAMPLING_FAILED = -44, "configuring PC sampling failed although the system allows it: the text of the failure has the cause";
    NO_SUCH_COUNTER_SESSIONS = -60, "no such opened counters: they have been closed, or the id belongs to another kind of object";
    OUT_OF_RANGE = -61, "no counter has this index";
    ALREADY_ENABLED = -62, "the counter is enabled already";
    NOT_ENABLED = -63, "the counter is not enabled";
    NO_COUNTERS_ENABLED = -64, "no counter is enabled";
    SESSION_STARTED = -65, "a session is in progress";
    SESSION_NOT_STARTED = -66, "no session has begun";
    PASS_STARTED = -67, "a pass has begun and not ended";
    PASS_NOT_STARTED = -68, "no pass has begun";
    SAMPLE_STARTED = -69, "a sample has begun and not ended";
    SAMPLE_NOT_STARTED = -70, "no sample has begun";
    SAMPLES_DIFFER = -71, "the pass has another number of samples than the first one";
    NO_SUCH_SESSION = -72, "no results of this session: it has not ended, or too many have since";
    NO_SUCH_SAMPLE = -73, "not all passes of the session have this sample";
    NO_VALUE = -74, "the value could not be measured or computed";
    NO_SUCH_COUNTER_POOL = -75, "no such pool: it has been closed, or the id belongs to another kind of object";
    INTERNAL = -99, "an internal error of gputrail; the library continues to work";
}
