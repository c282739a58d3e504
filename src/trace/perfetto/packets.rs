//! The packets of a trace: one buffer, flushed only between packets, and the clock of each packet sequence.

use std::io::{self, Write};

use flate2::{Compress, Compression, FlushCompress, Status};
use prost::Message;

use super::schema::trace_packet::SequenceFlags;
use super::schema::{
    BuiltinClock, ClockSnapshot, TracePacket, TracePacketDefaults, field, trace_packet,
};
use super::wire::{Encoder, MAX_SMALL_BYTES, MessageStart, OpenMessage, ShortFields};

/// `sequence_flags`: everything interned before is invalid.
pub(super) const CLEARED: u32 = SequenceFlags::SeqIncrementalStateCleared as u32;
/// `sequence_flags`: the packet refers to interned data.
pub(super) const NEEDS_STATE: u64 = SequenceFlags::SeqNeedsIncrementalState as u64;

/// Perfetto's number of CLOCK_BOOTTIME, the clock of our traces.
pub(super) const BOOTTIME: u32 = BuiltinClock::Boottime as u32;
/// Number of the incremental clock that each of our sequences has.
const INCREMENTAL: u32 = 64;

/// The buffer is written to the file when it holds this many bytes.
const FLUSH_AT: usize = 128 << 10;
/// Space for the largest ordinary packet beyond [`FLUSH_AT`].
const SLACK: usize = 16 << 10;

/// Compression level of groups, of 9: higher levels take longer than the smaller file saves.
const LEVEL: u32 = 6;

/// Compresses groups of packets, each independently.
#[derive(Debug)]
struct Groups {
    zlib: Compress,
    group: Vec<u8>,
    /// The packet that holds a group.
    packet: Encoder,
}

impl Groups {
    fn new() -> Groups {
        Groups {
            zlib: Compress::new(Compression::new(LEVEL), true),
            group: Vec::new(),
            packet: Encoder::default(),
        }
    }

    /// The packet that holds `packets`. Readers refuse a whole trace if one group is torn, so it is complete before any
    /// of it is written.
    fn pack(&mut self, packets: &[u8]) -> io::Result<&[u8]> {
        self.zlib.reset();
        self.group.clear();
        loop {
            let taken = usize::try_from(self.zlib.total_in()).unwrap_or(packets.len());
            self.group.reserve(packets.len() / 4 + 64);
            let status =
                self.zlib
                    .compress_vec(&packets[taken..], &mut self.group, FlushCompress::Finish);
            if status.map_err(io::Error::other)? == Status::StreamEnd {
                break;
            }
        }
        self.packet.clear();
        let packet = self.packet.open(field::trace::PACKET);
        self.packet
            .raw(field::trace_packet::COMPRESSED_PACKETS, &self.group);
        self.packet.close(packet);
        Ok(self.packet.bytes())
    }
}

/// A file of compressed groups: each buffer that is written to it holds whole packets, and becomes a group.
#[derive(Debug)]
pub struct CompressedGroups<W> {
    out: W,
    groups: Groups,
}

impl<W: Write> CompressedGroups<W> {
    /// A file that is written to `out`.
    pub fn new(out: W) -> CompressedGroups<W> {
        CompressedGroups {
            out,
            groups: Groups::new(),
        }
    }
}

