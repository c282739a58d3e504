//! Traces in one file, one behind the other, as `cat` makes them.
//!
//! Each of them counts its sequences, its device work and its flows from the same numbers. A trace has one packet with its
//! uuid, at its begin: a further one begins a further trace.

use super::{Packet, field};

/// Bits of a sequence's number, below the number of the trace.
const SEQUENCE_BITS: u32 = 24;
/// Bits of an id, below the number of the trace.
const ID_BITS: u32 = 56;

/// The traces of a file.
#[derive(Debug, Default)]
pub(super) struct TraceParts {
    /// Packets with a uuid so far.
    begun: u64,
}

impl TraceParts {
    /// The number of traces before this one.
    #[inline]
    fn before(&self) -> u64 {
        self.begun.saturating_sub(1)
    }

    /// Notes a packet, and gives its sequence a number that no other trace of the file has.
    #[inline]
    pub fn packet(&mut self, packet: &mut Packet<'_>) {
        if packet.data.0 == field::trace_packet::TRACE_UUID {
            self.begun += 1;
        }
        if self.begun > 1 && packet.sequence != 0 {
            packet.sequence ^= (self.before() as u32) << SEQUENCE_BITS;
        }
    }

    /// The bits by which ids of device work and of flows differ from equal ones of other traces of the file.
    #[inline]
    pub fn ids(&self) -> u64 {
        self.before() << ID_BITS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_further_uuid_begins_a_further_trace() {
        let mut parts = TraceParts::default();
        let mut sequence_of = |kind| {
            let mut packet = Packet {
                sequence: 7,
                data: (kind, &[]),
                ..Packet::default()
            };
            parts.packet(&mut packet);
            (packet.sequence, parts.ids())
        };
        let uuid = field::trace_packet::TRACE_UUID;
        assert_eq!(sequence_of(0), (7, 0));
        assert_eq!(sequence_of(uuid), (7, 0));
        assert_eq!(sequence_of(0), (7, 0));
        let second = (7 | 1 << 24, 1 << 56);
        assert_eq!(sequence_of(uuid), second);
        assert_eq!(sequence_of(0), second);
        assert_eq!(sequence_of(uuid), (7 | 2 << 24, 2 << 56));
    }
}
