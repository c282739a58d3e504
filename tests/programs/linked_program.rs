//! A program that uses `gputrail_tool` and is linked with `libgputrail.so.0`: it has a copy of the crate of its own, which exports
//! functions of the same names, and observes its calls of OpenCL with the library.

use gputrail_tool::record::{Api, Kind};
use gputrail_tool::{Buffer, Context, program};
use std::ffi::{c_int, c_uint, c_void};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

#[link(name = "OpenCL")]
unsafe extern "C" {
    fn clGetPlatformIDs(room: c_uint, platforms: *mut *mut c_void, count: *mut c_uint) -> c_int;
}

fn main() {
    program::initialise().expect("the library can be prepared");
    program::observe_opencl().expect("OpenCL can be observed");
    let calls = Arc::new(AtomicU64::new(0));
    let count = calls.clone();
    let buffer = Buffer::new(Default::default(), move |batch| {
        let calls = batch
            .records()
            .filter(|record| record.get::<Api>().is_some());
        count.fetch_add(calls.count() as u64, Ordering::Relaxed);
    });
    let (buffer, context) = (
        buffer.expect("a buffer"),
        Context::new().expect("a context"),
    );
    context.trace_to(&buffer, &[Kind::API]).expect("a service");
    context.start().expect("a start");
    let mut platforms = 0;
    // SAFETY: a place for the number alone.
    let status = unsafe { clGetPlatformIDs(0, std::ptr::null_mut(), &raw mut platforms) };
    buffer.flush().expect("a flush");
    println!(
        "{platforms} platforms by {} calls, status {status}",
        calls.load(Ordering::Relaxed)
    );
}