impl<W: Write> Write for CompressedGroups<W> {
    fn write(&mut self, packets: &[u8]) -> io::Result<usize> {
        self.out.write_all(self.groups.pack(packets)?)?;
        Ok(packets.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Writes packets.
#[derive(Debug)]
pub(super) struct PacketWriter<W> {
    out: W,
    encoder: Encoder,
    groups: Option<Box<Groups>>,
    written: u64,
    /// The begin of the trace, BOOTTIME ns: all sequences count from it.
    start: u64,
}

impl<W: Write> PacketWriter<W> {
    pub fn new(out: W) -> PacketWriter<W> {
        PacketWriter {
            out,
            start: 0,
            encoder: Encoder::with_capacity(FLUSH_AT + SLACK),
            groups: None,
            written: 0,
        }
    }

    /// Sets the begin of the trace, before the first sequence.
    pub fn set_start(&mut self, start: u64) {
        self.start = start;
    }

    /// Compresses everything that has not been written yet and all that follows.
    pub fn compress(&mut self) {
        self.groups = Some(Box::new(Groups::new()));
    }

    /// The number of bytes of complete packets in the file.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// The size of all packets so far, in bytes; packets that are not compressed yet count with their present size.
    pub fn total(&self) -> u64 {
        self.written + self.encoder.len() as u64
    }

    /// Begins a packet that is written by hand: sequence and time, and the numbers that `fill` adds. Further fields are
    /// written to [`PacketWriter::encoder`], until [`PacketWriter::end`].
    #[inline(always)]
    pub fn begin<T>(
        &mut self,
        sequence: &mut WrittenSequence,
        time: u64,
        fill: impl FnOnce(&mut ShortFields<'_>) -> T,
    ) -> (OpenMessage, T) {
        self.encoder.short_fields(
            #[inline(always)]
            |fields| (sequence.begin(fields, time), fill(fields)),
        )
    }

    /// The encoder of the packet that has begun.
    #[inline]
    pub fn encoder(&mut self) -> &mut Encoder {
        &mut self.encoder
    }

    /// Ends the packet that has begun.
    #[inline]
    pub fn end(&mut self, packet: OpenMessage) -> io::Result<()> {
        self.encoder.close(packet);
        self.flush_if_full()
    }

    /// Writes one packet of numbers, by hand with `fill`.
    #[inline]
    pub fn short_packet(
        &mut self,
        sequence: &mut WrittenSequence,
        time: u64,
        fill: impl FnOnce(&mut ShortFields<'_>),
    ) -> io::Result<()> {
        self.encoder.short_fields(
            #[inline(always)]
            |fields| {
                let packet = sequence.begin(fields, time);
                fill(fields);
                fields.close(packet);
            },
        );
        self.flush_if_full()
    }

    /// Whether a few more fields may fill the buffer.
    #[inline(always)]
    pub fn nearly_full(&self) -> bool {
        self.encoder.len() >= FLUSH_AT - MAX_SMALL_BYTES
    }

    /// Writes two packets of numbers with consecutive times in one sequence. The buffer must not be nearly full.
    #[inline(always)]
    pub fn two_packets(
        &mut self,
        sequence: &mut WrittenSequence,
        (first, second): (u64, u64),
        fill_first: impl FnOnce(&mut ShortFields<'_>),
        fill_second: impl FnOnce(&mut ShortFields<'_>),
    ) {
        debug_assert!(!self.nearly_full(), "a packet too late to flush");
        self.encoder.short_fields(
            #[inline(always)]
            |fields| {
                let packet = sequence.begin(fields, first);
                fill_first(fields);
                fields.close(packet);
                let packet = sequence.begin(fields, second);
                fill_second(fields);
                fields.close(packet);
            },
        );
    }

    /// Writes one packet with prost.
    pub fn message(&mut self, packet: &TracePacket) -> io::Result<()> {
        self.encoder
            .raw(field::trace::PACKET, &packet.encode_to_vec());
        self.flush_if_full()
    }

    #[inline]
    fn flush_if_full(&mut self) -> io::Result<()> {
        match self.encoder.len() {
            FLUSH_AT.. => self.flush(),
            _ => Ok(()),
        }
    }

    /// Writes all packets to the file.
    #[cold]
    pub fn flush(&mut self) -> io::Result<()> {
        if self.encoder.is_empty() {
            return self.out.flush();
        }
        let bytes = match &mut self.groups {
            Some(groups) => groups.pack(self.encoder.bytes())?,
            None => self.encoder.bytes(),
        };
        self.out.write_all(bytes)?;
        self.out.flush()?;
        self.written += bytes.len() as u64;
        self.encoder.clear();
        Ok(())
    }
}

/// A packet sequence: the scope of interned ids and defaults, with a clock that counts from packet to packet.
#[derive(Debug)]
pub(super) struct WrittenSequence {
    id: u32,
    /// Time of the latest packet in the incremental clock, BOOTTIME ns. `None` if readers have no state of the
    /// sequence, and [`WrittenSequence::restart`] must come next.
    now: Option<u64>,
    /// Whether packets have been written.
    begun: bool,
    /// The constant begin of each of its packets, up to the key of the time.
    start: MessageStart,
}

impl WrittenSequence {
    pub fn new(id: u32) -> WrittenSequence {
        let start = MessageStart::new(|trace| {
            let packet = trace.open(field::trace::PACKET);
            trace.uint(
                field::trace_packet::TRUSTED_PACKET_SEQUENCE_ID,
                u64::from(id),
            );
            trace.key(field::trace_packet::TIMESTAMP);
            packet
        });
        WrittenSequence {
            id,
            now: None,
            begun: false,
            start: start.expect("9 bytes at most"),
        }
    }

    /// Its number.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Whether [`WrittenSequence::restart`] must come before the next packet.
    #[inline]
    pub fn is_cleared(&self) -> bool {
        self.now.is_none()
    }

    /// Forgets the state that readers have, so that it is sent again.
    pub fn clear(&mut self) {
        self.now = None;
    }

    /// Begins the sequence, or begins it anew: clears its state and sends defaults and clock. Readers forget both when
    /// the state is cleared, and would then misread later times without an error.
    pub fn restart<W: Write>(
        &mut self,
        packets: &mut PacketWriter<W>,
        mut defaults: TracePacketDefaults,
    ) -> io::Result<()> {
        use super::schema::clock_snapshot::Clock;
        let time = packets.start;
        defaults.timestamp_clock_id = Some(INCREMENTAL);
        packets.message(&TracePacket {
            trusted_packet_sequence_id: Some(self.id),
            sequence_flags: Some(CLEARED),
            first_packet_on_sequence: (!self.begun).then_some(true),
            trace_packet_defaults: Some(defaults),
            data: Some(trace_packet::Data::ClockSnapshot(ClockSnapshot {
                clocks: vec![
                    Clock {
                        clock_id: Some(BOOTTIME),
                        timestamp: Some(time),
                        ..Clock::default()
                    },
                    Clock {
                        clock_id: Some(INCREMENTAL),
                        timestamp: Some(time),
                        is_incremental: Some(true),
                        ..Clock::default()
                    },
                ],
                primary_trace_clock: None,
            })),
            ..TracePacket::default()
        })?;
        self.now = Some(time);
        self.begun = true;
        Ok(())
    }

    /// Begins a packet with its sequence and time. A time before the latest one is written as an absolute time, and the
    /// incremental clock stays where it is.
    #[inline(always)]
    fn begin(&mut self, fields: &mut ShortFields<'_>, time: u64) -> OpenMessage {
        let packet = fields.start(&self.start);
        match self.now {
            Some(now) if time >= now => {
                fields.varint(time - now);
                self.now = Some(time);
            }
            _ => {
                fields.varint(time);
                fields.uint(field::trace_packet::TIMESTAMP_CLOCK_ID, u64::from(BOOTTIME));
            }
        }
        packet
    }
}
