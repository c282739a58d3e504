//! The beginning and the end of a process's use of the SDK.
//!
//! The SDK configures its tools one after the other, and initialises those that have not declined. All contexts, buffers and
//! services are made in our initialisation, and none later. A process that is not recorded and has no tools declines, so that the SDK
//! does nothing for us. At the end of the process either side may end first: whichever does has the last records delivered.

use super::activity;
use super::agents;
use super::callbacks::{self, Receiver};
use super::enabling;
use super::functions;
use super::notes;
use super::places;
use super::recent::RECENT;
use super::requests;
use super::sdk::{Refused, Sdk};
use super::session::{Contexts, SESSION, Session, current_session};
use super::{APIS, DOMAINS, counting, sampling};
use core::ffi::{CStr, c_char, c_int, c_void};
use gputrail_buffer::platform::function_names;
use gputrail_buffer::platform::inside::{contain, message};
use gputrail_buffer::platform::sync::OnceBox;
use gputrail_capture::names::Names;
use gputrail_collect::process::{self, AttachOutcome};
use gputrail_collect::switchboard::Switchboard;
use gputrail_record::NoteKind;
use gputrail_rocprofiler::{
    BufferId, BufferTracingKind, ClientFinalize, ClientId, Configure, ContextId,
    ToolConfigureResult,
};
use std::sync::atomic::{AtomicBool, Ordering};

/// The library that configures this process's tools.
static LIBRARY: OnceBox<Sdk> = OnceBox::new();
/// Whether the last records have been delivered.
static HAS_FINISHED: AtomicBool = AtomicBool::new(false);

/// The device of the amdgpu driver. Where it cannot be opened, the SDK ends the program that asks for the driver's events.
const DRIVER: &CStr = c"/dev/kfd";

/// The body of `rocprofiler_configure`: what the SDK is to initialise, or null if this process is not observed.
///
/// # Safety
///
/// `text` is null or a text of the SDK's; `client` is null or the SDK's description of us, which we may change.
pub unsafe fn configure(text: *const c_char, client: *mut ClientId) -> *mut ToolConfigureResult {
    let mut result = core::ptr::null_mut();
    contain(|| {
        if SESSION.get().is_some() {
            // Another copy of the SDK, or a forked child of an observed process.
            return;
        }
        let Some(sdk) = Sdk::in_process(text) else {
            return message(format_args!(
                "ROCm is not observed: the functions of rocprofiler-sdk are not found in the library that loads gputrail"
            ));
        };
        LIBRARY.get_or_init(|| sdk);
        let outcomes = APIS.map(|api| process::attach_before_tools(api));
        let is_later = outcomes.contains(&AttachOutcome::Later);
        process::load_tools();
        if !is_later && !process::is_observed() {
            return;
        }
        // Before version 1.0 the description had no size, and the name lay elsewhere.
        if !sdk.is_before_1_0()
            // SAFETY: null, or the SDK's description of us (`# Safety`).
            && let Some(client) = unsafe { client.as_mut() }
        {
            client.name = c"gputrail".as_ptr();
        }
        // Once in a process: the SDK may keep the address.
        result = Box::into_raw(Box::new(ToolConfigureResult {
            size: size_of::<ToolConfigureResult>(),
            initialize: Some(initialise),
            finalize: Some(finalise),
            tool_data: core::ptr::null_mut(),
        }));
    });
    result
}

/// The functions of a source are known: the SDK has been found.
pub(super) fn begin() {
    if let Some(sdk) = LIBRARY.get() {
        functions::find(sdk);
    }
}

unsafe extern "C" fn initialise(_: Option<ClientFinalize>, _: *mut c_void) -> c_int {
    let mut result = -1;
    contain(|| {
        if let (Some(sdk), Some(board)) = (LIBRARY.get(), process::board()) {
            initialise_with(*sdk, board);
            result = 0;
        }
    });
    result
}

