//! The messages on the session's socket: one of fixed size each way.
//!
//! ```text
//! process -> parent   Hello   32 bytes
//! parent -> process   Answer  64 bytes, and on success two files: the memory of the pool and of the queue behind it,
//!                             and the switch of the session
//! ```
//!
//! Integers are of the machine's own byte order: both ends run on one machine.

use bytemuck::{Pod, Zeroable};
use gputrail_buffer::Policy;
use gputrail_buffer::clock::TickSource;

/// Version of these messages and of everything behind them that both ends must agree on: the layout of the
/// mapping and of the records.
pub(super) const PROTOCOL: u32 = 5 << 16 | gputrail_record::FORMAT_VERSION;

const HELLO: [u8; 8] = *b"gputrail";
const ANSWER: [u8; 8] = *b"gputrec\n";

/// Why a process asks for a buffer.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Reason {
    /// The library was loaded.
    Loaded = 0,
    /// The process was forked, and has made its first call.
    Forked = 1,
}

/// A process's introduction.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// Its id as it sees it itself; inside a namespace the parent sees another one.
    pub pid: u32,
    /// Why it asks.
    pub reason: Reason,
    /// Where its ticks come from: the parent takes clock snapshots for it.
    pub ticks: TickSource,
}

#[repr(C)]
#[derive(Copy, Clone, Pod, Zeroable)]
struct RawHello {
    magic: [u8; 8],
    protocol: u32,
    pid: u32,
    reason: u32,
    ticks: u32,
    reserved: [u32; 2],
}

/// The parent's instructions: what to record, and how.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Number of the process in the session, from 1.
    pub process: u32,
    /// The policy when no block is empty.
    pub policy: Policy,
    /// Bytes in a lane's block from which the parent takes them; 0 takes what is there at each look.
    pub watermark: u32,
    /// Length of the pool's memory. The queue of metadata lies behind it.
    pub mapping_bytes: u64,
    /// A call that takes at least as many nanoseconds asks for a dump of what is kept; 0: none does.
    pub slow_nanos: u64,
}

/// Why a parent gives no buffer.
#[derive(Copy, Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Library and command are of different versions.
    #[error("the running gputrail uses another version of the session protocol")]
    Version,
    /// The session has reached its limit of processes at a time.
    #[error("the session already records its maximum number of processes")]
    Processes,
    /// The parent could not make the memory or the file.
    #[error("the running gputrail could not make a pool or a capture: {}", std::io::Error::from_raw_os_error(*.0))]
    Resources(i32),
}

/// An answer of the parent.
pub(super) type ParentAnswer = Result<Config, Refusal>;

#[repr(C)]
#[derive(Copy, Clone, Pod, Zeroable)]
struct RawAnswer {
    magic: [u8; 8],
    protocol: u32,
    status: u32,
    errno: i32,
    process: u32,
    policy: u32,
    watermark: u32,
    mapping_bytes: u64,
    slow_nanos: u64,
    reserved: [u64; 2],
}

pub(super) const HELLO_BYTES: usize = size_of::<RawHello>();
pub(super) const ANSWER_BYTES: usize = size_of::<RawAnswer>();
const _: () = assert!(HELLO_BYTES == 32 && ANSWER_BYTES == 64);

/// Bytes from the socket that are no message of this protocol.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum MalformedMessage {
    #[error("{0} bytes, expected {1}")]
    Length(usize, usize),
    #[error("the first bytes are not gputrail's")]
    Magic,
    #[error("protocol {0:#x}, expected {PROTOCOL:#x}")]
    Protocol(u32),
    #[error("{0} has the unknown value {1}")]
    Field(&'static str, u32),
}

