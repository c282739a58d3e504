//! Domains and their operations: numbers, names and arguments, enumerated and looked up both ways.
//!
//! An API's domain has its functions. The other domains are told to subscribers only, in the middle of the calls that
//! they are about:
//!
//! | domain | operations | phases | payload |
//! |---|---|---|---|
//! | [`resource`] | objects that come and go | `Instant`; those that go, before they do | the object's record, of a code object its machine code too |
//! | [`kernel_dispatch`] | `ENQUEUE` | `Enter`, `Exit` | [`KernelDispatch`](crate::record::KernelDispatch) |
//! | | `COMPLETE` | `Complete` | [`Completion`](crate::record::Completion) |
//! | [`memory_copy`] | `COPY_ENQUEUE`, `FILL_ENQUEUE` | `Enter`, `Exit` | [`MemoryCopy`](crate::record::MemoryCopy), [`MemorySet`](crate::record::MemorySet) |
//! | | `COPY_COMPLETE`, `FILL_COMPLETE` | `Complete` | [`Completion`](crate::record::Completion) |
//! | [`memory_allocation`] | `ALLOCATE`, `FREE` | `Enter`, `Exit` | [`Allocation`](crate::record::Allocation) |
//! | [`synchronization`] | waits of the host, barriers and markers | `Enter`, `Exit` | [`Synchronization`](crate::record::Synchronization) |
//! | | `COMPLETE` of barriers and markers | `Complete` | [`Completion`](crate::record::Completion) |
//!
//! The split into an enqueue, with enter and exit, and a completion, which has the user data of its enqueue, is
//! rocprofiler-sdk's. CUPTI's resource and synchronize domains have the same events in fewer phases. Queries follow
//! CUPTI's `cuptiSupportedDomains` and `cuptiGetCallbackName`, and rocprofiler-sdk's
//! `query_*_operation_name`, `iterate_*_operations` and `iterate_*_operation_args`.

use crate::collect::switchboard::{ArgumentInfo, OperationSet};
use crate::record::{Domain, MarkerKind, Operation, OperationGroup};

/// What is known of an operation.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct OperationInfo {
    /// Domain and number.
    pub operation: Operation,
    /// Its name: that of the function, for an API's.
    pub name: &'static str,
    /// What it does.
    pub group: OperationGroup,
    /// Its arguments, if it is a function.
    pub arguments: &'static [ArgumentInfo],
}

