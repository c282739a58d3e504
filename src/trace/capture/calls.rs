//! The calls of one process, in the order of their begins, with their arguments and their links to device work.

use std::io;

use super::StreamOutput;
use super::functions::OwnArguments;
use super::links::LinksOfCall;
use super::process::{ProcessStream, TimedCall};
use crate::model::nesting::NestingStep;
use crate::model::{Call, EventId, Parameter, Value};
use gputrail_capture::Metadata;
use gputrail_record::{
    Api, ArgumentType, Arguments, CorrelationId, ExternalId, OperationGroup, StringId, ThreadId,
    flags,
};

/// Maximum number of calls whose arguments one thread keeps until the calls come.
const MAX_ARGUMENTS: usize = 1 << 16;

impl ProcessStream<'_> {
    #[inline(never)]
    pub(super) fn call(&mut self, output: &mut StreamOutput<'_>, record: &Api) -> io::Result<()> {
        let [start, end] = self.host.all_to_boottime([record.start, record.end]);
        let start = self.time_or_latest(start);
        let ended = record.end.is_some() && !record.header.has(flags::UNFINISHED);
        let end = ended.then(|| end.max(start));
        self.latest = self.latest.max(end.unwrap_or(start));
        output.report.calls += 1;
        if !ended {
            output.report.unfinished_calls += 1;
        }
        if record.header.has(flags::FAILED) {
            output.report.failed_calls += 1;
        }
        if !self.wants_calls {
            return Ok(());
        }
        let place = self.thread_place(output, record.thread)?;
        let thread = &mut self.threads[place];
        if record.ancestor.is_some() || !thread.nesting.is_empty() {
            // Constructed where it is passed on, so that it stays in registers.
            let call = TimedCall::new(record, start, end);
            return self.pass_on_calls(output, place, Some(call));
        }
        thread.links.sort();
        self.pass_on_call(output, place, &TimedCall::new(record, start, end), false)?;
        self.threads[place].links.forget_passed_on();
        Ok(())
    }

    /// Passes on the calls of a thread that no longer need to wait, since `call` has come, or all of them if it is
    /// none.
    #[inline(never)]
    pub(super) fn pass_on_calls(
        &mut self,
        output: &mut StreamOutput<'_>,
        place: usize,
        call: Option<TimedCall>,
    ) -> io::Result<()> {
        self.threads[place].links.sort();
        let mut nesting = std::mem::take(&mut self.threads[place].nesting);
        let step = |step: NestingStep<'_, TimedCall>| match step {
            NestingStep::Begin(call) => self.pass_on_call(output, place, call, call.end.is_some()),
            NestingStep::End(time, _) => {
                output.stream.consumer.end(self.threads[place].track, time)
            }
        };
        let done = match call {
            Some(call) => nesting.add(call, step),
            None => nesting.finish(step),
        };
        self.threads[place].nesting = nesting;
        self.threads[place].links.forget_passed_on();
        done
    }

    /// Passes on a call. If `open`, its end comes later.
    #[inline(always)]
    fn pass_on_call(
        &mut self,
        output: &mut StreamOutput<'_>,
        place: usize,
        call: &TimedCall,
        open: bool,
    ) -> io::Result<()> {
        let (metadata, stream) = (&self.metadata, &mut output.stream);
        let range = if call.external.is_some() {
            metadata.range_name(call.external)
        } else {
            None
        };
        let stack = if call.stack.is_some() {
            self.call_stacks.text(metadata, call.stack)
        } else {
            None
        };
        let own = OwnArguments {
            range: range.is_some(),
            stack: stack.is_some(),
        };
        let function = self.functions.get(stream, metadata, call.operation, own);
        let thread = &mut self.threads[place];
        let only: [EventId; 1];
        let (submitted, waited) = match thread.links.only(call.correlation) {
            Some((event, waited)) => {
                only = [event];
                thread.links.clear();
                if waited {
                    (&[][..], &only[..])
                } else {
                    (&only[..], &[][..])
                }
            }
            None if thread.links.is_empty() => (&[][..], &[][..]),
            None => {
                thread.links.of(call.correlation, &mut self.links_of_call);
                let LinksOfCall { submitted, waited } = &self.links_of_call;
                (&submitted[..], &waited[..])
            }
        };
        let mut values = Vec::new();
        values.extend(range.map(Value::Text));
        values.extend(stack.as_deref().map(Value::Text));
        if !thread.arguments.is_empty()
            && let Some(arguments) = thread.arguments.remove(&call.correlation)
        {
            let parameters = &function.parameters[values.len()..];
            read_values(metadata, parameters, &arguments, &mut values);
        }
        stream.consumer.call(&Call {
            process: self.index,
            thread: thread.id,
            track: thread.track,
            function,
            start: call.start,
            end: call.end,
            open,
            nested: call.ancestor.is_some(),
            correlation: call.correlation,
            // The name of a range stands for its id.
            external: match range {
                Some(_) => ExternalId::NONE,
                None => call.external,
            },
            error: call.error,
            submitted,
            waited,
            arguments: &values,
            flows: &[],
        })
    }

    /// Keeps the arguments of a call until the call comes.
    pub(super) fn arguments(
        &mut self,
        output: &mut StreamOutput<'_>,
        thread: ThreadId,
        arguments: &Arguments,
    ) -> io::Result<()> {
        if !self.wants_calls {
            return Ok(());
        }
        if !output.options.arguments {
            let stream = &mut output.stream;
            let own = OwnArguments::default();
            let function = self
                .functions
                .get(stream, &self.metadata, arguments.operation, own);
            if function.group == OperationGroup::ENQUEUE {
                return Ok(());
            }
        }
        let thread = self.thread(output, thread)?;
        if thread.arguments.len() >= MAX_ARGUMENTS {
            // Arguments of calls that were dropped.
            thread.arguments.clear();
        }
        thread.arguments.insert(arguments.correlation, *arguments);
        Ok(())
    }

    /// Notes that the call `call` of `thread` submitted the work of `event`, or `waited` for it.
    pub(super) fn link(
        &mut self,
        output: &mut StreamOutput<'_>,
        thread: ThreadId,
        call: CorrelationId,
        event: EventId,
        waited: bool,
    ) -> io::Result<()> {
        if self.wants_calls {
            self.thread(output, thread)?.links.add(call, event, waited);
        }
        Ok(())
    }
}

/// Adds the values of the arguments of a call.
#[inline(never)]
fn read_values<'m>(
    metadata: &'m Metadata,
    parameters: &[Parameter],
    arguments: &Arguments,
    values: &mut Vec<Value<'m>>,
) {
    let count = (arguments.count as usize).min(arguments.values.len());
    let parameters = parameters.iter().zip(&arguments.values[..count]);
    let value = |(parameter, bits): (&Parameter, &u64)| match parameter.kind {
        ArgumentType::SIGNED => Value::Int(*bits as i64),
        ArgumentType::POINTER | ArgumentType::FLAGS => Value::Pointer(*bits),
        ArgumentType::STRING => {
            Value::Text(u32::try_from(*bits).map_or("", |id| metadata.string(StringId(id))))
        }
        ArgumentType::FLOAT => Value::Double(f64::from_bits(*bits)),
        ArgumentType::BOOLEAN => Value::Bool(*bits != 0),
        _ => Value::Uint(*bits),
    };
    values.extend(parameters.map(value));
}
