//! The functions that a process has called.

use crate::capture::Metadata;
use crate::record::{ArgumentType, Operation, OperationGroup};
use crate::trace::directory::Directory;
use crate::trace::model::{Function, FunctionIndex, Parameter, Stream};

/// The functions that a process has called.
#[derive(Debug, Default)]
pub(super) struct Functions {
    list: Vec<Function>,
    places: Directory<Operation>,
}

impl Functions {
    /// The function of `operation`.
    #[inline]
    pub fn get(
        &mut self,
        stream: &mut Stream<'_>,
        metadata: &Metadata,
        operation: Operation,
    ) -> &Function {
        let place = match self.places.get(operation.number.into(), operation) {
            Some(place) => place,
            None => self.add(stream, metadata, operation),
        };
        &self.list[place]
    }

    #[cold]
    fn add(&mut self, stream: &mut Stream<'_>, metadata: &Metadata, operation: Operation) -> usize {
        let place = self.list.len();
        self.list
            .push(function(stream.new_function(), metadata, operation));
        self.places.insert(operation, place);
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
