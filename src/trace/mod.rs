//! Traces: the joined model of a recording, its producers, and its Perfetto form.

#[cfg(feature = "perfetto")]
mod arguments;
#[cfg(feature = "perfetto")]
pub mod capture;
#[cfg(feature = "import")]
pub mod conversion;
#[cfg(feature = "perfetto")]
mod convert;
#[cfg(feature = "perfetto")]
mod directory;
pub mod export;
#[cfg(feature = "perfetto")]
#[cfg_attr(not(feature = "import"), allow(dead_code))]
mod filter;
#[cfg(feature = "import")]
pub mod import;
pub mod model;
#[cfg(feature = "import")]
mod parts;
#[cfg(feature = "perfetto")]
pub mod perfetto;
#[cfg(feature = "perfetto")]
#[cfg_attr(not(feature = "import"), allow(dead_code))]
mod selection;
#[cfg(feature = "import")]
mod size;
#[cfg(feature = "perfetto")]
mod sorter;
#[cfg(all(test, feature = "perfetto"))]
mod tests;

#[cfg(feature = "perfetto")]
pub use convert::{ConvertError, Converted, convert};
