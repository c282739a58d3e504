//! The kernel's events, as Perfetto's own `traced_probes` writes them: bundles of them, with times of their own.

use super::super::reader::{Field, FieldValue, Fields};
use super::super::wire::Encoder;
use super::field;
use super::rewrite::{rewrite, shifted};

/// Field numbers of `FtraceEventBundle` and what is in it.
mod number {
    pub const EVENT: u32 = 2;
    pub const COMPACT: u32 = 4;
    pub const CLOCK: u32 = 5;
    pub const BOOTTIME: u32 = 7;
    pub const ERROR: u32 = 8;
    pub const LAST_READ: u32 = 9;
    pub const PREVIOUS_END: u32 = 10;

    /// Of an event and of an error.
    pub const TIMESTAMP: u32 = 1;
    /// Of `CompactSched`: each time against the one before it.
    pub const SWITCHES: u32 = 1;
    pub const WAKEUPS: u32 = 7;
}

/// Copies a bundle with its times shifted. They are BOOTTIME, but where the bundle says that its clock is another one:
/// then that clock is told in BOOTTIME by a pair of readings, and only the pair has to be shifted.
pub(super) fn shift_bundle(offset: i64, bundle: &[u8], out: &mut Encoder) {
    let of_clock = Fields::new(bundle).filter(|field| field.number == number::CLOCK);
    let boottime = of_clock
        .last()
        .and_then(|field| field.number())
        .unwrap_or(0)
        == 0;
    let open = out.open(field::FTRACE);
    rewrite(bundle, out, |field, out| {
        match (field.number, field.value) {
            (number::BOOTTIME, FieldValue::Number(time)) => {
                out.uint(number::BOOTTIME, shifted(time, offset));
                true
            }
            _ if !boottime => false,
            (number @ (number::LAST_READ | number::PREVIOUS_END), FieldValue::Number(time)) => {
                out.uint(number, shifted(time, offset));
                true
            }
            (number @ (number::EVENT | number::ERROR), FieldValue::Bytes(event)) => {
                let open = out.open(number);
                rewrite(event, out, |field, out| match (field.number, field.value) {
                    (number::TIMESTAMP, FieldValue::Number(time)) => {
                        out.uint(number::TIMESTAMP, shifted(time, offset));
                        true
                    }
                    _ => false,
                });
                out.close(open);
                true
            }
            (number::COMPACT, FieldValue::Bytes(compact)) => {
                let open = out.open(number::COMPACT);
                let (mut switches, mut wakeups) = (false, false);
                rewrite(compact, out, |field, out| match field.number {
                    number::SWITCHES => shift_first(offset, field, &mut switches, out),
                    number::WAKEUPS => shift_first(offset, field, &mut wakeups, out),
                    _ => false,
                });
                out.close(open);
                true
            }
            _ => false,
        }
    });
    out.close(open);
}

/// Copies numbers of which each is told against the one before it, the first against 0. `begun` tells whether the first
/// was in a field before this one.
fn shift_first(offset: i64, field: Field<'_>, begun: &mut bool, out: &mut Encoder) -> bool {
    let mut packed = Encoder::default();
    for time in field.numbers() {
        let first = !std::mem::replace(begun, true);
        packed.varint(if first { shifted(time, offset) } else { time });
    }
    out.raw(field.number, packed.bytes());
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A bundle with an event, two switches told compactly, and a pair of readings of its clock.
    fn bundle(clock: u64, times: [u64; 4]) -> Vec<u8> {
        let mut out = Encoder::default();
        out.uint(1, 3);
        let event = out.open(number::EVENT);
        out.uint(number::TIMESTAMP, times[0]);
        out.uint(2, 4242);
        out.close(event);
        let compact = out.open(number::COMPACT);
        let mut packed = Encoder::default();
        packed.varint(times[1]);
        packed.varint(50);
        out.raw(number::SWITCHES, packed.bytes());
        out.raw(3, &[7, 8]);
        out.close(compact);
        out.uint(number::CLOCK, clock);
        out.uint(6, 77);
        out.uint(number::BOOTTIME, times[2]);
        out.uint(number::PREVIOUS_END, times[3]);
        out.bytes().to_vec()
    }

    fn shifted_by(offset: i64, bundle: &[u8]) -> Vec<u8> {
        let mut out = Encoder::default();
        shift_bundle(offset, bundle, &mut out);
        let field = Fields::new(out.bytes()).next().expect("a bundle");
        field.bytes().expect("bytes").to_vec()
    }

    #[test]
    fn every_time_of_a_bundle_is_shifted_once() {
        let before = bundle(0, [1_000, 1_100, 1_200, 900]);
        assert_eq!(shifted_by(-500, &before), bundle(0, [500, 600, 700, 400]));
        assert_eq!(shifted_by(0, &before), before);
    }

    #[test]
    fn in_another_clock_only_what_ties_it_to_boottime_is_shifted() {
        let before = bundle(2, [1_000, 1_100, 1_200, 900]);
        assert_eq!(
            shifted_by(500, &before),
            bundle(2, [1_000, 1_100, 1_700, 900])
        );
    }
}
