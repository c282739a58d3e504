//! Formats, and how their files begin.

use std::fmt;

use super::{chrome, clperfmarker, nsys, nvprof, rocprof, rocprofv3, xplane};
use gputrail_trace::perfetto::reader::{FieldValue, MessageFields};

/// The first bytes of an SQLite database.
const SQLITE: &[u8] = b"SQLite format 3\0";
/// The prefixes of the names of tables: of rocprofv3's, and of RPD's and rocprofv3's.
const ROCPD: &[u8] = b"rocpd_info_";
const RPD: &[u8] = b"rocpd_";
/// The table of texts of nvprof's databases.
const NVPROF: &[u8] = b"StringTable";
/// A column of the tables of rocprof's databases.
const ROCPROF: &[u8] = b"\"BeginNs\" INTEGER";

/// A format of recordings.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum InputFormat {
    /// A capture of gputrail.
    Capture,
    /// A Perfetto trace.
    Perfetto,
    /// Chrome trace events in JSON.
    ChromeTrace,
    /// A table of the kernels of an NPU.
    AscendKernels,
    /// A table of rocprofv3.
    RocprofCsv,
    /// The JSON of rocprofv3.
    RocprofJson,
    /// A database of rocprofv3.
    Rocpd,
    /// A database of rocmProfileData.
    Rpd,
    /// An SQLite export of Nsight Systems.
    NsightSystems,
    /// A Parquet file of an export of Nsight Systems.
    NsightParquet,
    /// An export of Nsight Systems to one file of Arrow.
    NsightArrow,
    /// A table of an export of Nsight Systems to files of Arrow.
    NsightArrowTable,
    /// An export of Nsight Systems to JSON lines.
    NsightJson,
    /// A database of rocprof.
    RocprofDatabase,
    /// A table of kernels of rocprof.
    RocprofTable,
    /// Trace events of rocprof.
    RocprofEvents,
    /// A list of roctracer.
    Roctracer,
    /// A database of nvprof.
    Nvprof,
    /// A list of activities of nvprof.
    NvprofCsv,
    /// An XPlane file of JAX and XProf.
    XPlane,
    /// Markers of CLPerfMarker.
    ClPerfMarker,
}

impl InputFormat {
    /// All formats that can be read.
    pub const ALL: [InputFormat; 21] = [
        InputFormat::Capture,
        InputFormat::Perfetto,
        InputFormat::ChromeTrace,
        InputFormat::AscendKernels,
        InputFormat::RocprofCsv,
        InputFormat::RocprofJson,
        InputFormat::Rocpd,
        InputFormat::Rpd,
        InputFormat::NsightSystems,
        InputFormat::NsightParquet,
        InputFormat::NsightArrow,
        InputFormat::NsightArrowTable,
        InputFormat::NsightJson,
        InputFormat::RocprofDatabase,
        InputFormat::RocprofTable,
        InputFormat::RocprofEvents,
        InputFormat::Roctracer,
        InputFormat::Nvprof,
        InputFormat::NvprofCsv,
        InputFormat::XPlane,
        InputFormat::ClPerfMarker,
    ];