fn initialise_with(sdk: Sdk, board: &Switchboard) {
    let names = board.names();
    if let Err(error) = RECENT.open() {
        let text = format!("ROCm: work is recorded without its calls: {error}");
        notes::note(names, &text, true);
    }
    function_names::find_demangler();
    functions::find(&sdk);
    let mut session = Session::new(sdk);
    session.contexts = Configuration {
        session: &session,
        names,
    }
    .contexts();
    (session.contexts.work, session.work) = work(&session, names);
    (session.contexts.driver, session.driver) = driver(&session, board);
    let session = SESSION.get_or_init(|| session);
    // The services of agents: the SDK takes their configuration during its initialisation only.
    agents::offer_all(session, board);
    session.end_configuration();
    if let Some(always) = session.contexts.always
        && let Err(refused) = sdk.switch(always, true)
    {
        notes::refused(&sdk, Some(names), "kernels by name", refused);
    }
    board.on_change(enabling::enable);
    enabling::enable();
    activity::begin_rounds();
    let version = sdk.version_text();
    names.note(NoteKind::OTHER, &format!("rocprofiler-sdk {version}"));
}

/// Makes the contexts of callbacks, and their services. What the SDK refuses is said.
struct Configuration<'a> {
    session: &'a Session,
    names: &'a Names,
}

impl Configuration<'_> {
    fn contexts(&self) -> Contexts {
        Contexts {
            always: self.always(),
            calls: core::array::from_fn(|place| self.calls(place)),
            ..Contexts::default()
        }
    }

    fn refused(&self, what: &str, refused: Refused) {
        notes::refused(&self.session.sdk, Some(self.names), what, refused);
    }

    fn context(&self, what: &str) -> Option<ContextId> {
        let created = self.session.sdk.create_context();
        created
            .inspect_err(|refused| self.refused(what, *refused))
            .ok()
    }

    /// The context of the calls of an API.
    fn calls(&self, place: usize) -> Option<ContextId> {
        let sdk = &self.session.sdk;
        let (domain, what) = (DOMAINS[place], DOMAINS[place].name().unwrap_or_default());
        let kinds = functions::kinds_of(sdk, domain);
        if kinds.is_empty() {
            notes::unknown_kind(sdk, Some(self.names), &format!("calls of {what}"));
            return None;
        }
        let context = self.context(&format!("calls of {what}"))?;
        let callback = callbacks::of_version(sdk);
        let mut is_there = false;
        for (table, kind) in kinds {
            let receiver = Receiver::Api(place, table).number();
            match sdk.trace_to_callback(context, kind, callback, receiver) {
                Ok(()) => is_there = true,
                Err(refused) => self.refused(&format!("calls of {what}"), refused),
            }
        }
        is_there.then_some(context)
    }

    /// The context that is always started.
    fn always(&self) -> Option<ContextId> {
        const SERVICES: [(&CStr, Receiver, &str); 6] = [
            (c"CODE_OBJECT", Receiver::CodeObjects, "names of kernels"),
            (c"HIP_STREAM", Receiver::Streams, "streams"),
            (
                c"RUNTIME_INITIALIZATION",
                Receiver::Runtimes,
                "initialisation of runtimes",
            ),
            (c"MARKER_CORE_API", Receiver::Markers, "markers of ROCTx"),
            (
                c"MARKER_CONTROL_API",
                Receiver::MarkerControl,
                "pauses by ROCTx",
            ),
            (c"MARKER_NAME_API", Receiver::MarkerNames, "names by ROCTx"),
        ];
        let sdk = &self.session.sdk;
        let context = self.context("names of kernels")?;
        let callback = callbacks::of_version(sdk);
        for (name, receiver, what) in SERVICES {
            let Some(kind) = sdk.callback_kind(name) else {
                notes::unknown_kind(sdk, Some(self.names), what);
                continue;
            };
            let configured = sdk.trace_to_callback(context, kind, callback, receiver.number());
            if let Err(refused) = configured {
                self.refused(what, refused);
            }
        }
        Some(context)
    }
}

