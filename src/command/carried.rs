//! The libraries and headers that the command carries, and the names of their files.

/// Name of the injected library's file; messages of loaders and /proc/PID/maps show it.
pub const FILE_NAME: &str = "libgputrail.so.0";
/// Name under which the injected library opens the other one.
pub const SYMBOLS_FILE_NAME: &str = "libgputrail-symbols.so.0";
/// Name of the header of the C API of the injected library.
pub const HEADER_NAME: &str = "gputrail.h";

/// The libraries that the command carries.
#[derive(Copy, Clone)]
pub struct Carried {
    /// The library that recorded programs load.
    pub library: CarriedLibrary,
    /// The reader of symbols and source lines.
    pub symbols: CarriedLibrary,
    /// The header of the C API of the injected library.
    pub header: &'static str,
    /// The header for C++, which includes that one.
    pub cpp_header: &'static str,
    /// The header of CLPerfMarker, whose functions the injected library has.
    pub clperfmarker_header: &'static str,
    /// The pages of the documentation, in Markdown, by their topics.
    pub pages: &'static [(&'static str, &'static str)],
    /// APIs of vendors.
    pub apis: &'static [CarriedApi],
}

/// An API of a vendor's, of whose names there is a library.
#[derive(Copy, Clone)]
pub struct CarriedApi {
    /// The folder in `tools/abi`.
    pub name: &'static str,
    /// The bytes of the library; empty in builds that carry none.
    pub library: &'static [u8],
    /// Headers by their paths in the folder of headers; none if this was built without them.
    pub headers: &'static [(&'static str, &'static str)],
}

/// A library that the command carries.
#[derive(Copy, Clone)]
pub struct CarriedLibrary {
    /// The bytes of its file; empty on systems where programs cannot be recorded.
    pub bytes: &'static [u8],
    /// A hash of the bytes.
    pub id: &'static str,
}
