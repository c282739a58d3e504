//! The services of callbacks and of buffers, and the names of what they tell of.

use crate::context::{self, BufferService, CallbackService, Operations};
use crate::kinds::{self, Named};
use crate::place::{array, put_name};
use crate::result::{Answer, api};
use crate::{buffer, hip, load, markers};
use core::ffi::{c_char, c_void};
use gputrail_abi::lock;
use gputrail_rocprofiler::*;

/// Has a callback called for a kind: for these operations, or all of them if none is named.
///
/// # Safety
///
/// `operations` is null or leads to `count` numbers; `callback` takes records of the kind, with `data`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_configure_callback_tracing_service(
    context: ContextId,
    kind: CallbackTracingKind,
    operations: *const TracingOperation,
    count: usize,
    callback: Option<TracingCallback>,
    data: *mut c_void,
) -> Status {
    api(|| {
        load::configurable()?;
        let context = context::found(context)?;
        // SAFETY: `operations` is null or leads to `count` numbers, which the client leaves alone during the call.
        let operations = unsafe { array(operations, count) };
        let function = callback.ok_or(Status::ERROR_INVALID_ARGUMENT)?;
        check(kinds::of_callback(kind), operations)?;
        let mut services = lock(&context.services);
        if services.callbacks.contains_key(&kind) {
            return Err(Status::ERROR_SERVICE_ALREADY_CONFIGURED);
        }
        let service = CallbackService {
            function,
            data,
            operations: Operations::new(operations),
        };
        services.callbacks.insert(kind, service);
        Ok(())
    })
}

/// Has records of a kind written to a buffer: of these operations, or all of them if none is named.
///
/// # Safety
///
/// `operations` is null or leads to `count` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_configure_buffer_tracing_service(
    context: ContextId,
    kind: BufferTracingKind,
    operations: *const TracingOperation,
    count: usize,
    buffer: BufferId,
) -> Status {
    api(|| {
        load::configurable()?;
        let context = context::found(context)?;
        let buffer = buffer::found(buffer)?;
        // SAFETY: `operations` is null or leads to `count` numbers, which the client leaves alone during the call.
        let operations = unsafe { array(operations, count) };
        match kind {
            BufferTracingKind::CORRELATION_ID_RETIREMENT => {}
            _ => check(kinds::of_buffer(kind), operations)?,
        }
        let mut services = lock(&context.services);
        if services.buffers.contains_key(&kind) {
            return Err(Status::ERROR_SERVICE_ALREADY_CONFIGURED);
        }
        let service = BufferService {
            buffer,
            operations: Operations::new(operations),
        };
        services.buffers.insert(kind, service);
        Ok(())
    })
}

/// `KIND_NOT_FOUND` for what cannot be configured, `OPERATION_NOT_FOUND` for an operation that the kind does not have.
fn check(of_kind: Result<Named, Status>, operations: &[TracingOperation]) -> Answer {
    let all = of_kind.map_err(|_| Status::ERROR_KIND_NOT_FOUND)?;
    let are_known = operations.iter().all(|one| kinds::may_name(&all, *one));
    are_known
        .then_some(())
        .ok_or(Status::ERROR_OPERATION_NOT_FOUND)
}

