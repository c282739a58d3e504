//! The operations of every domain, those of sources' APIs and those of [`collect`](gputrail_collect::operations):
//! enumerated, and looked up by number and by name.
//!
//! Queries follow CUPTI's `cuptiSupportedDomains` and `cuptiGetCallbackName`, and rocprofiler-sdk's
//! `query_*_operation_name`, `iterate_*_operations` and `iterate_*_operation_args`.

use super::of_domain;
use gputrail_collect::operations::{self as inside, OperationInfo};
use gputrail_collect::switchboard::CallArguments;
use gputrail_record::{Arguments, Domain, Operation};

/// Every domain that this version knows, with its name. Some have no operations: they are reserved, or their source is
/// not built in.
pub fn domains() -> &'static [(Domain, &'static str)] {
    Domain::ALL
}

/// Every operation of `domain`.
pub fn of(domain: Domain) -> Vec<OperationInfo> {
    match of_domain(domain) {
        Some(source) => source.operations(),
        None => inside::of(domain),
    }
}

/// The description of `operation`.
pub fn get(operation: Operation) -> Option<OperationInfo> {
    match of_domain(operation.domain) {
        Some(source) => source.operation(operation.number),
        None => inside::get(operation),
    }
}

/// The name of `operation`.
pub fn name(operation: Operation) -> Option<&'static str> {
    get(operation).map(|info| info.name)
}

/// The operation of `domain` that has this name.
pub fn find(domain: Domain, name: &str) -> Option<Operation> {
    let all = of(domain);
    let found = all.iter().find(|info| info.name == name)?;
    Some(found.operation)
}

/// The arguments that `record` keeps. `None` for an operation that this version does not know.
pub fn arguments_of(record: &Arguments) -> Option<CallArguments<'_>> {
    let values = record.values.get(..record.count as usize)?;
    Some(CallArguments::kept(
        get(record.operation)?.arguments,
        values,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use gputrail_record::MarkerKind;
    use std::collections::HashSet;

    #[test]
    fn every_operation_is_found_by_its_number_and_by_its_name() {
        let mut seen = HashSet::new();
        for (domain, domain_name) in domains() {
            assert_eq!(Domain::from_name(domain_name), Some(*domain));
            for info in of(*domain) {
                assert_eq!(info.operation.domain, *domain);
                assert!(seen.insert(info.operation), "{info:?}");
                assert_eq!(get(info.operation), Some(info));
                assert_eq!(name(info.operation), Some(info.name));
                assert_eq!(find(*domain, info.name), Some(info.operation), "{info:?}");
            }
        }
        assert!(seen.len() > 40);
        let push = find(Domain::MARKER, "push").unwrap();
        assert_eq!(push.number, u16::from(MarkerKind::PUSH.0));
        let unknown = Operation {
            domain: Domain::RESOURCE,
            number: 999,
        };
        assert_eq!((get(unknown), find(Domain::RESOURCE, "?")), (None, None));
    }

    #[test]
    fn arguments_that_a_record_keeps_are_those_of_its_operation() {
        use gputrail_record::CorrelationId;
        let operation = find(Domain::SIM, "simMemcpy").unwrap();
        let record = Arguments::new(CorrelationId(1), operation, &[0x10, 0x20, 99]);
        let arguments = arguments_of(&record).unwrap();
        let shown: Vec<_> = arguments
            .iter()
            .map(|argument| (argument.info.name, argument.text(0)))
            .collect();
        assert_eq!(
            shown,
            [
                ("destination", "0x10".to_owned()),
                ("source", "0x20".to_owned()),
                ("bytes", "99".to_owned()),
            ]
        );
        assert_eq!(arguments.get("bytes"), Some(99));
        let mut broken = record;
        broken.count = 1000;
        assert!(arguments_of(&broken).is_none());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_functions_arguments_have_names_types_and_depths() {
        let read = find(Domain::OPENCL, "clEnqueueReadBuffer").unwrap();
        let info = get(read).unwrap();
        let of = |name: &str| {
            let argument = info.arguments.iter().find(|argument| argument.name == name);
            let argument = argument.unwrap();
            (argument.type_name, argument.dereference_depth())
        };
        assert_eq!(of("cb"), ("usize", 0));
        assert_eq!(of("ptr"), ("*mut c_void", 1));
        assert_eq!(of("event"), ("*mut cl_event", 1));
        assert!(find(Domain::OPENCL, "clEnqueueMemcpyINTEL").is_some());
    }
}
