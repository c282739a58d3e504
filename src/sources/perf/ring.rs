//! The records that the kernel writes to the ring of a perf event.
//!
//! ```text
//! header 8      type u32, misc u16, size u16 (header included)
//! sample 24     instruction pointer; process, thread u32; time; CPU, 0 u32
//! others        their own fields, then the last three of a sample
//! ```

/// A record in a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RingRecord<'a> {
    /// A sample.
    Sample(RingSample),
    /// A sample that lacks some of its fields.
    Invalid,
    /// Records were lost before this one because the ring was full.
    Lost {
        /// The number of lost records.
        count: u64,
        /// The time of this record.
        time: u64,
    },
    /// The thread mapped an executable file.
    Mapped {
        /// Start address.
        start: u64,
        /// Size in bytes.
        length: u64,
        /// Offset in the file.
        offset: u64,
        /// The path of the file, or a description of other memory.
        path: &'a [u8],
        /// The time of the mapping.
        time: u64,
    },
    /// The thread exited.
    Exit,
    /// The kernel throttled sampling because of too many samples.
    Throttled,
}

/// A sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingSample {
    /// The program counter.
    pub address: u64,
    /// The thread that was sampled.
    pub thread: u32,
    /// The time by `SAMPLE_CLOCK`, in nanoseconds.
    pub time: u64,
    /// The CPU on which the thread ran.
    pub cpu: u32,
}

const MMAP: u32 = 1;
const LOST: u32 = 2;
const EXIT: u32 = 4;
const THROTTLE: u32 = 5;
const SAMPLE: u32 = 9;
const LOST_SAMPLES: u32 = 13;

const HEADER: usize = 8;
/// Size of the sample_id at the end of records other than samples: process and thread, time, CPU.
const TRAILER: usize = 24;

/// Iterates over the records in `bytes`. Skips other types, and ends at a malformed record.
#[derive(Clone, Debug)]
pub struct RingRecords<'a> {
    bytes: &'a [u8],
    is_damaged: bool,
}

impl<'a> RingRecords<'a> {
    /// Creates an iterator over `bytes`, which must start at a record.
    pub fn new(bytes: &'a [u8]) -> RingRecords<'a> {
        RingRecords {
            bytes,
            is_damaged: false,
        }
    }

    /// Whether the iteration ended at a malformed record.
    pub fn is_damaged(&self) -> bool {
        self.is_damaged
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    let word = bytes.get(at..at.checked_add(8)?)?;
    Some(u64::from_ne_bytes(word.try_into().ok()?))
}

fn half(bytes: &[u8], at: usize) -> Option<u32> {
    let half = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_ne_bytes(half.try_into().ok()?))
}

fn sample(body: &[u8]) -> Option<RingSample> {
    Some(RingSample {
        address: word(body, 0)?,
        thread: half(body, 12)?,
        time: word(body, 16)?,
        cpu: half(body, 24)?,
    })
}

/// Parses a record, or returns `None` if it is too short or of another type.
fn read(kind: u32, body: &[u8]) -> Option<RingRecord<'_>> {
    let trailer = || body.len().checked_sub(TRAILER);
    let time = || word(body, trailer()? + 8);
    Some(match kind {
        SAMPLE => sample(body).map_or(RingRecord::Invalid, RingRecord::Sample),
        LOST => RingRecord::Lost {
            count: word(body, 8)?,
            time: time()?,
        },
        LOST_SAMPLES => RingRecord::Lost {
            count: word(body, 0)?,
            time: time()?,
        },
        MMAP => {
            let path = body.get(32..trailer()?)?;
            let end = path
                .iter()
                .position(|byte| *byte == 0)
                .unwrap_or(path.len());
            RingRecord::Mapped {
                start: word(body, 8)?,
                length: word(body, 16)?,
                offset: word(body, 24)?,
                path: &path[..end],
                time: time()?,
            }
        }
        EXIT => RingRecord::Exit,
        THROTTLE => RingRecord::Throttled,
        _ => return None,
    })
}

impl<'a> Iterator for RingRecords<'a> {
    type Item = RingRecord<'a>;

    fn next(&mut self) -> Option<RingRecord<'a>> {
        while !self.bytes.is_empty() {
            let (kind, size) = match (half(self.bytes, 0), self.bytes.get(6..HEADER)) {
                (Some(kind), Some(size)) => (kind, u16::from_ne_bytes([size[0], size[1]])),
                _ => break,
            };
            let Some(body) = self.bytes.get(HEADER..usize::from(size)) else {
                break;
            };
            self.bytes = &self.bytes[usize::from(size)..];
            if let Some(record) = read(kind, body) {
                return Some(record);
            }
        }
        self.is_damaged |= !self.bytes.is_empty();
        self.bytes = &[];
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn record(kind: u32, body: &[u64]) -> Vec<u8> {
        let size = (HEADER + 8 * body.len()) as u16;
        let mut bytes = kind.to_ne_bytes().to_vec();
        bytes.extend_from_slice(&0u16.to_ne_bytes());
        bytes.extend_from_slice(&size.to_ne_bytes());
        body.iter()
            .for_each(|word| bytes.extend_from_slice(&word.to_ne_bytes()));
        bytes
    }

    fn pair(low: u32, high: u32) -> u64 {
        u64::from(low) | u64::from(high) << 32
    }

    #[test]
    fn records_are_read_and_others_skipped() {
        let path = u64::from_ne_bytes(*b"/a.so\0\0\0");
        let run = [
            record(SAMPLE, &[0x7f00, pair(10, 11), 500, pair(1, 0)]),
            record(3, &[1, 2, 3]),
            record(LOST, &[9, 12, pair(10, 11), 600, pair(1, 0)]),
            record(
                MMAP,
                &[
                    pair(10, 11),
                    0x1000,
                    0x2000,
                    0x3000,
                    path,
                    pair(10, 11),
                    700,
                    0,
                ],
            ),
            record(EXIT, &[0, 0, 0, 0, 0, 0]),
        ]
        .concat();
        let mut records = RingRecords::new(&run);
        let read: Vec<_> = records.by_ref().collect();
        assert!(!records.is_damaged());
        let taken = RingSample {
            address: 0x7f00,
            thread: 11,
            time: 500,
            cpu: 1,
        };
        assert_eq!(
            read,
            [
                RingRecord::Sample(taken),
                RingRecord::Lost {
                    count: 12,
                    time: 600
                },
                RingRecord::Mapped {
                    start: 0x1000,
                    length: 0x2000,
                    offset: 0x3000,
                    path: b"/a.so",
                    time: 700
                },
                RingRecord::Exit,
            ]
        );
    }

    proptest! {
        #[test]
        fn no_bytes_make_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            RingRecords::new(&bytes).for_each(drop);
        }
    }
}
