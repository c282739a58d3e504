//! Contexts and streams of runtimes by the handles that the program knows them by.
//!
//! The names store has the handles of OpenCL and of the simulated GPU. CUPTI's records number contexts and streams, so the
//! driver and CUPTI are asked for the numbers of CUDA's handles: a handle has to be that of a live object.

#[cfg(target_os = "linux")]
use super::cuda;
use gputrail_capture::names::Names;
use gputrail_collect::process;
use gputrail_record::{Context, ContextId, Domain, Stream, StreamId};

/// The latest context of the names store with this handle: runtimes use handles again.
fn context(names: &Names, handle: u64) -> Option<Context> {
    let all = names.all::<Context>().into_iter();
    let mut others = all.filter(|one| handle != 0 && one.domain != Domain::CUDA_DRIVER);
    others.rfind(|one| one.handle == handle)
}

/// The latest stream of the names store with this handle.
fn stream(names: &Names, handle: u64) -> Option<Stream> {
    let all = names.all::<Stream>().into_iter();
    let mut found = all.filter(|one| handle != 0 && one.handle == handle);
    found.rfind(|one| {
        let context: Option<Context> = names.get(one.context.0);
        context.is_none_or(|context| context.domain != Domain::CUDA_DRIVER)
    })
}

/// The context with this handle, such as a `cl_context` or `CUcontext`.
pub fn context_of(handle: u64) -> Option<ContextId> {
    let found = context(process::names()?, handle).map(|context| context.id);
    #[cfg(target_os = "linux")]
    let found = found.or_else(|| cuda::find_context(handle));
    found
}

/// The stream with this handle, such as a `CUstream`. Streams of CUDA are known once work has run in them.
pub fn stream_of(handle: u64) -> Option<StreamId> {
    let found = stream(process::names()?, handle).map(|stream| stream.id);
    #[cfg(target_os = "linux")]
    let found = found.or_else(|| cuda::find_stream(handle));
    found
}

/// Names a context by its handle. Returns its id, which is none if CUDA knows it and no record has named it yet, or `None`
/// if nobody knows it.
pub fn name_context(handle: u64, name: &str) -> Option<ContextId> {
    let names = process::names()?;
    let named = context(names, handle).map(|mut context| {
        context.name = names.string(name);
        names.context(context)
    });
    #[cfg(target_os = "linux")]
    let named = named.or_else(|| cuda::name_context(handle, name));
    named
}

/// Names a stream by its handle. Returns its id, which is none if CUDA knows it and no work has run in it yet, or `None` if
/// nobody knows it.
pub fn name_stream(handle: u64, name: &str) -> Option<StreamId> {
    let names = process::names()?;
    let named = stream(names, handle).map(|mut stream| {
        stream.name = names.string(name);
        names.stream(stream)
    });
    #[cfg(target_os = "linux")]
    let named = named.or_else(|| cuda::name_stream(handle, name));
    named
}
