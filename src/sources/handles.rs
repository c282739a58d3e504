//! Contexts and streams of runtimes by the handles that the program knows them by.
//!
//! The names store has most handles. A runtime whose records number its objects is asked for the numbers
//! ([`Source::handles`](super::Source::handles)): a handle has to be that of a live object.

use super::{all, of_domain};
use gputrail_capture::names::Names;
use gputrail_collect::process;
use gputrail_collect::source::Handles;
use gputrail_record::{Context, ContextId, Domain, Stream, StreamId};

/// Whether the names store has the handles of this API.
fn has_handles(domain: Domain) -> bool {
    of_domain(domain).is_none_or(|source| source.handles().is_none())
}

/// The answer of the first runtime that has one.
fn ask<T>(question: impl Fn(&'static dyn Handles) -> Option<T>) -> Option<T> {
    all().iter().find_map(|source| question(source.handles()?))
}

/// The latest context of the names store with this handle: runtimes use handles again.
fn context(names: &Names, handle: u64) -> Option<Context> {
    let all = names.all::<Context>().into_iter();
    let mut others = all.filter(|one| handle != 0 && has_handles(one.domain));
    others.rfind(|one| one.handle == handle)
}

/// The latest stream of the names store with this handle.
fn stream(names: &Names, handle: u64) -> Option<Stream> {
    let all = names.all::<Stream>().into_iter();
    let mut found = all.filter(|one| handle != 0 && one.handle == handle);
    found.rfind(|one| {
        let context: Option<Context> = names.get(one.context.0);
        context.is_none_or(|context| has_handles(context.domain))
    })
}

/// The context with this handle, such as a `cl_context` or `CUcontext`.
pub fn context_of(handle: u64) -> Option<ContextId> {
    let found = context(process::names()?, handle).map(|context| context.id);
    found.or_else(|| ask(|runtime| runtime.context(handle)))
}

/// The stream with this handle, such as a `CUstream`. Streams of CUDA are known once work has run in them.
pub fn stream_of(handle: u64) -> Option<StreamId> {
    let found = stream(process::names()?, handle).map(|stream| stream.id);
    found.or_else(|| ask(|runtime| runtime.stream(handle)))
}

/// Names a context by its handle. Returns its id, which is none if its runtime knows it and no record has named it yet, or
/// `None` if nobody knows it.
pub fn name_context(handle: u64, name: &str) -> Option<ContextId> {
    let names = process::names()?;
    let named = context(names, handle).map(|mut context| {
        context.name = names.string(name);
        names.context(context)
    });
    named.or_else(|| ask(|runtime| runtime.name_context(handle, name)))
}

/// Names a stream by its handle. Returns its id, which is none if its runtime knows it and no work has run in it yet, or
/// `None` if nobody knows it.
pub fn name_stream(handle: u64, name: &str) -> Option<StreamId> {
    let names = process::names()?;
    let named = stream(names, handle).map(|mut stream| {
        stream.name = names.string(name);
        names.stream(stream)
    });
    named.or_else(|| ask(|runtime| runtime.name_stream(handle, name)))
}