    /// The format of a file with these first (unpacked) bytes. Of a database, it is a guess: its tables decide. Of a Parquet file,
    /// the files beside it do.
    pub fn recognise(head: &[u8]) -> Option<InputFormat> {
        if head.starts_with(b"GPUTRAIL") {
            return Some(InputFormat::Capture);
        }
        if head.starts_with(SQLITE) {
            let has = |name: &[u8]| head.windows(name.len()).any(|part| part == name);
            return Some(match (has(ROCPD), has(RPD)) {
                (true, _) => InputFormat::Rocpd,
                (false, true) => InputFormat::Rpd,
                (false, false) if has(NVPROF) => InputFormat::Nvprof,
                (false, false) if has(ROCPROF) => InputFormat::RocprofDatabase,
                (false, false) => InputFormat::NsightSystems,
            });
        }
        if clperfmarker::is_file(head) {
            return Some(InputFormat::ClPerfMarker);
        }
        if rocprofv3::is_json(head) {
            return Some(InputFormat::RocprofJson);
        }
        if nsys::is_arrow(head) {
            return Some(InputFormat::NsightArrow);
        }
        if nsys::is_json_lines(head) {
            return Some(InputFormat::NsightJson);
        }
        if rocprof::is_events(head) {
            return Some(InputFormat::RocprofEvents);
        }
        if is_chrome_trace(head) {
            return Some(InputFormat::ChromeTrace);
        }
        if rocprof::is_table(head) {
            return Some(InputFormat::RocprofTable);
        }
        if rocprof::is_list(head) {
            return Some(InputFormat::Roctracer);
        }
        if nvprof::is_trace(head) {
            return Some(InputFormat::NvprofCsv);
        }
        if rocprofv3::is_csv(head) {
            return Some(InputFormat::RocprofCsv);
        }
        if chrome::is_kernel_table(head) {
            return Some(InputFormat::AscendKernels);
        }
        if xplane::is_file(head) {
            return Some(InputFormat::XPlane);
        }
        is_perfetto(head).then_some(InputFormat::Perfetto)
    }

    /// Whether files of this format are SQLite databases.
    #[cfg(feature = "sqlite")]
    pub(super) fn is_database(self) -> bool {
        matches!(
            self,
            InputFormat::Rocpd
                | InputFormat::Rpd
                | InputFormat::NsightSystems
                | InputFormat::RocprofDatabase
                | InputFormat::Nvprof
        )
    }

    /// Whether files of this format that lie in one folder are parts of one recording.
    pub fn is_in_parts(self) -> bool {
        match self {
            InputFormat::Capture
            | InputFormat::RocprofCsv
            | InputFormat::RocprofJson
            | InputFormat::Rocpd
            | InputFormat::Roctracer
            | InputFormat::NsightParquet
            | InputFormat::NsightArrowTable => true,
            InputFormat::Perfetto
            | InputFormat::ChromeTrace
            | InputFormat::AscendKernels
            | InputFormat::Rpd
            | InputFormat::NsightSystems
            | InputFormat::NsightArrow
            | InputFormat::NsightJson
            | InputFormat::RocprofDatabase
            | InputFormat::RocprofTable
            | InputFormat::RocprofEvents
            | InputFormat::Nvprof
            | InputFormat::NvprofCsv
            | InputFormat::XPlane
            | InputFormat::ClPerfMarker => false,
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            InputFormat::Capture => "capture",
            InputFormat::Perfetto => "Perfetto trace",
            InputFormat::ChromeTrace => "Chrome trace events (JSON)",
            InputFormat::AscendKernels => "table of kernels of CANN (CSV)",
            InputFormat::RocprofCsv => "table of rocprofv3 (CSV)",
            InputFormat::RocprofJson => "results of rocprofv3 (JSON)",
            InputFormat::Rocpd => "database of rocprofv3 (rocpd)",
            InputFormat::Rpd => "database of rocmProfileData (RPD)",
            InputFormat::NsightSystems => "Nsight Systems export (SQLite)",
            InputFormat::NsightParquet => "Nsight Systems export (Parquet)",
            InputFormat::NsightArrow => "Nsight Systems export (Arrow)",
            InputFormat::NsightArrowTable => "table of a Nsight Systems export (Arrow)",
            InputFormat::NsightJson => "Nsight Systems export (JSON lines)",
            InputFormat::RocprofDatabase => "database of rocprof (SQLite)",
            InputFormat::RocprofTable => "table of kernels of rocprof (CSV)",
            InputFormat::RocprofEvents => "trace events of rocprof (JSON)",
            InputFormat::Roctracer => "list of roctracer (text)",
            InputFormat::Nvprof => "database of nvprof (SQLite)",
            InputFormat::NvprofCsv => "list of activities of nvprof (CSV)",
            InputFormat::XPlane => "XPlane file (JAX, XProf)",
            InputFormat::ClPerfMarker => "markers of CLPerfMarker",
        }
    }
}

