//! Rewrites the kernel's events, which Perfetto's `traced_probes` writes as bundles with times of their own.

use super::super::reader::{FieldValue, MessageField, MessageFields};
use super::super::schema::field::{self, ftrace_event_bundle as bundle};
use super::super::wire::Encoder;
use super::rewrite::{rewrite, shifted};

/// Copies a bundle with its times shifted. Its times are BOOTTIME, unless the bundle names another clock: then a pair
/// of readings relates that clock to BOOTTIME, and only the pair has to be shifted.
pub(super) fn shift_bundle(offset: i64, bundle: &[u8], out: &mut Encoder) {
    let of_clock = MessageFields::new(bundle).filter(|field| field.number == bundle::FTRACE_CLOCK);
    let boottime = of_clock
        .last()
        .and_then(|field| field.number())
        .unwrap_or(0)
        == 0;
    let open = out.open(field::trace_packet::FTRACE_EVENTS);
    rewrite(bundle, out, |field, out| {
        match (field.number, field.value) {
            (bundle::BOOT_TIMESTAMP, FieldValue::Number(time)) => {
                out.uint(bundle::BOOT_TIMESTAMP, shifted(time, offset));
                true
            }
            _ if !boottime => false,
            (
                number
                @ (bundle::LAST_READ_EVENT_TIMESTAMP | bundle::PREVIOUS_BUNDLE_END_TIMESTAMP),
                FieldValue::Number(time),
            ) => {
                out.uint(number, shifted(time, offset));
                true
            }
            (number @ (bundle::EVENT | bundle::ERROR), FieldValue::Bytes(event)) => {
                let open = out.open(number);
                rewrite(event, out, |field, out| match (field.number, field.value) {
                    (field::ftrace_event::TIMESTAMP, FieldValue::Number(time)) => {
                        out.uint(field::ftrace_event::TIMESTAMP, shifted(time, offset));
                        true
                    }
                    _ => false,
                });
                out.close(open);
                true
            }
            (bundle::COMPACT_SCHED, FieldValue::Bytes(compact)) => {
                let open = out.open(bundle::COMPACT_SCHED);
                let (mut switches, mut wakeups) = (false, false);
                rewrite(compact, out, |field, out| match field.number {
                    bundle::compact_sched::SWITCH_TIMESTAMP => {
                        shift_first(offset, field, &mut switches, out)
                    }
                    bundle::compact_sched::WAKING_TIMESTAMP => {
                        shift_first(offset, field, &mut wakeups, out)
                    }
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

/// Copies numbers that are differences from the number before, the first one from 0. `begun` says whether the first
/// number was in an earlier field.
fn shift_first(offset: i64, field: MessageField<'_>, begun: &mut bool, out: &mut Encoder) -> bool {
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

    /// A bundle with an event, two compact switches, and a pair of readings of its clock.
    fn bundle(clock: u64, times: [u64; 4]) -> Vec<u8> {
        let mut out = Encoder::default();
        out.uint(1, 3);
        let event = out.open(bundle::EVENT);
        out.uint(field::ftrace_event::TIMESTAMP, times[0]);
        out.uint(2, 4242);
        out.close(event);
        let compact = out.open(bundle::COMPACT_SCHED);
        let mut packed = Encoder::default();
        packed.varint(times[1]);
        packed.varint(50);
        out.raw(bundle::compact_sched::SWITCH_TIMESTAMP, packed.bytes());
        out.raw(3, &[7, 8]);
        out.close(compact);
        out.uint(bundle::FTRACE_CLOCK, clock);
        out.uint(6, 77);
        out.uint(bundle::BOOT_TIMESTAMP, times[2]);
        out.uint(bundle::PREVIOUS_BUNDLE_END_TIMESTAMP, times[3]);
        out.bytes().to_vec()
    }

    fn shifted_by(offset: i64, bundle: &[u8]) -> Vec<u8> {
        let mut out = Encoder::default();
        shift_bundle(offset, bundle, &mut out);
        let field = MessageFields::new(out.bytes()).next().expect("a bundle");
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
