//! The library, rocprofiler-sdk: where it is in the process, its version, and its functions behind safe ones.
//!
//! The numbers of kinds and operations differ between versions: the library is asked for their names. Before version 1.0 a
//! correlation id had no ancestor, and what contains one lies otherwise: [`Sdk::is_before_1_0`] says so to those who read such structures.
//! A function that the library lacks is answered as one that is not implemented.

use super::session::SdkAgent;
use core::ffi::{CStr, c_char, c_int, c_void};
use gputrail_buffer::platform::system::library_of;
use gputrail_rocprofiler::{
    AgentV0, AgentVersion, BufferCallback, BufferId, BufferPolicy, BufferTracingKind,
    CallbackThread, CallbackTracingKind, Configure, ContextId, ExternalCorrelationRequest,
    Functions, Status, TracingCallback, TracingOperation, VersionTriplet, read,
};
use libloading::os::unix::Library;
use std::path::Path;

/// The names of the library, newest first.
pub(super) const FILES: [&str; 3] = [
    "librocprofiler-sdk.so.1",
    "librocprofiler-sdk.so.0",
    "librocprofiler-sdk.so",
];

/// Calls a function of the library, in an unsafe block.
macro_rules! call {
    ($sdk:expr, $name:ident($($argument:expr),* $(,)?)) => {
        match $sdk.functions.$name {
            Some(function) => function($($argument),*),
            None => gputrail_rocprofiler::Status::ERROR_NOT_IMPLEMENTED,
        }
    };
}
pub(super) use call;

/// The library of this process.
#[derive(Copy, Clone, Debug)]
pub(super) struct Sdk {
    pub functions: Functions,
    pub version: VersionTriplet,
    /// Whether it is gputrail's own library with the names of rocprofiler-sdk (`tools/abi`).
    pub is_own: bool,
}

/// The symbol that gputrail's own library exports.
const OWN: &CStr = c"gputrail_rocprofiler_sdk";

/// The answer of a function of the library that is no success.
pub(super) type Refused = Status;

fn done(status: Status) -> Result<(), Refused> {
    match status {
        Status::SUCCESS => Ok(()),
        refused => Err(refused),
    }
}

impl Sdk {
    /// The library that has called us, by a text of it; otherwise one that the process has loaded. Opens none.
    pub fn in_process(text: *const c_char) -> Option<Sdk> {
        // The copy that calls us goes before others.
        let caller = || kept(loaded(&library_of(text.cast())?)?);
        let named = || FILES.iter().find_map(|file| kept(loaded(Path::new(file))?));
        caller().or_else(|| kept(Library::this())).or_else(named)
    }

    /// The functions of a library, if it is one of rocprofiler-sdk. The library has to stay loaded.
    pub fn of(library: &Library) -> Option<Sdk> {
        let find = |symbol: &CStr| {
            // SAFETY: the address alone is asked for.
            let found = unsafe { library.get::<*mut c_void>(symbol) };
            found.map_or(core::ptr::null_mut(), |address| *address)
        };
        // SAFETY: the symbols are those of rocprofiler-sdk, whose prefix nobody else uses; libraries of ours with them have
        // its functions. Those who ask keep the library loaded.
        let functions = unsafe { Functions::find(find) };
        functions.create_context?;
        let is_own = !find(OWN).is_null();
        Some(Sdk {
            is_own,
            ..Sdk::with(functions)
        })
    }

    /// The library with these functions.
    pub fn with(functions: Functions) -> Sdk {
        let mut version = VersionTriplet::default();
        if let Some(get_version) = functions.get_version {
            let (major, minor, patch) = (
                &raw mut version.major,
                &raw mut version.minor,
                &raw mut version.patch,
            );
            // SAFETY: the library writes to three places of a local.
            unsafe { get_version(major, minor, patch) };
        }
        Sdk {
            functions,
            version,
            is_own: false,
        }
    }

    /// Whether structures are laid out as before version 1.0.
    pub fn is_before_1_0(&self) -> bool {
        self.version.major == 0
    }

    /// The version as text.
    pub fn version_text(&self) -> String {
        let VersionTriplet {
            major,
            minor,
            patch,
        } = self.version;
        format!("{major}.{minor}.{patch}")
    }

