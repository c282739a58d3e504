//! Scopes: where an event or a counter comes from, as a path such as `node/GPU[CUDAID:0]`.

use super::registered::Registered;
use super::text::{ascii, kept};
use core::ffi::c_char;
use gputrail_collect::marker::{KeptText, Registry};

/// The paths of registered scopes, by the number of their domain and their id.
static SCOPES: Registry<(u32, u64), &'static KeptText> = Registry::new();

#[repr(C)]
pub(super) struct ScopeAttributes {
    size: usize,
    path: *const c_char,
    parent: u64,
    id: u64,
}

/// The path of a scope that was registered in a domain.
pub(super) fn path(domain: u32, scope: u64) -> Option<&'static KeptText> {
    SCOPES.get(&(domain, scope)).copied()
}

impl Registered for ScopeAttributes {
    fn chosen(&self) -> Option<u64> {
        (self.size >= size_of::<ScopeAttributes>()).then_some(self.id)
    }

    unsafe fn put(&self, domain: u32, id: u64) -> Option<()> {
        // SAFETY: null or a text.
        let name = unsafe { ascii(self.path) }.read();
        let name = name.trim_start_matches('/');
        let whole = match path(domain, self.parent).map(KeptText::text) {
            None | Some("") => name.to_owned(),
            Some(parent) => format!("{parent}/{name}"),
        };
        SCOPES.put((domain, id), kept(&whole)?).map(|_| ())
    }
}
