//! The functions that a process has called.

use crate::directory::Directory;
use crate::model::{Function, FunctionIndex, Parameter, STACK, Stream};
use gputrail_capture::Metadata;
use gputrail_record::{ArgumentType, Operation, OperationGroup};

/// The functions that a process has called.
#[derive(Debug, Default)]
pub(super) struct Functions {
    list: Vec<Function>,
    /// The functions of calls by [`OwnArguments::place`].
    places: [Directory<Operation>; 4],
}

/// The arguments of a call that its function does not have: they come first.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct OwnArguments {
    /// The range in which the call lies.
    pub range: bool,
    /// The call stack of the host.
    pub stack: bool,
}

impl OwnArguments {
    fn place(self) -> usize {
        usize::from(self.range) | usize::from(self.stack) << 1
    }
}

/// The argument of calls and of work that names the range in which they lie.
pub(super) const RANGE: &str = "range";

impl Functions {
    /// The function of `operation`, for calls with arguments of their own.
    #[inline]
    pub fn get(
        &mut self,
        stream: &mut Stream<'_>,
        metadata: &Metadata,
        operation: Operation,
        own: OwnArguments,
    ) -> &Function {
        let places = &mut self.places[own.place()];
        let place = match places.get(operation.number.into(), operation) {
            Some(place) => place,
            None => self.add(stream, metadata, operation, own),
        };
        &self.list[place]
    }

    #[cold]
    fn add(
        &mut self,
        stream: &mut Stream<'_>,
        metadata: &Metadata,
        operation: Operation,
        own: OwnArguments,
    ) -> usize {
        let place = self.list.len();
        let mut function = function(stream.new_function(), metadata, operation);
        let names = [(RANGE, own.range), (STACK, own.stack)];
        let names = names.into_iter().filter(|(_, is_there)| *is_there);
        let parameters = names.map(|(name, _)| Parameter {
            name: name.into(),
            kind: ArgumentType::STRING,
        });
        function.parameters.splice(0..0, parameters);
        self.places[own.place()].insert(operation, place);
        self.list.push(function);
        place
    }
}

fn function(index: FunctionIndex, metadata: &Metadata, operation: Operation) -> Function {
    let entry = metadata.operations.get(&operation);
    let parameters = entry.map_or("", |entry| metadata.string(entry.arguments));
    let parameter = |parameter: &str| {
        let (name, kind) = parameter.split_once(':')?;
        Some(Parameter {
            name: name.trim().into(),
            kind: ArgumentType::from_name(kind.trim())?,
        })
    };
    Function {
        index,
        name: metadata.operation(operation).into(),
        domain: operation.domain,
        category: None,
        group: entry.map_or(OperationGroup::OTHER, |entry| {
            OperationGroup(entry.group as u8)
        }),
        parameters: parameters.split(',').filter_map(parameter).collect(),
    }
}