    /// Its clock now, which is CLOCK_BOOTTIME in nanoseconds.
    pub fn timestamp(&self) -> Option<u64> {
        let mut time = 0;
        // SAFETY: the library writes to a local.
        let status = unsafe { call!(self, get_timestamp(&raw mut time)) };
        (status == Status::SUCCESS && time != 0).then_some(time)
    }

    /// The library's words for a status, if it has any.
    pub fn sentence(&self, status: Status) -> Option<String> {
        let get = self.functions.get_status_string?;
        // SAFETY: any number is taken; the answer is null or a text that lasts as long as the library.
        let text = unsafe { get(status) };
        // SAFETY: as above.
        unsafe { text_of(text) }
    }

    /// A new context.
    pub fn create_context(&self) -> Result<ContextId, Refused> {
        let mut context = ContextId::default();
        // SAFETY: the library writes to a local.
        done(unsafe { call!(self, create_context(&raw mut context)) })?;
        Ok(context)
    }

    /// Starts or stops a context.
    pub fn switch(&self, context: ContextId, on: bool) -> Result<(), Refused> {
        // SAFETY: a handle, which the library checks.
        done(unsafe {
            match on {
                true => call!(self, start_context(context)),
                false => call!(self, stop_context(context)),
            }
        })
    }

    /// A new buffer of a context with a thread of its own for its callback, which is called when `watermark` bytes are full. Writers
    /// to a full buffer deliver it themselves: no record is lost.
    pub fn create_buffer(
        &self,
        context: ContextId,
        (bytes, watermark): (usize, usize),
        callback: BufferCallback,
    ) -> Result<BufferId, Refused> {
        let mut buffer = BufferId::default();
        // SAFETY: the library writes to a local. The callback is a function of this library, which is never unloaded, and uses no data.
        done(unsafe {
            call!(
                self,
                create_buffer(
                    context,
                    bytes,
                    watermark,
                    BufferPolicy::LOSSLESS,
                    Some(callback),
                    core::ptr::null_mut(),
                    &raw mut buffer
                )
            )
        })?;
        let mut thread = CallbackThread::default();
        // Without a thread of its own the buffer's callback comes on the SDK's shared one.
        // SAFETY: the library writes to a local; handles are checked by it.
        let _ = unsafe {
            done(call!(self, create_callback_thread(&raw mut thread)))
                .and_then(|()| done(call!(self, assign_callback_thread(buffer, thread))))
        };
        Ok(buffer)
    }

    /// Has a buffer's records delivered, on a thread of the SDK; waits for its callback.
    pub fn flush(&self, buffer: BufferId) -> Result<(), Refused> {
        // SAFETY: a handle, which the library checks.
        done(unsafe { call!(self, flush_buffer(buffer)) })
    }

    /// Has the records of a kind written to a buffer: all of its operations.
    pub fn trace_to_buffer(
        &self,
        context: ContextId,
        kind: BufferTracingKind,
        buffer: BufferId,
    ) -> Result<(), Refused> {
        // SAFETY: no list of operations, which stands for all of them; handles are checked by the library.
        done(unsafe {
            call!(
                self,
                configure_buffer_tracing_service(context, kind, core::ptr::null(), 0, buffer)
            )
        })
    }

    /// Has a callback called for all operations of a kind, with `data`.
    pub fn trace_to_callback(
        &self,
        context: ContextId,
        kind: CallbackTracingKind,
        callback: TracingCallback,
        data: usize,
    ) -> Result<(), Refused> {
        // SAFETY: no list of operations, which stands for all of them. The callback is a function of this library, which is never
        // unloaded, takes the structure of the library's version (`callbacks::of_version`), and uses the data as a number.
        done(unsafe {
            call!(
                self,
                configure_callback_tracing_service(
                    context,
                    kind,
                    core::ptr::null(),
                    0,
                    Some(callback),
                    core::ptr::without_provenance_mut(data)
                )
            )
        })
    }

    /// Has `answer` asked for the external ids of all that a context traces.
    pub fn request_external_ids(
        &self,
        context: ContextId,
        answer: ExternalCorrelationRequest,
    ) -> Result<(), Refused> {
        // SAFETY: no list of kinds, which stands for all of them. The callback is a function of this library, which is never
        // unloaded, and uses no data.
        done(unsafe {
            call!(
                self,
                configure_external_correlation_id_request_service(
                    context,
                    core::ptr::null(),
                    0,
                    Some(answer),
                    core::ptr::null_mut()
                )
            )
        })
    }

