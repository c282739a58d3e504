//! Operations: the description of one, and the list of a domain's.
//!
//! The domain of an API has its functions, which its [source](super::source::Source) lists. The domains whose operations happen
//! inside of API calls are listed in [`gputrail_interface::operations`].

use crate::switchboard::{ArgumentInfo, Observed};
use gputrail_interface::operations::{of as operations_of, resource};
use gputrail_record::{Domain, GraphOperation, MarkerKind, Operation, OperationGroup};

/// The description of an operation.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct OperationInfo {
    /// Domain and number.
    pub operation: Operation,
    /// Its name: that of the function, for an API's.
    pub name: &'static str,
    /// Its effect.
    pub group: OperationGroup,
    /// Its arguments, if it is a function.
    pub arguments: &'static [ArgumentInfo],
    /// Whether records keep the values of its arguments.
    pub keeps_arguments: bool,
    /// The work of its source for a call, besides recording it.
    pub observed: Observed,
}

impl OperationInfo {
    /// The arguments that records keep, as `name:type,name:type`.
    pub fn signature(&self) -> String {
        let mut signature = String::new();
        if !self.keeps_arguments {
            return signature;
        }
        for argument in self.arguments {
            let Some(kind) = argument.kept.and_then(|kept| kept.name()) else {
                continue;
            };
            if !signature.is_empty() {
                signature.push(',');
            }
            signature.push_str(argument.name);
            signature.push(':');
            signature.push_str(kind);
        }
        signature
    }
}

/// The operation of [`resource`] under which a change of a graph is told.
pub const fn of_graph_change(what: GraphOperation) -> Operation {
    Operation {
        domain: Domain::RESOURCE,
        number: resource::GRAPH_CREATED.number - 1 + what.0 as u16,
    }
}

/// The operation of a marker of this kind, in [`Domain::MARKER`].
pub const fn of_marker(what: MarkerKind) -> Operation {
    Operation {
        domain: Domain::MARKER,
        number: what.0 as u16,
    }
}

/// Every operation of `domain`; none of an API's.
pub fn of(domain: Domain) -> Vec<OperationInfo> {
    match domain {
        Domain::MARKER => MarkerKind::ALL
            .iter()
            .map(|(kind, _)| marker(*kind))
            .collect(),
        _ => operations_of(domain)
            .iter()
            .map(|one| description(*one))
            .collect(),
    }
}

/// The description of `operation`, which is none of an API's.
pub fn get(operation: Operation) -> Option<OperationInfo> {
    let mut all = of(operation.domain).into_iter();
    all.find(|info| info.operation == operation)
}

/// The name of `operation`, which is none of an API's. Without allocating: callbacks have it.
pub(crate) fn name(operation: Operation) -> &'static str {
    let mut all = operations_of(operation.domain).iter();
    all.find(|(one, _)| *one == operation)
        .map_or("", |(_, name)| name)
}

fn description((operation, name): (Operation, &'static str)) -> OperationInfo {
    OperationInfo {
        operation,
        name,
        group: OperationGroup::OTHER,
        arguments: &[],
        keeps_arguments: false,
        observed: Observed::No,
    }
}

fn marker(kind: MarkerKind) -> OperationInfo {
    description((of_marker(kind), kind.name().unwrap_or_default()))
}
