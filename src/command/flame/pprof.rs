//! pprof's `profile.proto`: a few fields of a few messages, which are written here by hand.

use super::FlameUnit;
use anyhow::{Context, Result};
use flate2::Compression;
use flate2::write::GzEncoder;
use gputrail_analysis::stacks::StackTree;
use std::io::Write;

/// A message of Protocol Buffers.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn number(&mut self, field: u64, value: u64) {
        self.varint(field << 3);
        self.varint(value);
    }

    fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn packed(&mut self, field: u64, values: impl Iterator<Item = u64>) {
        let mut list = Message::default();
        values.for_each(|value| list.varint(value));
        self.bytes(field, &list.0);
    }
}

/// The fields of `Profile`.
mod profile {
    pub const SAMPLE_TYPE: u64 = 1;
    pub const SAMPLE: u64 = 2;
    pub const LOCATION: u64 = 4;
    pub const FUNCTION: u64 = 5;
    pub const STRING_TABLE: u64 = 6;
    pub const DEFAULT_SAMPLE_TYPE: u64 = 14;
}

/// The texts ahead of the names of frames: the first one must be empty.
fn texts(unit: FlameUnit) -> [&'static str; 5] {
    match unit {
        FlameUnit::DeviceTime => ["", "executions", "count", "device time", "nanoseconds"],
        FlameUnit::Samples => ["", "addresses", "count", "samples", "count"],
    }
}

/// A value type: its name and its unit, as places of texts.
fn value_type(name: u64, unit: u64) -> Vec<u8> {
    let mut message = Message::default();
    message.number(1, name);
    message.number(2, unit);
    message.0
}

/// The profile, packed with gzip.
pub fn packed(tree: &StackTree, unit: FlameUnit) -> Result<Vec<u8>> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    let written = packed
        .write_all(&plain(tree, unit))
        .and_then(|()| packed.finish());
    written.context("the profile cannot be packed")
}

fn plain(tree: &StackTree, unit: FlameUnit) -> Vec<u8> {
    let texts = texts(unit);
    let mut all = Message::default();
    all.bytes(profile::SAMPLE_TYPE, &value_type(1, 2));
    all.bytes(profile::SAMPLE_TYPE, &value_type(3, 4));
    for (frames, count, value) in tree.stacks() {
        let mut sample = Message::default();
        // Locations count from 1, the innermost first.
        sample.packed(1, frames.iter().rev().map(|frame| u64::from(*frame) + 1));
        sample.packed(2, [count, value].into_iter());
        all.bytes(profile::SAMPLE, &sample.0);
    }
    for (id, _) in (1_u64..).zip(tree.names()) {
        let mut line = Message::default();
        line.number(1, id);
        let mut location = Message::default();
        location.number(1, id);
        location.bytes(4, &line.0);
        all.bytes(profile::LOCATION, &location.0);
        let mut function = Message::default();
        function.number(1, id);
        function.number(2, id - 1 + texts.len() as u64);
        all.bytes(profile::FUNCTION, &function.0);
    }
    let names = tree.names().iter().map(|name| &**name);
    for text in texts.into_iter().chain(names) {
        all.bytes(profile::STRING_TABLE, text.as_bytes());
    }
    all.number(profile::DEFAULT_SAMPLE_TYPE, 3);
    all.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_have_the_bytes_of_the_wire_format() {
        let mut message = Message::default();
        message.number(1, 300);
        message.bytes(2, b"ab");
        message.packed(3, [1, 128].into_iter());
        let expected = [
            0x08, 0xac, 0x02, 0x12, 2, b'a', b'b', 0x1a, 3, 1, 0x80, 0x01,
        ];
        assert_eq!(message.0, expected);
    }

    #[test]
    fn a_profile_has_samples_with_the_innermost_frame_first() {
        let bytes = plain(&super::super::tests::tree(), FlameUnit::DeviceTime);
        // Locations 3, 2, 1, and the values 1 and 10.
        let sample = [0x12, 9, 0x0a, 3, 3, 2, 1, 0x12, 2, 1, 10];
        assert!(bytes.windows(sample.len()).any(|part| part == sample));
        assert!(bytes.windows(4).any(|part| part == b"gemm"));
    }
}