    /// Has a tool configured now, by a library that nothing in the process has initialised yet.
    pub fn force_configure(&self, configure: Configure) -> Result<(), Refused> {
        // SAFETY: the function is of this library, which is never unloaded.
        done(unsafe { call!(self, force_configure(Some(configure))) })
    }

    /// Whether the library has been initialised, or is being.
    pub fn is_initialised(&self) -> bool {
        let mut state: c_int = 0;
        // SAFETY: the library writes to a local.
        let status = unsafe { call!(self, is_initialized(&raw mut state)) };
        status == Status::SUCCESS && state != 0
    }

    /// The processors of the machine.
    pub fn agents(&self) -> Vec<SdkAgent> {
        unsafe extern "C" fn take(
            version: AgentVersion,
            agents: *const *const c_void,
            count: usize,
            found: *mut c_void,
        ) -> Status {
            if version == AgentVersion::VERSION_0 && !agents.is_null() {
                // SAFETY: the vector of the caller below, which waits for this.
                let found = unsafe { &mut *found.cast::<Vec<SdkAgent>>() };
                // SAFETY: the library gives this many pointers.
                let agents = unsafe { core::slice::from_raw_parts(agents, count) };
                let agents = agents.iter().filter(|agent| !agent.is_null());
                // SAFETY: each leads to a description of version 0.
                found.extend(agents.map(|agent| unsafe { describe(agent.cast()) }));
            }
            Status::SUCCESS
        }
        let mut found = Vec::new();
        // The size is the least that a library of any version takes: what is there is read by its own size.
        // SAFETY: the callback is called in the call, with the vector.
        unsafe {
            call!(
                self,
                query_available_agents(
                    AgentVersion::VERSION_0,
                    Some(take),
                    size_of::<u64>(),
                    (&raw mut found).cast()
                )
            )
        };
        found
    }
}

/// Kinds and their operations by name. The library has the same functions for those of callbacks and those of records.
macro_rules! by_name {
    ($Kind:ident, $kind:ident, $kind_is:ident, $operations:ident: $iterate_kinds:ident, $query_kind:ident, $iterate_operations:ident,
     $query_operation:ident) => {
        impl Sdk {
            /// The kind with this name, if the library has it.
            pub fn $kind(&self, name: &CStr) -> Option<$Kind> {
                struct Wanted<'a> {
                    sdk: &'a Sdk,
                    name: &'a CStr,
                    found: Option<$Kind>,
                }
                unsafe extern "C" fn visit(kind: $Kind, wanted: *mut c_void) -> c_int {
                    // SAFETY: the local of the caller below, which waits for this.
                    let wanted = unsafe { &mut *wanted.cast::<Wanted<'_>>() };
                    let is_it = wanted.sdk.$kind_is(kind, wanted.name);
                    wanted.found = is_it.then_some(kind).or(wanted.found);
                    is_it.into()
                }
                let mut wanted = Wanted {
                    sdk: self,
                    name,
                    found: None,
                };
                // SAFETY: the callback is called in the call, with the local.
                unsafe { call!(self, $iterate_kinds(Some(visit), (&raw mut wanted).cast())) };
                wanted.found
            }

            fn $kind_is(&self, kind: $Kind, name: &CStr) -> bool {
                let mut text = core::ptr::null();
                // SAFETY: the library writes to a local; it takes null for the length.
                let status = unsafe {
                    call!(
                        self,
                        $query_kind(kind, &raw mut text, core::ptr::null_mut())
                    )
                };
                if status != Status::SUCCESS || text.is_null() {
                    return false;
                }
                // SAFETY: a text of the library that lasts as long as it.
                (unsafe { CStr::from_ptr(text) }) == name
            }

            /// The operations of a kind, each with its name.
            pub fn $operations(&self, kind: $Kind) -> Vec<(TracingOperation, String)> {
                unsafe extern "C" fn visit(
                    _: $Kind,
                    operation: TracingOperation,
                    found: *mut c_void,
                ) -> c_int {
                    // SAFETY: the vector of the caller below, which waits for this.
                    unsafe { &mut *found.cast::<Vec<TracingOperation>>() }.push(operation);
                    0
                }
                let mut found: Vec<TracingOperation> = Vec::new();
                // SAFETY: the callback is called in the call, with the vector.
                unsafe {
                    call!(
                        self,
                        $iterate_operations(kind, Some(visit), (&raw mut found).cast())
                    )
                };
                let named = found.into_iter().filter_map(|operation| {
                    let mut text = core::ptr::null();
                    let (place, length) = (&raw mut text, core::ptr::null_mut());
                    // SAFETY: the library writes to a local; it takes null for the length.
                    unsafe { call!(self, $query_operation(kind, operation, place, length)) };
                    // SAFETY: null or a text of the library that lasts as long as it.
                    Some((operation, unsafe { text_of(text) }?))
                });
                named.collect()
            }
        }
    };
}

