//! Scopes: where an event or a counter comes from, as a path such as `node/GPU[CUDAID:0]`.

use super::abi::ascii;
use super::functions::{Domain, answer, domain, id, kept};
use crate::collect::marker::{KeptText, Registry};
use core::ffi::c_char;

/// The paths of registered scopes, by the number of their domain and their id.
static SCOPES: Registry<(u32, u64), &'static KeptText> = Registry::new();

#[repr(C)]
pub(super) struct ScopeAttributes {
    size: usize,
    path: *const c_char,
    parent: u64,
    id: u64,
}

impl ScopeAttributes {
    /// The attributes with an id.
    pub fn with_id(&self, id: u64) -> ScopeAttributes {
        ScopeAttributes { id, ..*self }
    }
}

/// The path of a scope that was registered in a domain.
pub(super) fn path(domain: u32, scope: u64) -> Option<&'static KeptText> {
    SCOPES.get(&(domain, scope)).copied()
}

pub(super) unsafe extern "C" fn scope_register(
    handle: Domain,
    given: *const ScopeAttributes,
) -> u64 {
    answer(0, || {
        let domain = domain(handle).number();
        // SAFETY: a program's attributes, of the size that they name.
        let Some(given) =
            (unsafe { given.as_ref() }).filter(|given| given.size >= size_of::<ScopeAttributes>())
        else {
            return 0;
        };
        // SAFETY: null or a text.
        let name = unsafe { ascii(given.path) }.read();
        let name = name.trim_start_matches('/');
        let whole = match path(domain, given.parent).map(KeptText::text) {
            None | Some("") => name.to_owned(),
            Some(parent) => format!("{parent}/{name}"),
        };
        let id = id(given.id);
        let put = kept(&whole).and_then(|whole| SCOPES.put((domain, id), whole));
        put.map_or(0, |_| id)
    })
}
