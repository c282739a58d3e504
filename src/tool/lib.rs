//! Tools in Rust that are libraries of their own, as `gputrail record --tool` loads them.
//!
//! A tool is a `cdylib` with [`tool!`](crate::tool!) in it. It talks to the library in the process through the C ABI,
//! so that several tools, in Rust and in C and of different compilers, share one layer; this crate makes that safe.
//! It observes nothing itself: it holds the records, and finds the functions of the library by their names when they are called.
//! The [rules of callbacks](gputrail_interface#rules-of-callbacks) are those of C.
//!
//! A program that is linked with `libgputrail.so.0`, or opens it, is its own tool: it calls [`program::initialise`] in place of
//! [`tool!`](crate::tool!).
//!
//! ```no_run
//! use gputrail_tool::record::{Api, Kind};
//! use gputrail_tool::{Buffer, Context, Finaliser, Tool};
//! use std::error::Error;
//! use std::sync::Arc;
//! use std::sync::atomic::{AtomicU64, Ordering};
//!
//! gputrail_tool::tool!(c"call-counter", initialise);
//!
//! fn initialise(_: Tool) -> Result<Finaliser, Box<dyn Error>> {
//!     let calls = Arc::new(AtomicU64::new(0));
//!     let count = calls.clone();
//!     let buffer = Buffer::new(Default::default(), move |batch| {
//!         let records = batch.records().filter(|record| record.get::<Api>().is_some());
//!         count.fetch_add(records.count() as u64, Ordering::Relaxed);
//!     })?;
//!     let context = Context::new()?;
//!     context.trace_to(&buffer, &[Kind::API])?;
//!     context.start()?;
//!     Ok(Box::new(move || {
//!         drop((context, buffer));
//!         eprintln!("{} calls", calls.load(Ordering::Relaxed));
//!     }))
//! }
//! # fn main() {}
//! ```

mod arguments;
mod attributes;
mod buffer;
mod callback;
mod callee;
mod client;
mod context;
mod counter_pool;
mod counter_sessions;
pub mod counting;
pub mod external;
mod flight;
mod functions;
mod logging;
mod lookup;
pub mod marker;
mod metric;
pub mod program;
pub mod recording;
pub mod sampling;
mod simulation;
mod threads;
mod timeline;
mod unified_memory;

pub use arguments::{Argument, arguments_of_operation, arguments_of_record};
pub use attributes::{Attributes, limits};
pub use buffer::{Batch, Buffer, BufferOptions, Drops, recover};
pub use callback::{Callback, ExternalRequest, Subscriber};
pub use context::Context;
pub use flight::{FlightOptions, FlightRecorder};
/// The records that buffers have.
pub use gputrail_record as record;

pub use gputrail_buffer::platform::internal_thread::InternalThread;
pub use gputrail_buffer::{
    BlockClient, BlockView, ClientBlock, ClientMemory, CompletedBlock, Policy, QueuePlace,
};
pub use gputrail_interface::attributes::{Limits, ThreadIds};
pub use gputrail_interface::c::{LogKind, Status, ToolHandle};
pub use gputrail_interface::joined::{RecordFormat, WorkTimes};
pub use gputrail_interface::operations::Phase;
pub use logging::log_to;
pub use lookup::*;
pub use simulation::{SimulationReport, simulate};
pub use threads::{CallbackThread, InternalThreadWatch};
pub use timeline::{Timeline, Work};
pub use unified_memory::configure_unified_memory;

/// The operations that are no functions: what happens inside of calls.
pub mod events {
    pub use gputrail_interface::operations::{
        kernel_dispatch, memory_allocation, memory_copy, resource, synchronization,
    };
}

use core::ffi::{CStr, c_void};
use functions::act;
use gputrail_interface::c::{GPUTRAIL_API_VERSION, ToolDescription};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;

/// An error of the library.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{text}")]
pub struct Error {
    /// The status.
    pub status: Status,
    /// The reason.
    pub text: String,
}

/// The end of a tool, called when the program ends or the tool has asked for it. Everything that was recorded until
/// then has been delivered.
pub type Finaliser = Box<dyn FnOnce() + Send>;

/// The tool itself, as gputrail knows it.
#[derive(Copy, Clone, Debug)]
pub struct Tool(ToolHandle);

impl Tool {
    /// Ends the tool before the program ends.
    ///
    /// # Errors
    ///
    /// `NO_SUCH_TOOL` if it has ended already.
    pub fn finish(self) -> Result<(), Error> {
        act!(gputrail_tool_finish(self.0))
    }
}

/// Makes a library a tool: its name, a C string, and a function `fn(Tool) -> Result<Finaliser, Box<dyn Error>>`, which
/// is called before the program's first OpenCL call goes on. An error discards the tool, with a message; the program
/// runs without it. A third argument is its priority, 0 otherwise: tools with a lower one are initialised earlier and
/// finalised later.
#[macro_export]
macro_rules! tool {
    ($name:literal, $initialise:path) => {
        $crate::tool!($name, $initialise, 0);
    };
    ($name:literal, $initialise:path, $priority:expr) => {
        /// The entry point of the tool.
        #[unsafe(no_mangle)]
        pub extern "C" fn gputrail_tool_configure(
            _: *const ::core::ffi::c_void,
        ) -> *const $crate::Description {
            extern "C-unwind" fn initialise_this_tool(
                tool: $crate::ToolHandle,
                _: *mut ::core::ffi::c_void,
            ) -> $crate::Status {
                $crate::Description::initialise($name, tool, $initialise)
            }
            static DESCRIPTION: $crate::Description =
                $crate::Description::new($name, $priority, initialise_this_tool);
            &DESCRIPTION
        }
    };
}

/// The description that [`tool!`](crate::tool!) makes.
#[doc(hidden)]
#[repr(transparent)]
pub struct Description(ToolDescription);

// SAFETY: a name and functions, which last for ever; no user data.
unsafe impl Sync for Description {}

/// The finaliser of the tool in this library.
static FINALISER: Mutex<Option<Finaliser>> = Mutex::new(None);

#[doc(hidden)]
impl Description {
    pub const fn new(
        name: &'static CStr,
        priority: i32,
        initialise: unsafe extern "C-unwind" fn(ToolHandle, *mut c_void) -> Status,
    ) -> Description {
        Description(ToolDescription {
            size: size_of::<ToolDescription>(),
            api_version: GPUTRAIL_API_VERSION,
            priority,
            name: name.as_ptr(),
            initialise: Some(initialise),
            finalise: Some(finalise),
            user_data: std::ptr::null_mut(),
        })
    }

    pub fn initialise(
        name: &CStr,
        tool: ToolHandle,
        initialise: fn(Tool) -> Result<Finaliser, Box<dyn std::error::Error>>,
    ) -> Status {
        let failed = |why: String| {
            eprintln!("gputrail: tool {}: {why}", name.to_string_lossy());
            Status::NOT_AVAILABLE
        };
        match catch_unwind(|| initialise(Tool(tool))) {
            Ok(Ok(finaliser)) => {
                *gputrail_buffer::platform::sync::lock_std(&FINALISER) = Some(finaliser);
                Status::OK
            }
            Ok(Err(error)) => failed(error.to_string()),
            Err(_) => failed("its initialisation panicked".into()),
        }
    }
}

unsafe extern "C-unwind" fn finalise(_: *mut c_void) {
    let finaliser = gputrail_buffer::platform::sync::lock_std(&FINALISER).take();
    if let Some(finaliser) = finaliser {
        // The hook has said what there is to say.
        let _ = catch_unwind(AssertUnwindSafe(finaliser));
    }
}