by_name!(
    CallbackTracingKind,
    callback_kind,
    callback_kind_is,
    callback_operations: iterate_callback_tracing_kinds,
    query_callback_tracing_kind_name,
    iterate_callback_tracing_kind_operations,
    query_callback_tracing_kind_operation_name
);
by_name!(
    BufferTracingKind,
    buffer_kind,
    buffer_kind_is,
    buffer_operations: iterate_buffer_tracing_kinds,
    query_buffer_tracing_kind_name,
    iterate_buffer_tracing_kind_operations,
    query_buffer_tracing_kind_operation_name
);

/// A library of the process.
fn loaded(path: &Path) -> Option<Library> {
    let flags = libc::RTLD_LAZY | libc::RTLD_NOLOAD;
    // SAFETY: the library is in the process already, so opening it runs nothing.
    unsafe { Library::open(Some(path), flags) }.ok()
}

/// The functions of a library, which is never closed then: they are called until the process ends.
fn kept(library: Library) -> Option<Sdk> {
    let sdk = Sdk::of(&library)?;
    let _ = library.into_raw();
    Some(sdk)
}

/// The description of an agent, with its texts.
///
/// # Safety
///
/// `agent` leads to a description of version 0 of a library.
unsafe fn describe(agent: *const AgentV0) -> SdkAgent {
    // SAFETY: a structure that begins with its size (the caller's promise).
    let info = unsafe { read(agent) };
    let banks = match info.mem_banks.is_null() {
        true => &[][..],
        // SAFETY: as many descriptions as the library says, which last as long as it.
        false => unsafe {
            core::slice::from_raw_parts(info.mem_banks, info.mem_banks_count as usize)
        },
    };
    let of_banks = banks.iter().map(|bank| bank.size_in_bytes).sum();
    // SAFETY: texts of the library, which last as long as it, or null where it has none.
    unsafe {
        SdkAgent {
            architecture: text_of(info.name).unwrap_or_default(),
            product: text_of(info.product_name).unwrap_or_default(),
            memory: match info.local_mem_size {
                0 => of_banks,
                size => size,
            },
            info,
        }
    }
}

