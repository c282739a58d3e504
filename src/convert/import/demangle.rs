//! Names of C++ as profilers take them out of object files.

use std::borrow::Cow;

/// Bytes of the longest name that is demangled.
const MAX_NAME: usize = 64 << 10;

/// The name that the compiler mangled, as it was in the program; `name` itself if it is not mangled.
pub(super) fn demangled(name: &str) -> Cow<'_, str> {
    if !name.starts_with("_Z") || name.len() > MAX_NAME {
        return name.into();
    }
    let symbol = cpp_demangle::Symbol::new(name).ok();
    match symbol.and_then(|symbol| symbol.demangle().ok()) {
        Some(text) => text.into(),
        None => name.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::demangled;

    #[test]
    fn names_are_demangled_if_they_are_mangled() {
        for (name, expected) in [
            ("_Z3addPfi", "add(float*, int)"),
            ("_Znonsense", "_Znonsense"),
            ("add", "add"),
        ] {
            assert_eq!(demangled(name), expected);
        }
    }
}
