//! Records of gputrail, as the libraries look at them that translate them.

use crate::functions::Arguments;
use crate::functions::translation;
use gputrail_record::{
    self as record, AgentId, Allocation, Api, Context, CorrelationId, Operation, Record, RecordRef,
};
use gputrail_tool::{arguments_of_record, describe};

/// Calls `put` with the record, if it is an `R`.
pub fn each<R: Record>(record: RecordRef<'_>, put: impl FnOnce(&R)) {
    if let Some(record) = record.read::<R>() {
        put(&record);
    }
}

/// The agent of an allocation; where the runtime decides, the first one of the context.
pub fn agent_of(one: &Allocation) -> AgentId {
    if one.agent.is_some() {
        return one.agent;
    }
    describe::<Context>(one.context).map_or(AgentId::NONE, |context| context.agent)
}

/// The arguments of a call whose record comes next.
#[derive(Default)]
pub struct NextArguments(Option<(CorrelationId, Operation, Arguments)>);

impl NextArguments {
    /// Keeps the arguments that `record` has of a function which appears in other APIs.
    pub fn keep(&mut self, record: RecordRef<'_>) {
        self.0 = None;
        let Some(head) = record.read::<record::Arguments>() else {
            return;
        };
        if let (Some(translation), Ok(kept)) =
            (translation(head.operation), arguments_of_record(record))
        {
            let values = translation.recorded(kept.map(|one| (one.name(), one.value())));
            self.0 = Some((head.correlation, head.operation, values));
        }
    }

    /// The arguments of a call, if they have come.
    pub fn take(&mut self, call: &Api) -> Option<Arguments> {
        let kept = self.0.take();
        let of_call = |kept: &(CorrelationId, Operation, Arguments)| {
            (kept.0, kept.1) == (call.correlation, call.operation)
        };
        kept.filter(of_call).map(|(_, _, arguments)| arguments)
    }
}