impl fmt::Display for InputFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The bytes behind a byte order mark and white space.
fn content(head: &[u8]) -> &[u8] {
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    head.trim_ascii_start()
}

/// An object or an array of objects. What is inside decides whether there are events.
fn is_chrome_trace(head: &[u8]) -> bool {
    match content(head) {
        [b'{', rest @ ..] => matches!(rest.trim_ascii_start().first(), None | Some(b'"' | b'}')),
        [b'[', rest @ ..] => matches!(rest.trim_ascii_start().first(), None | Some(b'{' | b']')),
        _ => false,
    }
}

/// The number of fields of a first packet that are looked at.
const MAX_FIELDS: usize = 64;

/// A packet as the first field of a message: its own fields are such as packets have, and it has the number of a sequence or
/// another packet follows.
fn is_perfetto(head: &[u8]) -> bool {
    let [0x0a, rest @ ..] = head else {
        return false;
    };
    let Some((packet, behind)) = split_message(rest) else {
        return false;
    };
    let mut fields = MessageFields::new(packet);
    let mut has_sequence = false;
    let are_known =
        fields
            .by_ref()
            .take(MAX_FIELDS)
            .all(|field| match (field.number, field.value) {
                // Events of the kernel, the tree of processes, readings of clocks, events of tracks, and names.
                (1 | 2 | 6 | 11 | 12, value) => matches!(value, FieldValue::Bytes(_)),
                // The writer, the time, the sequence, and flags.
                (3 | 8 | 10 | 13, FieldValue::Number(_)) => {
                    has_sequence |= field.number == 10;
                    true
                }
                (3 | 8 | 10 | 13, _) => false,
                _ => true,
            });
    let is_followed = match behind {
        None | Some([] | [0x0a, ..]) => true,
        // Damage may follow.
        Some(_) => has_sequence,
    };
    let is_cut = behind.is_none();
    // The field at which the beginning of the file ends may be cut.
    let cut = packet[fields.position()..].first();
    let is_key = |key: &u8| *key >= 8 && matches!(key & 7, 0 | 1 | 2 | 5);
    let is_whole = fields.malformed().is_none() || is_cut && cut.is_none_or(is_key);
    are_known && is_followed && is_whole
}

/// The bytes of a message whose length stands at the front, as far as they are there, and what is behind it; none if the
/// message is cut.
pub(super) fn split_message(bytes: &[u8]) -> Option<(&[u8], Option<&[u8]>)> {
    let end = bytes.iter().take(5).position(|byte| byte & 0x80 == 0)?;
    let digits = bytes[..=end].iter().enumerate();
    let length = digits.fold(0, |length, (place, byte)| {
        length | usize::from(byte & 0x7f) << (7 * place)
    });
    let content = &bytes[end + 1..];
    Some(match content.split_at_checked(length) {
        Some((message, behind)) => (message, Some(behind)),
        None => (content, None),
    })
}

/// A short description of a file of no known format.
pub(super) fn describe(head: &[u8]) -> String {
    const KNOWN: [(&[u8], &str); 8] = [
        (b"\x7fELF", "an executable or library (ELF)"),
        (b"PK\x03\x04", "a zip archive; unpack it"),
        (b"BZh", "a bzip2 archive; unpack it"),
        (b"\xfd7zXZ\0", "an xz archive; unpack it"),
        (b"PAR1", "a Parquet file"),
        (b"<", "XML or HTML"),
        (b"\x89PNG", "a picture"),
        (b"%PDF", "a PDF document"),
    ];
    if head.is_empty() {
        return "an empty file".into();
    }
    if nsys::is_arrow_stream(head) || head.starts_with(b"ARROW1") {
        return "a table in Arrow".into();
    }
    if is_utf16(head) {
        return "a text in UTF-16; `iconv -f UTF-16 -t UTF-8` makes one in UTF-8".into();
    }
    // A magic number, behind the fields of the first file.
    if head.get(257..262) == Some(b"ustar") {
        return "a tar archive; unpack it".into();
    }
    if let Some((_, name)) = KNOWN.iter().find(|(magic, _)| head.starts_with(magic)) {
        return (*name).into();
    }
    let mut lines = head.split(|byte| *byte == b'\n');
    let line = lines.find(|line| !line.is_empty()).unwrap_or_default();
    match std::str::from_utf8(&line[..line.len().min(60)]) {
        Ok(text) if !text.chars().any(char::is_control) => {
            format!("a text that begins with {text:?}")
        }
        _ => format!("bytes that begin with {:02x?}", &head[..head.len().min(8)]),
    }
}

