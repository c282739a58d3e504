//! How the library comes into a program, and when its clients are configured, initialized and finalized.
//!
//! Linked, opened or preloaded, it prepares gputrail when it is loaded. As a tool of gputrail (`gputrail record --tool`) it
//! finds that prepared. Clients are configured within the program's first call of OpenCL or of the simulated GPU, and before that by
//! `rocprofiler_force_configure`; `clients` says which. They are finalized when the program ends, or when they ask for it.
//!
//! A child that is forked before the first call has clients of its own, which its first call initializes. One that is forked later
//! has the state of its parent, and neither its threads nor its records: there everything has been finalized, and no client is
//! called.

use crate::clients::{self, Client};
use crate::place::place_of;
use crate::result::{Answer, api};
use crate::{context, external, runtime, threads};
use core::ffi::c_int;
use gputrail_abi::{contained, lock};
use gputrail_rocprofiler::{ClientFinalize, ClientId, Configure, Status};
use gputrail_tool::events::resource;
use gputrail_tool::{self as tool, Callback, Finaliser, Tool, program};
use std::error::Error;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock};

gputrail_tool::tool!(c"librocprofiler-sdk", initialise_tool);

/// Tells gputrail's ROCm source that this library is not AMD's.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals)]
pub static gputrail_rocprofiler_sdk: u32 = 1;

/// 0: not initialized; 1: it is; -1: it is being initialized.
static INITIALISED: AtomicI32 = AtomicI32::new(0);
/// 0: not finalized; 1: it is; -1: it is being finalized.
static FINALISED: AtomicI32 = AtomicI32::new(0);
/// The process in which clients were initialized.
static PROCESS: AtomicU32 = AtomicU32::new(0);
/// The client that is being configured or initialized.
static CURRENT: AtomicU32 = AtomicU32::new(0);

/// The first call has come while clients were initialized.
static IS_RUNTIME_THERE: AtomicBool = AtomicBool::new(false);

static CLIENTS: Mutex<Vec<Client>> = Mutex::new(Vec::new());

/// Whether gputrail is prepared, or why it is not.
static PREPARED: OnceLock<Result<(), String>> = OnceLock::new();

/// The subscriber that tells of the first call: never given up.
static HOOK: Mutex<Option<(tool::Context, tool::Subscriber)>> = Mutex::new(None);

/// Called by the loader when the library is loaded.
#[used]
#[unsafe(link_section = ".init_array")]
static LOADED: extern "C" fn() = loaded;

extern "C" fn loaded() {
    contained(|| {
        if gputrail_abi::is_initialised() {
            return;
        }
        if let Err(text) = prepare()
            && clients::are_named()
        {
            refuse(text);
        }
    });
}

/// Prepares gputrail, before the program's first call of OpenCL.
fn prepare() -> &'static Result<(), String> {
    PREPARED.get_or_init(|| {
        gputrail_abi::prepare(rocprofiler_is_initialized as *const ())?;
        hook().map_err(|error| error.to_string())?;
        // SAFETY: a function of this library, which is never unloaded.
        unsafe { libc::pthread_atfork(None, None, Some(forked)) };
        Ok(())
    })
}

/// A child whose parent has not used OpenCL before the fork: its clients are initialized by its own first call.
unsafe extern "C" fn forked() {
    contained(|| {
        if INITIALISED.load(Ordering::Acquire) == 0 {
            // Its clients are not told where that fails: there is nobody to tell.
            let _ = program::initialise()
                .and_then(|()| program::observe_opencl())
                .and_then(|()| hook());
        }
    });
}

/// Tells the user, once, why gputrail is not prepared: no function answers with a text.
fn refuse(text: &str) {
    static IS_TOLD: AtomicBool = AtomicBool::new(false);
    if !IS_TOLD.swap(true, Ordering::Relaxed) {
        eprintln!("librocprofiler-sdk: {text}");
    }
}

/// gputrail has loaded the library as a tool.
fn initialise_tool(_: Tool) -> Result<Finaliser, Box<dyn Error>> {
    if PREPARED.get().is_none() {
        hook()?;
        let _ = PREPARED.set(Ok(()));
    }
    Ok(Box::new(finalise))
}

/// Has clients initialized within the program's first call.
fn hook() -> Result<(), tool::Error> {
    let context = tool::Context::new()?;
    let first_call = [resource::RUNTIME_INITIALIZED];
    let subscriber = context.call_back(&first_call, |_: Callback<'_>, _| {
        initialise(None);
        match INITIALISED.load(Ordering::Acquire) {
            // A client's own call, while it is initialized: contexts are told when they have begun.
            -1 => IS_RUNTIME_THERE.store(true, Ordering::Release),
            _ => runtime::initialised(),
        }
        if let Some((_, told)) = &*lock(&HOOK) {
            // Otherwise all later calls would be looked at for it.
            let _ = told.enable(resource::RUNTIME_INITIALIZED, false);
        }
    })?;
    external::prepare(&context)?;
    context.start()?;
    // The objects of a parent are not its child's to give up.
    std::mem::forget(lock(&HOOK).replace((context, subscriber)));
    Ok(())
}

