//! Kinds, domains and operations: listed, and looked up by name and by number.

use super::status::FailedCall;
use super::text::{given, kept};
use super::{Answer, checked, done, place};
use core::ffi::c_char;
use gputrail_interface::c::Status;
use gputrail_record::{Domain, Kind, Operation, OperationGroup};
use gputrail_sources::operations;

/// Writes as many of `all` as there is room for, and how many there are.
///
/// # Safety
///
/// `to` is null, misaligned or leads to room for `capacity` elements, `count` is null, misaligned or a place for a number.
/// They overlap neither each other nor `all`, and nobody else uses them during the call.
pub(super) unsafe fn list<T: Copy>(
    all: &[T],
    to: *mut T,
    capacity: usize,
    count: *mut usize,
) -> Answer {
    // SAFETY: `count` is null, misaligned or a place for a number (the caller's promise), as `place` asks.
    unsafe { place(count, "count") }?.write(all.len());
    if to.is_null() {
        return Ok(());
    }
    checked(to, "the memory for the answer")?;
    let fit = all.len().min(capacity);
    // SAFETY: `to` is neither null nor misaligned, so it has room for `capacity` elements, of which `fit` are written, and
    // does not overlap with `all` (the caller's promises).
    unsafe { to.copy_from_nonoverlapping(all.as_ptr(), fit) };
    if all.len() > capacity {
        let text = format!(
            "{} elements do not fit into an array of {capacity}",
            all.len()
        );
        Err(FailedCall::new(Status::TOO_SMALL, text))
    } else {
        Ok(())
    }
}

/// The name of a kind of records, or null for one that this version does not know. The text is never freed.
#[unsafe(no_mangle)]
pub extern "C" fn gputrail_kind_name(kind: Kind) -> *const c_char {
    kind.name().map_or(std::ptr::null(), kept)
}

/// The producer of records of a kind for the buffers of tools, as a text, or null if there is none: such a kind cannot
/// be selected. The text is never freed.
#[unsafe(no_mangle)]
pub extern "C" fn gputrail_kind_producer(kind: Kind) -> *const c_char {
    kind.producer().map_or(std::ptr::null(), kept)
}

/// The kind of records that has this name.
///
/// Errors: `GPUTRAIL_NOT_FOUND`, `GPUTRAIL_NULL_POINTER`.
///
/// # Safety
///
/// `name` is null or ends with a 0, `kind` is null or a place for a kind.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_kind_by_name(name: *const c_char, kind: *mut Kind) -> Status {
    done(|| {
        // SAFETY: `name` is null or a text that ends with a 0, `kind` is null or a place for a kind (the caller's promises).
        let (name, kind) = unsafe { (given(name, "name")?, place(kind, "kind")?) };
        kind.write(Kind::from_name(name).ok_or_else(|| not_found("kind of records", name))?);
        Ok(())
    })
}

/// The kinds of records that this version knows, also those that are not produced for buffers: see
/// `gputrail_kind_producer`. `count` is always told; a null `kinds` asks for it alone.
///
/// Errors: `GPUTRAIL_TOO_SMALL`, and as many as fit are written; `GPUTRAIL_NULL_POINTER`.
///
/// # Safety
///
/// `kinds` is null or leads to room for `capacity` kinds, `count` is null or a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_kinds(
    kinds: *mut Kind,
    capacity: usize,
    count: *mut usize,
) -> Status {
    done(|| {
        let all: Vec<Kind> = Kind::ALL.iter().map(|(kind, _)| *kind).collect();
        // SAFETY: `kinds` is null or has room for `capacity` kinds, `count` is null or a place for a number (the caller's
        // promises).
        unsafe { list(&all, kinds, capacity, count) }
    })
}

/// The name of a domain, or null for one that this version does not know. The text is never freed.
#[unsafe(no_mangle)]
pub extern "C" fn gputrail_domain_name(domain: Domain) -> *const c_char {
    domain.name().map_or(std::ptr::null(), kept)
}

/// The domain that has this name.
///
/// Errors: `GPUTRAIL_NOT_FOUND`, `GPUTRAIL_NULL_POINTER`.
///
/// # Safety
///
/// `name` is null or ends with a 0, `domain` is null or a place for a domain.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_domain_by_name(
    name: *const c_char,
    domain: *mut Domain,
) -> Status {
    done(|| {
        // SAFETY: `name` is null or a text that ends with a 0, `domain` is null or a place for a domain (the caller's
        // promises).
        let (name, domain) = unsafe { (given(name, "name")?, place(domain, "domain")?) };
        domain.write(Domain::from_name(name).ok_or_else(|| not_found("domain", name))?);
        Ok(())
    })
}

/// The domains that this version knows, also those that it does not observe yet. As `gputrail_kinds`.
///
/// # Safety
///
/// `domains` is null or leads to room for `capacity` domains, `count` is null or a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_domains(
    domains: *mut Domain,
    capacity: usize,
    count: *mut usize,
) -> Status {
    done(|| {
        let all: Vec<Domain> = Domain::ALL.iter().map(|(domain, _)| *domain).collect();
        // SAFETY: `domains` is null or has room for `capacity` domains, `count` is null or a place for a number (the
        // caller's promises).
        unsafe { list(&all, domains, capacity, count) }
    })
}

/// The operations of a domain. As `gputrail_kinds`. Domains that this library does not observe have none.
///
/// # Safety
///
/// `operations` is null or leads to room for `capacity` operations, `count` is null or a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_operations(
    domain: Domain,
    operations: *mut Operation,
    capacity: usize,
    count: *mut usize,
) -> Status {
    done(|| {
        let all = gputrail_sources::operations::of(domain);
        let all: Vec<Operation> = all.iter().map(|info| info.operation).collect();
        // SAFETY: `operations` is null or has room for `capacity` operations, `count` is null or a place for a number (the
        // caller's promises).
        unsafe { list(&all, operations, capacity, count) }
    })
}

/// The name of an operation, such as `clFinish`, or null if nothing has that number. The text is never freed.
#[unsafe(no_mangle)]
pub extern "C" fn gputrail_operation_name(operation: Operation) -> *const c_char {
    operations::name(operation).map_or(std::ptr::null(), kept)
}

/// The group of an operation; `GPUTRAIL_OPERATION_GROUP_OTHER` also for an unknown operation.
#[unsafe(no_mangle)]
pub extern "C" fn gputrail_group_of_operation(operation: Operation) -> OperationGroup {
    operations::get(operation).map_or(OperationGroup::OTHER, |info| info.group)
}

/// The operation of a domain that has this name, such as `clFinish`.
///
/// Errors: `GPUTRAIL_NOT_FOUND`, `GPUTRAIL_NULL_POINTER`.
///
/// # Safety
///
/// `name` is null or ends with a 0, `operation` is null or a place for an operation.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_operation_by_name(
    domain: Domain,
    name: *const c_char,
    operation: *mut Operation,
) -> Status {
    done(|| {
        // SAFETY: `name` is null or a text that ends with a 0, `operation` is null or a place for an operation (the caller's
        // promises).
        let (name, operation) = unsafe { (given(name, "name")?, place(operation, "operation")?) };
        operation
            .write(operations::find(domain, name).ok_or_else(|| not_found("operation", name))?);
        Ok(())
    })
}

fn not_found(what: &str, name: &str) -> FailedCall {
    FailedCall::new(Status::NOT_FOUND, format!("there is no {what} \"{name}\""))
}
