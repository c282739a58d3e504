//! API calls.

use super::{EventId, FlowPoint, FunctionIndex, ProcessIndex, TrackIndex, Value};
use gputrail_record::ThreadId;
use gputrail_record::{ArgumentType, CorrelationId, Domain, ExternalId, Nanos, OperationGroup};

/// A function of an API.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Function {
    /// Its index, by which a consumer may find again what it derived from the other fields.
    pub index: FunctionIndex,
    /// Its name.
    pub name: Box<str>,
    /// The API.
    pub domain: Domain,
    /// The category that viewers filter by, if it is not the name of the API.
    pub category: Option<Box<str>>,
    /// The effect of the function: its group in summaries.
    pub group: OperationGroup,
    /// The parameters whose arguments are recorded.
    pub parameters: Vec<Parameter>,
}

/// The name of the parameter whose argument is the call stack of the host: the functions, innermost first, with
/// [`CALLED_BY`](gputrail_code::call_stacks::CALLED_BY) between them.
pub const STACK: &str = "stack";

/// A parameter of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Its name.
    pub name: Box<str>,
    /// The type of its arguments.
    pub kind: ArgumentType,
}

/// An API call.
#[derive(Copy, Clone, Debug)]
pub struct Call<'a> {
    /// The calling process.
    pub process: ProcessIndex,
    /// The calling thread.
    pub thread: ThreadId,
    /// The thread's track.
    pub track: TrackIndex,
    /// The function.
    pub function: &'a Function,
    /// The time of the call.
    pub start: Nanos,
    /// The time of the return; none if the call did not return.
    pub end: Option<Nanos>,
    /// Whether other calls may begin before this one ends. If so, [`Consumer::end`](super::Consumer::end) is called
    /// when it ends, even if `end` is set.
    pub open: bool,
    /// Whether another call made this one.
    pub nested: bool,
    /// Its id.
    pub correlation: CorrelationId,
    /// The id that the program had pushed.
    pub external: ExternalId,
    /// The return code, if the call failed.
    pub error: Option<i32>,
    /// The device work that it submitted.
    pub submitted: &'a [EventId],
    /// The device work that it waited for.
    pub waited: &'a [EventId],
    /// The arguments, in the order of [`Function::parameters`]; empty if they were not recorded.
    pub arguments: &'a [Value<'a>],
    /// The flows that pass through it.
    pub flows: &'a [FlowPoint],
}

impl<'a> Call<'a> {
    /// A call of `function` that has nothing else yet.
    pub fn blank(function: &'a Function) -> Call<'a> {
        Call {
            process: ProcessIndex::default(),
            thread: ThreadId::NONE,
            track: TrackIndex::default(),
            function,
            start: Nanos::default(),
            end: None,
            open: false,
            nested: false,
            correlation: CorrelationId::NONE,
            external: ExternalId::NONE,
            error: None,
            submitted: &[],
            waited: &[],
            arguments: &[],
            flows: &[],
        }
    }
}
