//! Questions to the library that the command carries: the sources are in it, not here. It is loaded into this process from
//! memory, and no file is written.

use crate::carried::{Carried, FILE_NAME};
use anyhow::{Context, Result, bail};
use gputrail_collect::question::{Ask, FUNCTION};
use libloading::os::unix::Library;
use rustix::fs::{MemfdFlags, memfd_create};
use std::ffi::{CString, OsStr, c_void};
use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::sync::OnceLock;

/// Asks a question. The error is the library's.
pub fn ask(carried: Carried, words: &[impl AsRef<OsStr>]) -> Result<String> {
    let library =
        open(carried).context("the library that this command carries cannot be loaded")?;
    // SAFETY: the function of this name has this type.
    let answer = unsafe { library.get::<Ask>(FUNCTION) };
    let answer = answer.context("the library is of another version")?;
    let words = words
        .iter()
        .map(|word| CString::new(word.as_ref().as_bytes()));
    let words: Vec<CString> = words.collect::<Result<_, _>>().context("a 0 in a word")?;
    let words: Vec<_> = words.iter().map(|word| word.as_ptr()).collect();
    let mut told = Vec::new();
    // SAFETY: texts that end with a 0, and a function that gets the place for the answer.
    let refused = unsafe { answer(words.as_ptr(), words.len(), keep, (&raw mut told).cast()) };
    let told = String::from_utf8_lossy(&told).into_owned();
    match refused {
        0 => Ok(told),
        _ => bail!(told),
    }
}

extern "C" fn keep(told: *mut c_void, text: *const u8, bytes: usize) {
    // SAFETY: the place that `ask` passed, and a text of this length.
    unsafe {
        let told = &mut *told.cast::<Vec<u8>>();
        told.extend_from_slice(std::slice::from_raw_parts(text, bytes));
    }
}

/// The library, which is loaded once and stays: drivers that it has opened may have threads.
fn open(carried: Carried) -> Result<&'static Library> {
    static LIBRARY: OnceLock<Library> = OnceLock::new();
    if let Some(library) = LIBRARY.get() {
        return Ok(library);
    }
    let file = memfd_create(FILE_NAME, MemfdFlags::CLOEXEC)?;
    let mut file = File::from(file);
    file.write_all(carried.library.bytes)?;
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    // SAFETY: our own library, whose constructors do nothing outside of a recorded program.
    let library = unsafe { Library::open(Some(path), libc::RTLD_NOW | libc::RTLD_LOCAL) }?;
    Ok(LIBRARY.get_or_init(|| library))
}
