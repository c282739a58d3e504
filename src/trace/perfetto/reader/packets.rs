//! The packets of a trace, one at a time, from any bytes.
//!
//! A trace may be gzipped as a whole, and packets may come in compressed groups. Bytes that form no packet are a
//! finding, and reading continues at the next packets.

use std::io::{BufReader, Chain, Cursor, Read};

use flate2::read::{MultiGzDecoder, ZlibDecoder};

use super::fields::{FieldValue, MessageField, MessageFields, key, varint};
use super::findings::{Findings, PacketPosition};
use super::window::StreamWindow;
use crate::perfetto::schema::field::trace;
use crate::perfetto::schema::field::trace_packet::{
    COMPRESSED_PACKETS as COMPRESSED, TRUSTED_PACKET_SEQUENCE_ID as SEQUENCE,
    ZSTD_COMPRESSED_PACKETS as ZSTD,
};
use gputrail_record::count;

/// Maximum size of a packet, and of a group after decompression.
const MAX_PACKET_BYTES: usize = 64 << 20;
/// Maximum size of the packet at which reading continues after damage.
const MAX_BYTES_AFTER_DAMAGE: usize = 64 << 10;
/// Maximum number of fields that are read to decide whether bytes form a packet.
const MAX_FIELDS: usize = 64;
/// Maximum size of a packet's head: its key and its length.
const HEAD: usize = 11;

/// Key of the field `packet` of a trace.
const PACKET: u8 = key::bytes(trace::PACKET);

/// The bytes of a packet.
#[derive(Copy, Clone, Debug)]
pub(in crate::perfetto) struct RawPacket<'a> {
    pub position: PacketPosition,
    pub bytes: &'a [u8],
}

/// The input: a stream whose first bytes have been read.
type Whole<R> = Chain<Cursor<Vec<u8>>, R>;

#[derive(Debug)]
enum PacketSource<R> {
    Plain(Whole<R>),
    Gzip(Box<MultiGzDecoder<BufReader<Whole<R>>>>),
}

impl<R: Read> Read for PacketSource<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        match self {
            PacketSource::Plain(source) => source.read(buffer),
            PacketSource::Gzip(source) => source.read(buffer),
        }
    }
}

/// The packets of a trace.
#[derive(Debug)]
pub(in crate::perfetto) struct PacketReader<R> {
    window: StreamWindow<PacketSource<R>>,
    gzipped: bool,
    /// Size of the packet that was returned last.
    given: usize,
    /// The group that is being read, decompressed.
    group: Vec<u8>,
    /// The position in the group.
    group_at: usize,
    /// The position of the group, and the number of the packet that was returned last.
    group_position: PacketPosition,
    groups: u64,
}

/// The next part of the stream.
enum Next {
    /// A packet: the number of bytes before it, and its size.
    Packet(usize, usize),
    /// The end of the stream.
    End,
    /// Bytes that form no packet, with the reason.
    Damage(String),
}

impl<R: Read> PacketReader<R> {
    pub fn new(mut source: R) -> PacketReader<R> {
        let mut first = Vec::new();
        // An error is returned again when the rest is read.
        let _ = source.by_ref().take(2).read_to_end(&mut first);
        let gzipped = first == [0x1f, 0x8b];
        let whole = Cursor::new(first).chain(source);
        let source = if gzipped {
            PacketSource::Gzip(Box::new(MultiGzDecoder::new(BufReader::new(whole))))
        } else {
            PacketSource::Plain(whole)
        };
        PacketReader {
            window: StreamWindow::new(source),
            gzipped,
            given: 0,
            group: Vec::new(),
            group_at: 0,
            group_position: PacketPosition::default(),
            groups: 0,
        }
    }

    /// Whether the trace is gzipped as a whole.
    pub fn gzipped(&self) -> bool {
        self.gzipped
    }

    /// The number of compressed groups so far.
    pub fn groups(&self) -> u64 {
        self.groups
    }

    /// The number of bytes read so far, after decompression if the trace is gzipped as a whole.
    pub fn position(&self) -> u64 {
        self.window.offset() + self.given as u64
    }