/// Makes a context with records of these kinds in a buffer, each with the words for it.
fn buffered<const KINDS: usize>(
    session: &Session,
    names: &Names,
    kinds: [(&'static str, Option<BufferTracingKind>); KINDS],
    make_buffer: impl FnOnce(ContextId) -> Result<BufferId, Refused>,
) -> Result<Option<(ContextId, BufferId)>, Refused> {
    let sdk = &session.sdk;
    let context = sdk.create_context()?;
    let buffer = make_buffer(context)?;
    let mut is_there = false;
    for (what, kind) in kinds {
        let Some(kind) = kind else {
            notes::unknown_kind(sdk, Some(names), what);
            continue;
        };
        match sdk.trace_to_buffer(context, kind, buffer) {
            Ok(()) => is_there = true,
            Err(refused) => notes::refused(sdk, Some(names), what, refused),
        }
    }
    Ok(is_there.then_some((context, buffer)))
}

/// The context and the buffer of work.
fn work(session: &Session, names: &Names) -> (Option<ContextId>, Option<BufferId>) {
    const WHAT: &str = "kernels, copies and allocations";
    let sdk = &session.sdk;
    let made = buffered(session, names, session.kinds.work(), |context| {
        let bytes = (activity::BYTES, activity::WATERMARK);
        sdk.create_buffer(context, bytes, activity::delivered)
    });
    match made {
        Ok(Some((context, buffer))) => {
            // Without it, work has no call.
            if let Err(refused) = sdk.request_external_ids(context, requests::answer) {
                notes::refused(sdk, Some(names), "calls that enqueue work", refused);
            }
            (Some(context), Some(buffer))
        }
        Ok(None) => (None, None),
        Err(refused) => {
            notes::refused(sdk, Some(names), WHAT, refused);
            (None, None)
        }
    }
}

/// The context of the driver's events, whose records come in a buffer of their own. It is made only if they are wanted now.
fn driver(session: &Session, board: &Switchboard) -> (Option<ContextId>, Option<BufferId>) {
    let (sdk, names) = (&session.sdk, board.names());
    let is_wanted = !board.buffers_for(enabling::DRIVER).is_none();
    if !is_wanted || session.kinds.migrations.is_none() {
        return (None, None);
    }
    // SAFETY: a text that ends with a 0.
    if unsafe { libc::access(DRIVER.as_ptr(), libc::R_OK | libc::W_OK) } != 0 {
        let path = DRIVER.to_string_lossy();
        let text = format!(
            "ROCm: no migrations and page faults are recorded: {path} cannot be opened for reading and writing (the user has to be in \
             the group render)"
        );
        names.note(NoteKind::OTHER, &text);
        return (None, None);
    }
    let made = buffered(session, names, session.kinds.driver(), |context| {
        let bytes = (activity::DRIVER_BYTES, activity::DRIVER_BYTES / 2);
        sdk.create_buffer(context, bytes, activity::delivered)
    });
    match made {
        Ok(made) => made.unzip(),
        Err(refused) => {
            notes::refused(sdk, Some(names), "migrations and page faults", refused);
            (None, None)
        }
    }
}

unsafe extern "C" fn finalise(_: *mut c_void) {
    contain(|| {
        if let Some(session) = current_session() {
            finish(session);
            // The SDK's functions answer that it has ended from now on.
            session.end();
        }
    });
}

/// The process ends: has the SDK deliver the last records, and notes what is missing.
pub(super) fn end() {
    if let Some(session) = current_session() {
        finish(session);
    }
}

fn finish(session: &Session) {
    if HAS_FINISHED.swap(true, Ordering::AcqRel) {
        return;
    }
    activity::end_rounds();
    enabling::stop(session);
    sampling::end(session);
    counting::end(session);
    activity::flush();
    activity::read_clocks(session);
    if let Some(names) = process::names() {
        notes::note_counts(names);
    }
}

/// Begins to observe ROCm in a process that has been running: `configure` is `rocprofiler_configure` as this library exports it, by
/// which the SDK finds that a tool is there already.
///
/// # Errors
///
/// A sentence that says why not, and what to do: there is no rocprofiler-sdk, or it was initialised before without us.
pub fn start_late(configure: Configure) -> Result<(), String> {
    if current_session().is_some() {
        return Ok(());
    }
    let found = places::open()?;
    if found.sdk.is_initialised() {
        return Err(format!(
            "{}: rocprofiler-sdk was initialised before gputrail came, and takes no tools now: start the program under `gputrail record`",
            found.path.display()
        ));
    }
    let status = found.sdk.force_configure(configure);
    status.map_err(|refused| {
        let why = notes::why(&found.sdk, refused);
        format!("{}: {why}", found.path.display())
    })
}
