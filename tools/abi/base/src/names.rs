//! Names of kernels and strings, for C. They last for ever.

use crate::{kept, lock};
use core::ffi::{CStr, c_char};
use gputrail_record::{KernelId, StringId};
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{LazyLock, Mutex};

type Table<K> = LazyLock<Mutex<HashMap<K, &'static CStr>>>;

fn found<K: Copy + Eq + Hash>(
    table: &Table<K>,
    key: K,
    look_up: impl FnOnce(K) -> Option<String>,
) -> Option<&'static CStr> {
    if let Some(known) = lock(table).get(&key) {
        return Some(known);
    }
    let text = kept(&look_up(key)?);
    lock(table).insert(key, text);
    Some(text)
}

/// The name of a kernel, if it is known.
pub fn kernel(id: KernelId) -> Option<&'static CStr> {
    static NAMES: Table<KernelId> = LazyLock::new(Mutex::default);
    id.is_some()
        .then(|| found(&NAMES, id, gputrail_tool::kernel_name))
        .flatten()
}

/// A string, if it is known.
pub fn string(id: StringId) -> Option<&'static CStr> {
    static TEXTS: Table<StringId> = LazyLock::new(Mutex::default);
    id.is_some()
        .then(|| found(&TEXTS, id, gputrail_tool::string))
        .flatten()
}

/// The name of a kernel, or null.
pub fn of_kernel(id: KernelId) -> *const c_char {
    kernel(id).map_or(std::ptr::null(), CStr::as_ptr)
}

/// A string, or null.
pub fn of_string(id: StringId) -> *const c_char {
    string(id).map_or(std::ptr::null(), CStr::as_ptr)
}