    /// The next packet; it is valid until the next call.
    #[inline]
    pub fn next(&mut self, findings: &mut Findings) -> Option<RawPacket<'_>> {
        loop {
            if self.group_at < self.group.len()
                && let Some((from, to)) = self.next_of_group(findings)
            {
                return Some(RawPacket {
                    position: self.group_position,
                    bytes: &self.group[from..to],
                });
            }
            self.window.leave(std::mem::take(&mut self.given));
            let position = PacketPosition {
                offset: self.window.offset(),
                inner: 0,
            };
            match self.look() {
                Next::End => {
                    if let Some(error) = self.window.error() {
                        findings.add(position, || format!("the rest cannot be read: {error}"));
                    }
                    return None;
                }
                Next::Damage(what) => self.search(position, what, findings),
                Next::Packet(head, length) => {
                    self.window.leave(head);
                    self.given = length;
                    let packet = &self.window.bytes()[..length];
                    match packed(packet) {
                        Some((COMPRESSED, bytes)) => {
                            let unpacked = unpack(bytes, &mut self.group);
                            self.groups += 1;
                            self.group_at = 0;
                            self.group_position = position;
                            if let Err(what) = unpacked {
                                findings.add(position, || what);
                            }
                        }
                        Some(_) => findings.add(position, || {
                            "a group compressed by zstd, which is not read: its packets are missing".into()
                        }),
                        None => {
                            return Some(RawPacket {
                                position,
                                bytes: &self.window.bytes()[..length],
                            });
                        }
                    }
                }
            }
        }
    }

    /// Classifies the next bytes without skipping them.
    #[inline]
    fn look(&mut self) -> Next {
        if !self.window.fill(1) {
            return Next::End;
        }
        self.window.fill(HEAD);
        let bytes = self.window.bytes();
        if bytes[0] != PACKET {
            return Next::Damage(format!(
                "not a packet: byte {:#04x}, expected {PACKET:#04x}",
                bytes[0]
            ));
        }
        let mut left = &bytes[1..];
        let Some(length) = varint(&mut left) else {
            let what = match bytes.len() {
                HEAD => "a packet with an invalid length",
                _ => "the first bytes of a packet: the trace was cut",
            };
            return Next::Damage(what.into());
        };
        let head = bytes.len() - left.len();
        let length = match usize::try_from(length) {
            Ok(length @ 0..=MAX_PACKET_BYTES) => length,
            _ => {
                return Next::Damage(format!(
                    "a packet of {length} bytes; up to {MAX_PACKET_BYTES} are read"
                ));
            }
        };
        if !self.window.fill(head + length) {
            let there = self.window.bytes().len() - head;
            return Next::Damage(format!(
                "a packet of {length} bytes, but only {there} are left: the trace was cut"
            ));
        }
        Next::Packet(head, length)
    }

    /// Skips bytes that form no packet.
    fn search(&mut self, from: PacketPosition, what: String, findings: &mut Findings) {
        loop {
            self.window.leave(1);
            // Two packets in a row are hardly accidental.
            if !self.window.fill(1) {
                break;
            }
            self.window.fill(2 * (MAX_BYTES_AFTER_DAMAGE + HEAD));
            let bytes = self.window.bytes();
            match bytes.iter().position(|byte| *byte == PACKET) {
                Some(0) => {}
                // One more byte is skipped above.
                Some(index) => {
                    self.window.leave(index - 1);
                    continue;
                }
                None => {
                    let length = bytes.len();
                    self.window.leave(length - 1);
                    continue;
                }
            }
            if let Some(rest) = after_packet(bytes)
                && (rest.is_empty() || after_packet(rest).is_some())
            {
                break;
            }
        }
        let to = self.window.offset();
        findings.add(from, || {
            format!("{what}; {} skipped", count(to - from.offset, "byte"))
        });
    }

    /// The next packet of the group: its begin and its end.
    fn next_of_group(&mut self, findings: &mut Findings) -> Option<(usize, usize)> {
        while self.group_at < self.group.len() {
            let left = &self.group[self.group_at..];
            self.group_position.inner = self.group_position.inner.saturating_add(1);
            let mut fields = MessageFields::new(left);
            let Some(MessageField {
                number: trace::PACKET,
                value: FieldValue::Bytes(packet),
            }) = fields.next()
            else {
                let bytes = count(left.len() as u64, "byte");
                self.group_at = self.group.len();
                findings.add(self.group_position, || {
                    format!("an invalid packet in a group: its last {bytes} skipped")
                });
                return None;
            };
            let to = self.group_at + fields.position();
            self.group_at = to;
            if packed(packet).is_none() {
                return Some((to - packet.len(), to));
            }
            findings.add(self.group_position, || {
                "a group within a group: it is skipped".into()
            });
        }
        None
    }
}