/// Whether a text begins with the byte order mark of UTF-16, or with two letters of ASCII in it.
fn is_utf16(head: &[u8]) -> bool {
    match head {
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => true,
        [first, 0, second, 0, ..] | [0, first, 0, second, ..] => [first, second]
            .iter()
            .all(|letter| matches!(letter, b'\t' | b'\n' | b'\r' | b' '..=b'~')),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_of_no_known_format_is_described() {
        let tar = [&[b'a'; 257][..], b"ustar\0"].concat();
        for (head, words) in [
            (&tar[..], "a tar archive"),
            (b"\xff\xfe{\0\"\0", "UTF-16"),
            (b"\xfe\xff\0{\0\"", "UTF-16"),
            (b"{\0\n\0", "UTF-16"),
            (b"\0{\0\"", "UTF-16"),
            (b"\x01\0\x02\0", "bytes that begin with"),
            (b"", "an empty file"),
        ] {
            assert_eq!(InputFormat::recognise(head), None, "{words}");
            let described = describe(head);
            assert!(described.contains(words), "{described}");
        }
    }

    #[test]
    fn a_format_is_recognised_by_its_first_bytes() {
        let cases: [(&[u8], Option<InputFormat>); 23] = [
            (b"GPUTRAIL\x01", Some(InputFormat::Capture)),
            (b"{\"traceEvents\":[", Some(InputFormat::ChromeTrace)),
            (
                b"\xef\xbb\xbf \n[\n {\"ph\":",
                Some(InputFormat::ChromeTrace),
            ),
            (b"[]", Some(InputFormat::ChromeTrace)),
            (b"{}", Some(InputFormat::ChromeTrace)),
            (b"\x0a\x05\x50\x01", Some(InputFormat::Perfetto)),
            (b"\x0a", None),
            (b"[1, 2]", None),
            (b"hello", None),
            (
                b"Step Id,Name,Type,Accelerator Core,Start Time(us),Duration(us)\n",
                Some(InputFormat::AscendKernels),
            ),
            (b"Name,Start Time(us),Duration(us)\n", None),
            (
                b"{\n \"rocprofiler-sdk-tool\": [",
                Some(InputFormat::RocprofJson),
            ),
            (b"SQLite format 3\0", Some(InputFormat::NsightSystems)),
            (b"SQLite format 3\0 rocpd_op", Some(InputFormat::Rpd)),
            (
                b"SQLite format 3\0 rocpd_info_node",
                Some(InputFormat::Rocpd),
            ),
            (b"", None),
            (
                b"\x0a\x02\x50\x01\x0a\x02\x50\x01",
                Some(InputFormat::Perfetto),
            ),
            (b"\n\x03ab\xff", None),
            // A packet and damage behind it; a message and another one behind it; a text that begins with an empty line; a profile
            // of pprof.
            (b"\x0a\x02\x50\x01\x12\x00", Some(InputFormat::Perfetto)),
            (b"\x0a\x02\x70\x01\x12\x00", None),
            (b"\nPerformance report of a day\n", None),
            (b"\x0a\x04\x08\x01\x10\x02\x0a\x00", None),
            (b"\x0a\x0b\x12\x09/host:CPU", Some(InputFormat::XPlane)),
        ];
        for (head, format) in cases {
            assert_eq!(InputFormat::recognise(head), format, "{head:?}");
        }
    }
}
