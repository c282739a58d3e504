//! The size of a trace per call and per kernel.

use crate::Outcome;
use gputrail_trace::perfetto::schema::TracePacket;
use gputrail_trace::perfetto::schema::trace_packet::Data;
use gputrail_trace::perfetto::schema::track_event::Type;
use prost::Message;
use std::path::Path;

/// A trace, with its bytes by purpose.
#[derive(Debug, Default)]
pub struct TraceSize {
    pub calls: u64,
    pub kernels: u64,
    /// Bytes of the packets of calls, and of the names and sequences for them: everything except the device's packets.
    pub call_bytes: u64,
    /// Bytes of the device's packets.
    pub kernel_bytes: u64,
}

impl TraceSize {
    /// Reads the trace at `path`.
    pub fn of(path: &Path) -> Outcome<TraceSize> {
        let trace = std::fs::read(path)?;
        let mut size = TraceSize::default();
        let mut rest = &trace[..];
        while !rest.is_empty() {
            let before = rest.len();
            let key = prost::encoding::decode_varint(&mut rest)?;
            let length = prost::encoding::decode_varint(&mut rest)? as usize;
            if key != 0x0a || length > rest.len() {
                return Err(format!("{} is not a trace", path.display()).into());
            }
            let (packet, behind) = rest.split_at(length);
            rest = behind;
            size.add(TracePacket::decode(packet)?, (before - rest.len()) as u64);
        }
        Ok(size)
    }

    fn add(&mut self, packet: TracePacket, bytes: u64) {
        if let Some(Data::GpuRenderStageEvent(_)) = packet.data {
            self.kernels += 1;
            self.kernel_bytes += bytes;
            return;
        }
        if let Some(Data::TrackEvent(event)) = &packet.data {
            self.calls += u64::from(event.r#type == Some(Type::SliceBegin as i32));
        }
        self.call_bytes += bytes;
    }
}