/// The compressed packets in a packet, and the method of compression.
#[inline(always)]
fn packed(packet: &[u8]) -> Option<(u32, &[u8])> {
    // The keys of both fields take two bytes.
    const KEYS: [[u8; 2]; 2] = [long_key(COMPRESSED), long_key(ZSTD)];
    match packet {
        [first, second, ..] if KEYS.contains(&[*first, *second]) => packed_field(packet),
        _ => None,
    }
}

/// The first two bytes of a field of bytes with this number.
const fn long_key(number: u32) -> [u8; 2] {
    let key = number << 3 | 2;
    [key as u8 | 0x80, (key >> 7) as u8]
}

#[cold]
fn packed_field(packet: &[u8]) -> Option<(u32, &[u8])> {
    // Such a packet has no other field.
    match MessageFields::new(packet).next() {
        Some(MessageField {
            number: number @ (COMPRESSED | ZSTD),
            value: FieldValue::Bytes(bytes),
        }) => Some((number, bytes)),
        _ => None,
    }
}

fn unpack(bytes: &[u8], group: &mut Vec<u8>) -> Result<(), String> {
    group.clear();
    let mut unpacked = ZlibDecoder::new(bytes).take(MAX_PACKET_BYTES as u64);
    match unpacked.read_to_end(group) {
        Err(error) => Err(format!("a group whose compression is damaged: {error}")),
        Ok(MAX_PACKET_BYTES) => Err(format!(
            "a group of more than {MAX_PACKET_BYTES} bytes: the rest is skipped"
        )),
        Ok(_) => Ok(()),
    }
}