/// Whether this process is a child that was forked after clients had been initialized.
fn is_forked() -> bool {
    let process = PROCESS.load(Ordering::Relaxed);
    process != 0 && process != std::process::id()
}

/// Whether clients have been initialized.
pub fn is_initialised() -> bool {
    INITIALISED.load(Ordering::Acquire) > 0
}

/// Whether clients have been finalized.
pub fn is_finalised() -> bool {
    FINALISED.load(Ordering::Acquire) > 0 || is_forked()
}

/// Whether clients are being or have been finalized.
pub fn is_ending() -> bool {
    FINALISED.load(Ordering::Acquire) != 0 || is_forked()
}

/// The client that configures itself now; `CONFIGURATION_LOCKED` before and afterwards.
pub fn configurable() -> Answer<u32> {
    match INITIALISED.load(Ordering::Acquire) {
        -1 => Ok(CURRENT.load(Ordering::Relaxed)),
        _ => Err(Status::ERROR_CONFIGURATION_LOCKED),
    }
}

/// The name of a client.
pub fn name_of_client(handle: u32) -> String {
    let clients = lock(&CLIENTS);
    let found = clients.iter().find(|client| client.handle == handle);
    found.map_or_else(|| "a client".to_owned(), Client::name)
}

/// Configures and initializes the clients, once in a process; `forced` is the first.
fn initialise(forced: Option<Configure>) {
    let begins = INITIALISED.compare_exchange(0, -1, Ordering::AcqRel, Ordering::Relaxed);
    if begins.is_err() {
        return;
    }
    PROCESS.store(std::process::id(), Ordering::Relaxed);
    // SAFETY: a function of this library, which is never unloaded.
    unsafe { libc::atexit(at_exit) };
    let mut clients = clients::find(forced);
    for client in &mut clients {
        CURRENT.store(client.handle, Ordering::Relaxed);
        if !client.configure() {
            context::forget(client.handle);
        }
    }
    let finish: ClientFinalize = match clients.len() {
        1 => finish_all,
        _ => finish_client,
    };
    let mut initialisers = Vec::new();
    for client in &mut clients {
        initialisers.extend(client.take_initialiser());
    }
    *lock(&CLIENTS) = clients;
    for initialiser in initialisers {
        CURRENT.store(initialiser.client, Ordering::Relaxed);
        initialiser.call(finish);
    }
    INITIALISED.store(1, Ordering::Release);
    let _ = threads::watch_gputrail();
    for context in context::all() {
        context.begin();
    }
    if IS_RUNTIME_THERE.load(Ordering::Acquire) {
        runtime::initialised();
    }
}

extern "C" fn at_exit() {
    contained(finalise);
}

unsafe extern "C" fn finish_all(_: ClientId) {
    contained(finalise);
}

unsafe extern "C" fn finish_client(client: ClientId) {
    contained(|| finalise_client(client.handle));
}

/// Finalizes the clients, once in a process.
fn finalise() {
    if INITIALISED.load(Ordering::Acquire) <= 0 || is_forked() {
        return;
    }
    let begins = FINALISED.compare_exchange(0, -1, Ordering::AcqRel, Ordering::Relaxed);
    if begins.is_err() {
        return;
    }
    let handles: Vec<u32> = lock(&CLIENTS).iter().map(|client| client.handle).collect();
    handles.into_iter().for_each(finalise_client);
    FINALISED.store(1, Ordering::Release);
}

/// Stops the contexts of a client and calls its finalizer, once.
fn finalise_client(handle: u32) {
    context::stop_all(handle);
    let finaliser = {
        let mut clients = lock(&CLIENTS);
        let client = clients.iter_mut().find(|client| client.handle == handle);
        client.and_then(Client::take_finaliser)
    };
    if let Some(finaliser) = finaliser {
        finaliser.call();
    }
}

/// Has a client configured now, before the program's first call.
///
/// # Safety
///
/// `configure` is `rocprofiler_configure` of a client.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_force_configure(configure: Option<Configure>) -> Status {
    api(|| {
        if INITIALISED.load(Ordering::Acquire) != 0 {
            return Err(Status::ERROR_CONFIGURATION_LOCKED);
        }
        if let Err(text) = prepare() {
            refuse(text);
            return Err(Status::ERROR_NOT_AVAILABLE);
        }
        initialise(configure);
        Ok(())
    })
}

/// Whether clients have been initialized: 0 if not, 1 if they have, -1 meanwhile.
///
/// # Safety
///
/// `status` is null or a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_is_initialized(status: *mut c_int) -> Status {
    api(|| {
        // SAFETY: `status` is null or a place for a number.
        unsafe { place_of(status) }?.put(INITIALISED.load(Ordering::Acquire));
        Ok(())
    })
}

/// Whether clients have been finalized: 0 if not, 1 if they have, -1 meanwhile.
///
/// # Safety
///
/// `status` is null or a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_is_finalized(status: *mut c_int) -> Status {
    api(|| {
        // SAFETY: `status` is null or a place for a number.
        let place = unsafe { place_of(status) }?;
        place.put(match is_forked() {
            true => 1,
            false => FINALISED.load(Ordering::Acquire),
        });
        Ok(())
    })
}