/// The functions that name and visit the kinds of callbacks or of records, and their operations.
macro_rules! kinds {
    ($kind:ident named by $name_of:path, with operations $operations_of:path =>
        $query_kind:ident, $query_operation:ident, $iterate_kinds:ident($kind_visitor:ident),
        $iterate_operations:ident($operation_visitor:ident);
    ) => {
        /// The name of a kind and its length, which last for ever. Each place may be null.
        ///
        /// # Safety
        ///
        /// The places are null or can be written to.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $query_kind(
            kind: $kind,
            name: *mut *const c_char,
            length: *mut u64,
        ) -> Status {
            let found = $name_of(kind);
            // SAFETY: the places are null or can be written to.
            api(|| unsafe { put_name(found, name, length, Status::ERROR_KIND_NOT_FOUND) })
        }

        /// The name of an operation and its length, which last for ever. Each place may be null.
        ///
        /// # Safety
        ///
        /// The places are null or can be written to.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $query_operation(
            kind: $kind,
            operation: TracingOperation,
            name: *mut *const c_char,
            length: *mut u64,
        ) -> Status {
            api(|| {
                let all = $operations_of(kind)?;
                let found = all.iter().find(|(number, _)| *number == operation);
                let found = found.map(|(_, name)| *name);
                // SAFETY: the places are null or can be written to.
                unsafe { put_name(found, name, length, Status::ERROR_OPERATION_NOT_FOUND) }
            })
        }

        /// Visits the kinds, until the visitor answers other than 0.
        ///
        /// # Safety
        ///
        /// `visitor` takes a kind and `data`.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $iterate_kinds(
            visitor: Option<$kind_visitor>,
            data: *mut c_void,
        ) -> Status {
            api(|| {
                let visitor = visitor.ok_or(Status::ERROR_INVALID_ARGUMENT)?;
                let mut kinds = $kind::ALL.iter();
                // SAFETY: the client's function for this, with its data.
                kinds.all(|(kind, _)| unsafe { visitor(*kind, data) } == 0);
                Ok(())
            })
        }

        /// Visits the operations of a kind, until the visitor answers other than 0.
        ///
        /// # Safety
        ///
        /// `visitor` takes a kind, an operation and `data`.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $iterate_operations(
            kind: $kind,
            visitor: Option<$operation_visitor>,
            data: *mut c_void,
        ) -> Status {
            api(|| {
                let visitor = visitor.ok_or(Status::ERROR_INVALID_ARGUMENT)?;
                let mut all = $operations_of(kind)?.into_iter();
                // SAFETY: the client's function for this, with its data.
                all.all(|(number, _)| unsafe { visitor(kind, number, data) } == 0);
                Ok(())
            })
        }
    };
}

kinds! {
    CallbackTracingKind named by kinds::callback_name, with operations kinds::of_callback =>
        rocprofiler_query_callback_tracing_kind_name, rocprofiler_query_callback_tracing_kind_operation_name,
        rocprofiler_iterate_callback_tracing_kinds(CallbackKindVisitor),
        rocprofiler_iterate_callback_tracing_kind_operations(CallbackOperationVisitor);
}

kinds! {
    BufferTracingKind named by kinds::buffer_name, with operations kinds::of_buffer =>
        rocprofiler_query_buffer_tracing_kind_name, rocprofiler_query_buffer_tracing_kind_operation_name,
        rocprofiler_iterate_buffer_tracing_kinds(BufferKindVisitor),
        rocprofiler_iterate_buffer_tracing_kind_operations(BufferOperationVisitor);
}

/// Visits the arguments of the call that a callback tells of.
///
/// # Safety
///
/// `record` is that of a callback in progress; `visitor` takes an argument and `data`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_iterate_callback_tracing_kind_operation_args(
    record: CallbackTracingRecord,
    visitor: Option<CallbackArgumentVisitor>,
    depth: i32,
    data: *mut c_void,
) -> Status {
    use CallbackTracingKind as Kind;
    api(|| {
        let visitor = visitor.ok_or(Status::ERROR_INVALID_ARGUMENT)?;
        match record.kind {
            Kind::NONE => Err(Status::ERROR_INVALID_ARGUMENT),
            // SAFETY: the payload is that of the kind, and `visitor` takes an argument and `data`.
            Kind::HIP_RUNTIME_API => unsafe { hip::visit(&record, visitor, depth, data) },
            Kind::MARKER_CORE_API | Kind::MARKER_CORE_RANGE_API => {
                // SAFETY: the same.
                unsafe { markers::visit(&record, visitor, data) }
            }
            _ => Err(Status::ERROR_NOT_IMPLEMENTED),
        }
    })
}

/// Visits the arguments of the call that a record tells of.
///
/// # Safety
///
/// `record` is one of a buffer's callback in progress; `visitor` takes an argument and `data`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_iterate_buffer_tracing_record_args(
    record: RecordHeader,
    visitor: Option<BufferArgumentVisitor>,
    data: *mut c_void,
) -> Status {
    use BufferTracingKind as Kind;
    api(|| {
        let visitor = visitor.ok_or(Status::ERROR_INVALID_ARGUMENT)?;
        match BufferTracingKind(record.kind as i32) {
            Kind::NONE => Err(Status::ERROR_INVALID_ARGUMENT),
            // SAFETY: the payload is that of the kind, and `visitor` takes an argument and `data`.
            Kind::HIP_RUNTIME_API_EXT => unsafe { hip::visit_record(&record, visitor, data) },
            _ => Err(Status::ERROR_NOT_IMPLEMENTED),
        }
    })
}
