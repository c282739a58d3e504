//! Recordings of other programs, as [producers](gputrail_trace::model::Producer) of the model.
//!
//! [`Inputs`] opens files, folders and standard input, recognises each by its content, unpacks gzip and zstd, and passes
//! everything as one stream to a consumer. Files of one run (captures of several processes, the tables of rocprofv3) are one
//! [`Recording`]; several recordings follow each other in the stream, with indices of their own.
//!
//! | format | reader | recognised by |
//! |---|---|---|
//! | capture of gputrail | [`capture`](gputrail_trace::capture) | its magic number |
//! | Perfetto trace | [`TraceReplay`](gputrail_trace::perfetto::reader::TraceReplay) | its first packet |
//! | tables of rocprofv3 (CSV) | `rocprofv3` | their columns |
//! | JSON of rocprofv3 | `rocprofv3` | its first field |
//! | databases of rocprofv3 (rocpd) | `rocprofv3` | their tables |
//! | databases of rocmProfileData (RPD) | `rpd` | their tables |
//! | exports of Nsight Systems (Parquet) | `nsys` | the table of texts beside them |
//! | exports of Nsight Systems (Arrow) | `nsys` | the name of their first table, or the table of texts beside them |
//! | exports of Nsight Systems (JSON lines) | `nsys` | their first line |
//! | databases of rocprof (SQLite) | `rocprof` | their tables |
//! | tables of kernels of rocprof (CSV) | `rocprof` | their columns |
//! | trace events of rocprof (JSON) | `rocprof` | an empty first event, and times in nanoseconds |
//! | lists of roctracer (text) | `rocprof` | their first line |
//! | exports of Nsight Systems (SQLite) | `nsys` | their tables |
//! | databases of nvprof (SQLite) | `nvprof` | their tables |
//! | lists of activities of nvprof (CSV) | `nvprof` | a line with their columns |
//! | XPlane files of JAX and XProf | `xplane` | the name of their first plane |
//! | markers of CLPerfMarker | `clperfmarker` | their first line |
//! | tables of kernels of CANN (CSV) | `chrome`, with the trace events beside them | their columns |
//! | Chrome trace events, also of PyTorch's profiler (Kineto) | `chrome` | a JSON object or array of events |
//!
//! A profile of Triton's Proton, a tree of sums without times, is no recording: [`ProtonTree`] reads it.
//!
//! # What a reader promises
//!
//! * It reads in one pass and in memory that does not grow with the file, beyond what it says on its page.
//! * Every event of the input is passed on, or counted in [`Report::unrepresented`] with the reason and the first offsets.
//! * Bytes that it cannot read are an [`ImportFinding`] with file and offset, what was found and what was expected.
//!   Everything before and after the damage is passed on.
//! * Times are exact: decimals do not pass through floating-point numbers.
//! * Times are in the clock of the file. Where that is the time of day, [`SystemClocks::realtime`] equals
//!   [`SystemClocks::boottime`](gputrail_trace::model::SystemClocks::boottime) in the header, and recordings of several machines are
//!   placed by it.
//!
//! [`SystemClocks::realtime`]: gputrail_trace::model::SystemClocks::realtime
//!
//! # Adding a reader
//!
//! A reader is a function that takes the [`InputFile`]s of a recording, a consumer and a [`Report`]. It gets a line in
//! [`InputFormat`], one in [`InputFormat::recognise`], and one in `Recording::produce`.

mod chrome;
mod clperfmarker;
mod csv;
#[cfg(test)]
mod damages;
#[cfg(feature = "sqlite")]
mod databases;
mod demangle;
mod format;
mod inputs;
mod joined;
mod json_window;
#[cfg(test)]
mod log;
mod nsys;
mod nvprof;
mod parallel;
mod progress;
mod proton_tree;
mod report;
mod rocprof;
mod rocprofv3;
mod row;
#[cfg(feature = "sqlite")]
mod rpd;
mod shared;
mod source;
#[cfg(feature = "sqlite")]
mod sqlite;
mod table_source;
mod tables;
mod xplane;

pub use format::InputFormat;
use inputs::Allowance;
pub use inputs::{Inputs, OpenError, Recording};
pub use progress::ReadProgress;
pub use proton_tree::{ProtonNode, ProtonTree};
pub use report::{Aligned, Counts, ImportFinding, Report, Unrepresented};
pub use source::{Compression, InputFile, LocalFile};