impl Hello {
    pub(super) fn encode(self) -> [u8; HELLO_BYTES] {
        bytemuck::cast(RawHello {
            magic: HELLO,
            protocol: PROTOCOL,
            pid: self.pid,
            reason: self.reason as u32,
            ticks: self.ticks.code(),
            reserved: [0; 2],
        })
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Hello, MalformedMessage> {
        let raw: RawHello = read(bytes)?;
        if raw.magic != HELLO {
            return Err(MalformedMessage::Magic);
        }
        if raw.protocol != PROTOCOL {
            return Err(MalformedMessage::Protocol(raw.protocol));
        }
        let reason = match raw.reason {
            0 => Reason::Loaded,
            1 => Reason::Forked,
            other => return Err(MalformedMessage::Field("reason", other)),
        };
        let ticks =
            TickSource::from_code(raw.ticks).ok_or(MalformedMessage::Field("ticks", raw.ticks))?;
        Ok(Hello {
            pid: raw.pid,
            reason,
            ticks,
        })
    }
}

pub(super) fn encode_answer(answer: ParentAnswer) -> [u8; ANSWER_BYTES] {
    let mut raw = RawAnswer {
        magic: ANSWER,
        protocol: PROTOCOL,
        ..RawAnswer::zeroed()
    };
    match answer {
        Ok(config) => {
            raw.process = config.process;
            raw.policy = config.policy as u32;
            raw.watermark = config.watermark;
            raw.mapping_bytes = config.mapping_bytes;
            raw.slow_nanos = config.slow_nanos;
        }
        Err(Refusal::Version) => raw.status = 1,
        Err(Refusal::Processes) => raw.status = 2,
        Err(Refusal::Resources(errno)) => (raw.status, raw.errno) = (3, errno),
    }
    bytemuck::cast(raw)
}

pub(super) fn decode_answer(bytes: &[u8]) -> Result<ParentAnswer, MalformedMessage> {
    let raw: RawAnswer = read(bytes)?;
    if raw.magic != ANSWER {
        return Err(MalformedMessage::Magic);
    }
    // A parent of another version refuses in its own words: they start as ours do.
    if raw.protocol != PROTOCOL {
        return Ok(Err(Refusal::Version));
    }
    Ok(match raw.status {
        0 => Ok(Config {
            process: raw.process,
            policy: Policy::from_code(raw.policy)
                .ok_or(MalformedMessage::Field("policy", raw.policy))?,
            watermark: raw.watermark,
            mapping_bytes: raw.mapping_bytes,
            slow_nanos: raw.slow_nanos,
        }),
        1 => Err(Refusal::Version),
        2 => Err(Refusal::Processes),
        3 => Err(Refusal::Resources(raw.errno)),
        other => return Err(MalformedMessage::Field("status", other)),
    })
}

fn read<T: Pod>(bytes: &[u8]) -> Result<T, MalformedMessage> {
    bytemuck::try_pod_read_unaligned(bytes)
        .map_err(|_| MalformedMessage::Length(bytes.len(), size_of::<T>()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const CONFIG: Config = Config {
        process: 3,
        policy: Policy::Lossless,
        watermark: 4096,
        mapping_bytes: 1 << 24,
        slow_nanos: 5_000_000,
    };

    #[test]
    fn messages_survive_the_way() {
        let hello = Hello {
            pid: 42,
            reason: Reason::Forked,
            ticks: TickSource::Monotonic,
        };
        assert_eq!(Hello::decode(&hello.encode()), Ok(hello));
        for answer in [
            Ok(CONFIG),
            Err(Refusal::Version),
            Err(Refusal::Processes),
            Err(Refusal::Resources(28)),
        ] {
            assert_eq!(decode_answer(&encode_answer(answer)), Ok(answer));
        }
    }

    #[test]
    fn a_hello_of_another_version_is_distinguished_from_noise() {
        let mut bytes = Hello {
            pid: 1,
            reason: Reason::Loaded,
            ticks: TickSource::Monotonic,
        }
        .encode();
        bytes[8] ^= 1;
        assert!(matches!(
            Hello::decode(&bytes),
            Err(MalformedMessage::Protocol(_))
        ));
        bytes[0] = 0;
        assert_eq!(Hello::decode(&bytes), Err(MalformedMessage::Magic));
        assert_eq!(Hello::decode(&[]), Err(MalformedMessage::Length(0, 32)));
    }

    #[test]
    fn values_that_mean_nothing_are_named() {
        let mut bytes = Hello {
            pid: 1,
            reason: Reason::Loaded,
            ticks: TickSource::Monotonic,
        }
        .encode();
        bytes[16] = 9;
        assert_eq!(
            Hello::decode(&bytes),
            Err(MalformedMessage::Field("reason", 9))
        );
        let mut bytes = encode_answer(Ok(CONFIG));
        bytes[24] = 9;
        assert_eq!(
            decode_answer(&bytes),
            Err(MalformedMessage::Field("policy", 9))
        );
    }

    proptest! {
        #[test]
        fn no_bytes_make_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            let _ = Hello::decode(&bytes);
            let _ = decode_answer(&bytes);
        }

        #[test]
        fn no_bytes_behind_a_true_magic_make_a_panic(rest in proptest::array::uniform32(any::<u8>())) {
            let mut hello = rest;
            hello[..8].copy_from_slice(&HELLO);
            let _ = Hello::decode(&hello);
            let mut answer = [0; ANSWER_BYTES];
            answer[8..40].copy_from_slice(&rest);
            answer[..8].copy_from_slice(&ANSWER);
            let _ = decode_answer(&answer);
        }
    }
}