/// The bytes after the packet at the front of `bytes`, if there is one.
fn after_packet(bytes: &[u8]) -> Option<&[u8]> {
    let (PACKET, mut left) = bytes.split_first().map(|(first, left)| (*first, left))? else {
        return None;
    };
    let length = usize::try_from(varint(&mut left)?).ok()?;
    if length == 0 || length > left.len().min(MAX_BYTES_AFTER_DAMAGE) {
        return None;
    }
    let (packet, rest) = left.split_at(length);
    let mut fields = MessageFields::new(packet);
    let of_sequence =
        |field: MessageField<'_>| field.number == SEQUENCE && field.number().is_some();
    let (mut count, mut sequence) = (0, false);
    for field in fields.by_ref() {
        count += 1;
        sequence |= of_sequence(field);
        if count > MAX_FIELDS {
            return None;
        }
    }
    (fields.malformed().is_none() && sequence).then_some(rest)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::super::super::wire::Encoder;
    use super::*;
    use proptest::prelude::*;

    /// A packet of sequence 1 with `filling` as an unknown field.
    fn packet(filling: &[u8]) -> Vec<u8> {
        let mut encoder = Encoder::default();
        let packet = encoder.open(trace::PACKET);
        encoder.uint(SEQUENCE, 1);
        encoder.raw(900, filling);
        encoder.close(packet);
        encoder.bytes().to_vec()
    }

    fn read(trace: &[u8]) -> (Vec<(PacketPosition, Vec<u8>)>, Findings) {
        let mut packets = PacketReader::new(trace);
        let read = all(&mut packets);
        assert_eq!(packets.gzipped(), trace.starts_with(&[0x1f, 0x8b]));
        assert!(packets.gzipped() || packets.position() <= trace.len() as u64);
        read
    }

    fn all<R: Read>(packets: &mut PacketReader<R>) -> (Vec<(PacketPosition, Vec<u8>)>, Findings) {
        let mut findings = Findings::default();
        let mut list = Vec::new();
        while let Some(packet) = packets.next(&mut findings) {
            list.push((packet.position, packet.bytes.to_vec()));
        }
        (list, findings)
    }

    /// A source that gives a byte at a time, as a slow pipe may.
    struct Bytewise<'a>(&'a [u8]);

    impl Read for Bytewise<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let most = buffer.len().min(1);
            self.0.read(&mut buffer[..most])
        }
    }

    fn group(packets: &[u8], level: u32) -> Vec<u8> {
        let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::new(level));
        zlib.write_all(packets).unwrap();
        let mut encoder = Encoder::default();
        let packet = encoder.open(trace::PACKET);
        encoder.raw(COMPRESSED, &zlib.finish().unwrap());
        encoder.close(packet);
        encoder.bytes().to_vec()
    }

    #[test]
    fn a_trace_gzipped_in_several_members_is_read_as_one() {
        let mut trace = Vec::new();
        for number in 0..3 {
            let mut gzip = flate2::write::GzEncoder::new(&mut trace, flate2::Compression::fast());
            gzip.write_all(&packet(&[number; 5000])).unwrap();
            gzip.finish().unwrap();
        }
        let (packets, findings) = read(&trace);
        assert_eq!((packets.len(), findings.count()), (3, 0));
        let (packets, findings) = read(&trace[..trace.len() - 9]);
        assert_eq!(packets.len(), 3, "only the checksum is missing");
        assert_eq!(findings.count(), 1, "{findings:?}");
    }

    #[test]
    fn packets_of_a_group_are_numbered_and_a_torn_group_costs_itself_alone() {
        let three = [packet(b"a"), packet(b"b"), packet(b"c")].concat();
        let whole = group(&three, 6);
        let mut torn = group(&three, 0);
        let length = torn.len();
        torn[length - 20] ^= 0xff;
        let trace = [packet(b"first"), whole.clone(), torn, packet(b"last")].concat();
        let (packets, findings) = read(&trace);
        let positions: Vec<_> = packets.iter().map(|(position, _)| position.inner).collect();
        assert_eq!(positions[..4], [0, 1, 2, 3]);
        assert_eq!(positions.last(), Some(&0));
        assert_eq!(packets[1].0.offset, packet(b"first").len() as u64);
        assert!(findings.count() > 0);
        let within = group(&whole, 6);
        let (packets, findings) = read(&within);
        assert!(packets.is_empty());
        assert!(findings.list()[0].what.contains("group within a group"));
    }

    #[test]
    fn reading_goes_on_behind_damage() {
        let mut trace = [
            packet(b"one"),
            packet(b"two"),
            packet(b"three"),
            packet(b"four"),
        ]
        .concat();
        let second = packet(b"one").len();
        trace[second + 1] = 0xff;
        let (packets, findings) = read(&trace);
        assert_eq!(packets.len(), 3);
        assert_eq!(findings.list()[0].position.offset, second as u64);
        let (slowly, _) = all(&mut PacketReader::new(Bytewise(&trace)));
        assert_eq!(slowly, packets);
    }

    #[test]
    fn a_length_that_is_absurd_takes_no_memory() {
        let mut trace = packet(b"one");
        trace.extend_from_slice(&[PACKET, 0xff, 0xff, 0xff, 0x1f]);
        let (packets, findings) = read(&trace);
        assert_eq!((packets.len(), findings.count()), (1, 1));
        assert!(findings.list()[0].what.contains("are left"), "{findings:?}");
    }

    proptest! {
        #[test]
        fn every_packet_before_a_cut_is_read(
            sizes in prop::collection::vec(0_usize..400, 1..20), cut: prop::sample::Index,
        ) {
            let packets: Vec<_> = sizes.iter().map(|size| packet(&vec![7; *size])).collect();
            let trace = packets.concat();
            let cut = cut.index(trace.len() + 1);
            let mut whole = 0;
            let mut end = 0;
            for packet in &packets {
                if end + packet.len() > cut {
                    break;
                }
                end += packet.len();
                whole += 1;
            }
            let (read, findings) = read(&trace[..cut]);
            prop_assert_eq!(read.len(), whole);
            prop_assert_eq!(findings.count(), u64::from(end < cut));
        }

        #[test]
        fn any_bytes_end(bytes: Vec<u8>) {
            read(&bytes);
        }
    }
}