impl OperationInfo {
    /// The arguments that records keep, as `name:type,name:type`.
    pub(crate) fn signature(arguments: &[ArgumentInfo]) -> String {
        let mut signature = String::new();
        for argument in arguments {
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

/// Declares the operations of a domain that is told to subscribers only.
macro_rules! told {
    ($($(#[$meta:meta])* $module:ident: $domain:ident {
        $($(#[$note:meta])* $operation:ident = $number:literal, $name:literal;)*
    })*) => {
        $($(#[$meta])*
        pub mod $module {
            use crate::record::{Domain, Operation};

            $($(#[$note])*
            pub const $operation: Operation = Operation { domain: Domain::$domain, number: $number };)*

            pub(super) const ALL: &[(Operation, &str)] = &[$(($operation, $name)),*];
        })*

        /// The operations of a domain that is told to subscribers only.
        fn told(domain: Domain) -> &'static [(Operation, &'static str)] {
            match domain {
                $(Domain::$domain => $module::ALL,)*
                _ => &[],
            }
        }
    };
}

told! {
    /// Objects that come and go (CUPTI: `CUPTI_CB_DOMAIN_RESOURCE`; rocprofiler-sdk: code object and runtime
    /// initialization tracing).
    resource: RESOURCE {
        /// The runtime has been initialized: told in the program's first call that is observed.
        RUNTIME_INITIALIZED = 1, "runtime initialized";
        /// A context was created.
        CONTEXT_CREATED = 2, "context created";
        /// A context is going to be destroyed: the program gives up its last reference.
        CONTEXT_DESTROYED = 3, "context destroyed";
        /// A queue was created.
        QUEUE_CREATED = 4, "queue created";
        /// A queue is going to be destroyed.
        QUEUE_DESTROYED = 5, "queue destroyed";
        /// A module or program was made.
        MODULE_LOADED = 6, "module loaded";
        /// A module or program is going away.
        MODULE_UNLOADED = 7, "module unloaded";
        /// A module has got machine code for an agent.
        CODE_OBJECT_LOADED = 8, "code object loaded";
        /// Machine code is going away, or is going to be replaced by a new build.
        CODE_OBJECT_UNLOADED = 9, "code object unloaded";
        /// A kernel can be launched.
        KERNEL_SYMBOL_REGISTERED = 10, "kernel symbol registered";
        /// A kernel is going away.
        KERNEL_SYMBOL_UNREGISTERED = 11, "kernel symbol unregistered";
        /// A stream was created.
        STREAM_CREATED = 12, "stream created";
        /// A stream is going to be destroyed.
        STREAM_DESTROYED = 13, "stream destroyed";
    }
    /// Kernels.
    kernel_dispatch: KERNEL_DISPATCH {
        /// A kernel is put into a queue.
        ENQUEUE = 1, "kernel enqueue";
        /// It has completed, or will not.
        COMPLETE = 2, "kernel complete";
    }
    /// Copies and fills.
    memory_copy: MEMORY_COPY {
        /// A copy, map or migration is put into a queue.
        COPY_ENQUEUE = 1, "copy enqueue";
        /// It has completed, or will not.
        COPY_COMPLETE = 2, "copy complete";
        /// A fill is put into a queue.
        FILL_ENQUEUE = 3, "fill enqueue";
        /// It has completed, or will not.
        FILL_COMPLETE = 4, "fill complete";
    }
    /// Memory.
    memory_allocation: MEMORY_ALLOCATION {
        /// Memory is allocated. At enter, its address is not known, and its size only where the call names it.
        ALLOCATE = 1, "allocate";
        /// Memory is freed: at enter it is still there.
        FREE = 2, "free";
    }
    /// Waits: numbers as in [`SynchronizationType`](crate::record::SynchronizationType).
    synchronization: SYNCHRONIZATION {
        /// The host waits for events.
        EVENT_SYNCHRONIZE = 1, "wait for event";
        /// A queue is told to wait for events.
        STREAM_WAIT_EVENT = 2, "queue waits for event";
        /// The host waits for a queue; also in calls that wait for what they enqueue.
        STREAM_SYNCHRONIZE = 3, "wait for queue";
        /// The host waits for everything in a context.
        CONTEXT_SYNCHRONIZE = 4, "wait for context";
        /// A barrier is put into a queue.
        BARRIER = 16, "barrier enqueue";
        /// A marker is put into a queue.
        MARKER = 17, "marker enqueue";
        /// Semaphores are waited for or signalled by a queue.
        SEMAPHORE = 18, "semaphore enqueue";
        /// A barrier, marker or semaphore operation has completed.
        COMPLETE = 32, "synchronization complete";
    }
}

/// Every domain that this version knows, with its name. Some have no operations: they are reserved, or their source is
/// not built in.
pub fn domains() -> &'static [(Domain, &'static str)] {
    Domain::ALL
}

/// Every operation of `domain`.
pub fn of(domain: Domain) -> Vec<OperationInfo> {
    match domain {
        #[cfg(all(feature = "opencl", target_os = "linux"))]
        Domain::OPENCL => crate::source::opencl::operations().collect(),
        #[cfg(feature = "sim")]
        Domain::SIM => crate::source::sim::operations().collect(),
        Domain::MARKER => MarkerKind::ALL
            .iter()
            .map(|(kind, _)| marker(*kind))
            .collect(),
        _ => told(domain).iter().map(|one| of_told(*one)).collect(),
    }
}

/// Every operation that belongs to `group`, in any domain.
pub(crate) fn of_group(group: OperationGroup) -> OperationSet {
    let mut set = OperationSet::default();
    let all = domains().iter().flat_map(|(domain, _)| of(*domain));
    for info in all.filter(|info| info.group == group) {
        set.set(info.operation, true);
    }
    set
}

/// What is known of `operation`.
pub fn get(operation: Operation) -> Option<OperationInfo> {
    match operation.domain {
        #[cfg(all(feature = "opencl", target_os = "linux"))]
        Domain::OPENCL => crate::source::opencl::operation_info(operation.number),
        #[cfg(feature = "sim")]
        Domain::SIM => crate::source::sim::operations().find(|info| info.operation == operation),
        Domain::MARKER => of(Domain::MARKER)
            .into_iter()
            .find(|info| info.operation == operation),
        domain => told(domain)
            .iter()
            .find(|(told, _)| *told == operation)
            .map(|one| of_told(*one)),
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

fn of_told((operation, name): (Operation, &'static str)) -> OperationInfo {
    OperationInfo {
        operation,
        name,
        group: OperationGroup::OTHER,
        arguments: &[],
    }
}

fn marker(kind: MarkerKind) -> OperationInfo {
    OperationInfo {
        operation: crate::collect::marker::operation(kind),
        name: kind.name().unwrap_or_default(),
        group: OperationGroup::OTHER,
        arguments: &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
        let unknown = Operation {
            domain: Domain::RESOURCE,
            number: 999,
        };
        assert_eq!((get(unknown), find(Domain::RESOURCE, "?")), (None, None));
    }

    #[cfg(feature = "sim")]
    #[test]
    fn arguments_that_a_record_keeps_are_those_of_its_operation() {
        use crate::collect::switchboard::CallArguments;
        use crate::record::{Arguments, CorrelationId};
        let operation = find(Domain::SIM, "simMemcpy").unwrap();
        let record = Arguments::new(CorrelationId(1), operation, &[0x10, 0x20, 99]);
        let arguments = CallArguments::of_record(&record).unwrap();
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
        assert!(CallArguments::of_record(&broken).is_none());
    }

    #[cfg(all(feature = "opencl", target_os = "linux"))]
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