/// A text of the library; `None` for null.
///
/// # Safety
///
/// `text` is null or leads to a text that ends with a 0 and stays during the call.
pub(super) unsafe fn text_of(text: *const c_char) -> Option<String> {
    (!text.is_null()).then(|| {
        // SAFETY: a text that ends with a 0 (`# Safety`); it is copied.
        unsafe { CStr::from_ptr(text) }
            .to_string_lossy()
            .into_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use gputrail_rocprofiler::{AgentId, AgentType, BufferKindVisitor, CallbackKindVisitor};

    /// A stand-in of the library, of version 0.6, whose numbers are not those of others.
    fn stand_in() -> Sdk {
        unsafe extern "C" fn version(major: *mut u32, minor: *mut u32, patch: *mut u32) -> Status {
            // SAFETY: places of `Sdk::with`.
            unsafe {
                major.write(0);
                minor.write(6);
                patch.write(2);
            }
            Status::SUCCESS
        }
        unsafe extern "C" fn callback_kinds(
            visit: Option<CallbackKindVisitor>,
            data: *mut c_void,
        ) -> Status {
            for number in 0..4 {
                let Some(visit) = visit else { break };
                // SAFETY: the visitor with its data.
                if unsafe { visit(CallbackTracingKind(number), data) } != 0 {
                    break;
                }
            }
            Status::SUCCESS
        }
        unsafe extern "C" fn callback_name(
            kind: CallbackTracingKind,
            name: *mut *const c_char,
            _: *mut u64,
        ) -> Status {
            let names = [c"NONE", c"HIP_RUNTIME_API", c"CODE_OBJECT"];
            let Some(text) = names.get(kind.0 as usize) else {
                return Status::ERROR_KIND_NOT_FOUND;
            };
            // SAFETY: the caller's place.
            unsafe { name.write(text.as_ptr()) };
            Status::SUCCESS
        }
        unsafe extern "C" fn operations(
            kind: CallbackTracingKind,
            visit: Option<gputrail_rocprofiler::CallbackOperationVisitor>,
            data: *mut c_void,
        ) -> Status {
            for number in [3, 5] {
                if let Some(visit) = visit {
                    // SAFETY: the visitor with its data.
                    unsafe { visit(kind, number, data) };
                }
            }
            Status::SUCCESS
        }
        unsafe extern "C" fn operation_name(
            _: CallbackTracingKind,
            operation: TracingOperation,
            name: *mut *const c_char,
            _: *mut u64,
        ) -> Status {
            if operation != 5 {
                return Status::ERROR_OPERATION_NOT_FOUND;
            }
            // SAFETY: the caller's place.
            unsafe { name.write(c"hipMalloc".as_ptr()) };
            Status::SUCCESS
        }
        unsafe extern "C" fn buffer_kinds(_: Option<BufferKindVisitor>, _: *mut c_void) -> Status {
            Status::SUCCESS
        }
        unsafe extern "C" fn agents(
            version: AgentVersion,
            take: Option<gputrail_rocprofiler::AgentsCallback>,
            size: usize,
            data: *mut c_void,
        ) -> Status {
            // SAFETY: any bytes are a value.
            let mut agent: AgentV0 = unsafe { core::mem::zeroed() };
            // An older library: what follows the type is not there.
            agent.size = 20;
            (agent.id, agent.type_) = (AgentId { handle: 9 }, AgentType::GPU);
            agent.cu_count = 77;
            if size > 20 {
                return Status::ERROR_INCOMPATIBLE_ABI;
            }
            let list = [(&raw const agent).cast::<c_void>()];
            match take {
                // SAFETY: one description, and the caller's data.
                Some(take) => unsafe { take(version, list.as_ptr(), 1, data) },
                None => Status::ERROR_INVALID_ARGUMENT,
            }
        }
        Sdk::with(Functions {
            get_version: Some(version),
            iterate_callback_tracing_kinds: Some(callback_kinds),
            query_callback_tracing_kind_name: Some(callback_name),
            iterate_callback_tracing_kind_operations: Some(operations),
            query_callback_tracing_kind_operation_name: Some(operation_name),
            iterate_buffer_tracing_kinds: Some(buffer_kinds),
            query_available_agents: Some(agents),
            ..Functions::default()
        })
    }

    #[test]
    fn kinds_and_operations_have_the_numbers_of_the_library() {
        let sdk = stand_in();
        assert!(sdk.is_before_1_0());
        assert_eq!(sdk.version_text(), "0.6.2");
        let code = sdk.callback_kind(c"CODE_OBJECT");
        assert_eq!(code, Some(CallbackTracingKind(2)));
        assert_eq!(sdk.callback_kind(c"OMPT"), None);
        assert_eq!(sdk.buffer_kind(c"KERNEL_DISPATCH"), None);
        let operations = sdk.callback_operations(CallbackTracingKind(1));
        assert_eq!(operations, [(5, "hipMalloc".to_owned())]);
    }

    #[test]
    fn agents_of_an_older_library_are_read_as_far_as_they_go() {
        let agents = stand_in().agents();
        let [agent] = &agents[..] else {
            panic!("{} agents", agents.len());
        };
        assert_eq!((agent.info.id.handle, agent.info.cu_count), (9, 0));
        assert_eq!((agent.info.type_, agent.memory), (AgentType::GPU, 0));
    }

    #[test]
    fn a_function_that_the_library_lacks_is_not_implemented() {
        let sdk = stand_in();
        assert_eq!(sdk.create_context(), Err(Status::ERROR_NOT_IMPLEMENTED));
        assert_eq!(sdk.timestamp(), None);
        assert!(!sdk.is_initialised());
    }
}
