//! The functions that a process has called.

use crate::directory::Directory;
use crate::model::{Function, FunctionIndex, Parameter, Stream};
use gputrail_capture::Metadata;
use gputrail_record::{ArgumentType, Operation, OperationGroup};

/// The functions that a process has called.
#[derive(Debug, Default)]
pub(super) struct Functions {
    list: Vec<Function>,
    places: Directory<Operation>,
    /// The functions of calls in ranges, which have the range as their first argument.
    in_ranges: Directory<Operation>,
}

/// The argument of calls and of work that names the range in which they lie.
pub(super) const RANGE: &str = "range";

impl Functions {
    /// The function of `operation`, for calls that lie in a range or not.
    #[inline]
    pub fn get(
        &mut self,
        stream: &mut Stream<'_>,
        metadata: &Metadata,
        operation: Operation,
        in_range: bool,
    ) -> &Function {
        let places = if in_range {
            &mut self.in_ranges
        } else {
            &mut self.places
        };
        let place = match places.get(operation.number.into(), operation) {
            Some(place) => place,
            None => self.add(stream, metadata, operation, in_range),
        };
        &self.list[place]
    }

    #[cold]
    fn add(
        &mut self,
        stream: &mut Stream<'_>,
        metadata: &Metadata,
        operation: Operation,
        in_range: bool,
    ) -> usize {
        let place = self.list.len();
        let mut function = function(stream.new_function(), metadata, operation);
        let places = if in_range {
            let range = Parameter {
                name: RANGE.into(),
                kind: ArgumentType::STRING,
            };
            function.parameters.insert(0, range);
            &mut self.in_ranges
        } else {
            &mut self.places
        };
        places.insert(operation, place);
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
