//! Formats, and how their files begin.

use std::fmt;

use super::{clperfmarker, rocprofv3};

/// The first bytes of an SQLite database.
const SQLITE: &[u8] = b"SQLite format 3\0";
/// The prefix of the names of rocprofv3's tables.
const ROCPD: &[u8] = b"rocpd_";

/// A format of recordings.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum InputFormat {
    /// A capture of gputrail.
    Capture,
    /// A Perfetto trace.
    Perfetto,
    /// Chrome trace events in JSON.
    ChromeTrace,
    /// A table of rocprofv3.
    RocprofCsv,
    /// The JSON of rocprofv3.
    RocprofJson,
    /// A database of rocprofv3.
    Rocpd,
    /// An SQLite export of Nsight Systems, or another database.
    NsightSystems,
    /// Markers of CLPerfMarker.
    ClPerfMarker,
}

impl InputFormat {
    /// All formats that can be read.
    pub const ALL: [InputFormat; 8] = [
        InputFormat::Capture,
        InputFormat::Perfetto,
        InputFormat::ChromeTrace,
        InputFormat::RocprofCsv,
        InputFormat::RocprofJson,
        InputFormat::Rocpd,
        InputFormat::NsightSystems,
        InputFormat::ClPerfMarker,
    ];

    /// The format of a file with these first (unpacked) bytes.
    pub fn recognise(head: &[u8]) -> Option<InputFormat> {
        if head.starts_with(b"GPUTRAIL") {
            return Some(InputFormat::Capture);
        }
        if head.starts_with(SQLITE) {
            // The schema stands near the beginning; the reader looks at the tables themselves.
            let is_rocpd = head.windows(ROCPD.len()).any(|part| part == ROCPD);
            return Some(if is_rocpd {
                InputFormat::Rocpd
            } else {
                InputFormat::NsightSystems
            });
        }
        if clperfmarker::is_file(head) {
            return Some(InputFormat::ClPerfMarker);
        }
        if rocprofv3::is_json(head) {
            return Some(InputFormat::RocprofJson);
        }
        if is_chrome_trace(head) {
            return Some(InputFormat::ChromeTrace);
        }
        if rocprofv3::is_csv(head) {
            return Some(InputFormat::RocprofCsv);
        }
        is_perfetto(head).then_some(InputFormat::Perfetto)
    }

    /// Whether files of this format that lie in one folder are parts of one recording.
    pub fn is_in_parts(self) -> bool {
        match self {
            InputFormat::Capture
            | InputFormat::RocprofCsv
            | InputFormat::RocprofJson
            | InputFormat::Rocpd => true,
            InputFormat::Perfetto
            | InputFormat::ChromeTrace
            | InputFormat::NsightSystems
            | InputFormat::ClPerfMarker => false,
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            InputFormat::Capture => "capture",
            InputFormat::Perfetto => "Perfetto trace",
            InputFormat::ChromeTrace => "Chrome trace events (JSON)",
            InputFormat::RocprofCsv => "table of rocprofv3 (CSV)",
            InputFormat::RocprofJson => "results of rocprofv3 (JSON)",
            InputFormat::Rocpd => "database of rocprofv3 (rocpd)",
            InputFormat::NsightSystems => "Nsight Systems export (SQLite)",
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

/// A packet: field 1, a length, and a first field of the packet.
fn is_perfetto(head: &[u8]) -> bool {
    let [0x0a, rest @ ..] = head else {
        return false;
    };
    let Some(end) = rest.iter().take(5).position(|byte| byte & 0x80 == 0) else {
        return false;
    };
    // Wire types of fields are 0, 1, 2 and 5.
    rest.get(end + 1)
        .is_none_or(|key| *key >= 8 && matches!(key & 7, 0 | 1 | 2 | 5))
}

/// A short description of a file of no known format.
pub(super) fn describe(head: &[u8]) -> String {
    const KNOWN: [(&[u8], &str); 8] = [
        (b"\x7fELF", "an executable or library (ELF)"),
        (b"PK\x03\x04", "a zip archive"),
        (b"BZh", "a bzip2 archive"),
        (b"\xfd7zXZ\0", "an xz archive"),
        (b"PAR1", "a Parquet file"),
        (b"<", "XML or HTML"),
        (b"\x89PNG", "a picture"),
        (b"%PDF", "a PDF document"),
    ];
    if head.is_empty() {
        return "an empty file".into();
    }
    if let Some((_, name)) = KNOWN.iter().find(|(magic, _)| head.starts_with(magic)) {
        return (*name).into();
    }
    let line = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
    match std::str::from_utf8(&line[..line.len().min(60)]) {
        Ok(text) if !text.chars().any(char::is_control) => {
            format!("a text that begins with {text:?}")
        }
        _ => format!("bytes that begin with {:02x?}", &head[..head.len().min(8)]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_format_is_recognised_by_its_first_bytes() {
        let cases: [(&[u8], Option<InputFormat>); 12] = [
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
                b"{\n \"rocprofiler-sdk-tool\": [",
                Some(InputFormat::RocprofJson),
            ),
            (b"SQLite format 3\0", Some(InputFormat::NsightSystems)),
            (b"", None),
        ];
        for (head, format) in cases {
            assert_eq!(InputFormat::recognise(head), format, "{head:?}");
        }
    }
}
