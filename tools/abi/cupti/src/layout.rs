//! The version of CUPTI whose layouts the library has: `CUPTI_GPUTRAIL_LAYOUT` names it, or else the name that the library has of
//! itself (`DT_SONAME`), which `gputrail library` writes.
//!
//! | `CUPTI_GPUTRAIL_LAYOUT` | name | records are those of | `cuptiGetVersion` |
//! |---|---|---|---|
//! | `10` | `libcupti.so.10.0` | CUDA 10.0 | 12 |
//! | `11` | `libcupti.so.11.8` | CUDA 11.8 | 18 |
//! | `12` | `libcupti.so.12` | CUDA 12.9 | 28 |
//! | `13` | `libcupti.so.13`, and any other | CUDA 13.5 | 130500 |
//!
//! Programs of an earlier version of the same number read them as well: their structures are the beginnings of these.

use std::sync::LazyLock;

/// The variable.
const VARIABLE: &str = "CUPTI_GPUTRAIL_LAYOUT";
/// The number of layouts.
pub const LAYOUTS: usize = 4;

/// A version of CUPTI.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Of CUDA 10.0.
    Cuda10,
    /// Of CUDA 11.8.
    Cuda11,
    /// Of CUDA 12.
    Cuda12,
    /// Of CUDA 13.
    Cuda13,
}

impl Layout {
    /// All of them.
    #[cfg(test)]
    pub const ALL: [Layout; LAYOUTS] = [
        Layout::Cuda10,
        Layout::Cuda11,
        Layout::Cuda12,
        Layout::Cuda13,
    ];

    /// The version of the API.
    pub fn version(self) -> u32 {
        match self {
            Layout::Cuda10 => 12,
            Layout::Cuda11 => 18,
            Layout::Cuda12 => 28,
            Layout::Cuda13 => 130_500,
        }
    }

    /// The layout that a value of the variable names, or the name of a library.
    fn named(name: &str) -> Option<Layout> {
        let version = name.strip_prefix("libcupti.so.").unwrap_or(name);
        Some(match version.split('.').next()? {
            "10" => Layout::Cuda10,
            "11" => Layout::Cuda11,
            "12" => Layout::Cuda12,
            "13" => Layout::Cuda13,
            _ => return None,
        })
    }
}

/// The layout of this library.
pub fn layout() -> Layout {
    static LAYOUT: LazyLock<Layout> = LazyLock::new(|| {
        if let Some(value) = std::env::var_os(VARIABLE).filter(|value| !value.is_empty()) {
            match value.to_str().and_then(Layout::named) {
                Some(layout) => return layout,
                None => eprintln!(
                    "libcupti: {VARIABLE}={} is not known: it is 10, 11, 12 or 13",
                    value.display()
                ),
            }
        }
        let name = gputrail_abi::name_of(crate::cuptiGetVersion as *const ());
        name.as_deref()
            .and_then(Layout::named)
            .unwrap_or(Layout::Cuda13)
    });
    *LAYOUT
}
