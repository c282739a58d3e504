//! Begins and ends of slices, put together.

use std::collections::HashMap;
use std::io;

use super::collect::Collected;
use super::record::{EventRecord, NONE, RecordHead, StoredKind, flag};
use gputrail_trace::sorter::SortKey;

/// Most slices that are open at a time; further ones stay without an end.
const MAX_OPEN: usize = 1 << 20;

/// An open slice.
struct UnendedSlice {
    start: i64,
    head: RecordHead,
    /// The record without its fixed fields.
    rest: Box<[u8]>,
}

/// The lane and the id within which begins and ends nest.
type NestingScope = (u32, u64);

/// Puts begins and ends together, and adds them to the events as whole slices.
pub(super) fn join(collected: &mut Collected<'_>) -> io::Result<()> {
    if collected.pairs.is_empty() {
        return Ok(());
    }
    let pairs = std::mem::take(&mut collected.pairs);
    let mut stacks: HashMap<NestingScope, Vec<UnendedSlice>> = HashMap::new();
    let mut count = 0;
    pairs.drain(|(time, _), bytes| {
        let record = EventRecord::read(bytes);
        let rest = &bytes[size_of::<RecordHead>()..];
        let head = record.head;
        // Ids count for all threads of a process; the lane is that of the outermost slice with the id.
        let scope = match head.id {
            0 => (head.lane, 0),
            id => (0, id),
        };
        match head.kind() {
            StoredKind::Begin => {
                let stack = stacks.entry(scope).or_default();
                let mut open = UnendedSlice {
                    start: time,
                    head: head.with_kind(StoredKind::Slice),
                    rest: rest.into(),
                };
                if head.id != 0
                    && let Some(outer) = stack.first()
                {
                    open.head.lane = outer.head.lane;
                    open.head.flags |= flag::INNER;
                }
                if count >= MAX_OPEN {
                    return add(collected, &open, (NONE, stack.len()), &[]);
                }
                count += 1;
                stack.push(open);
                Ok(())
            }
            StoredKind::End => {
                let Some(stack) = stacks.get_mut(&scope) else {
                    return lost(collected, head);
                };
                let Some(open) = stack.pop() else {
                    return lost(collected, head);
                };
                count -= 1;
                let depth = stack.len();
                if stack.is_empty() {
                    stacks.remove(&scope);
                }
                let duration = time.abs_diff(open.start);
                add(collected, &open, (duration, depth), record.args)
            }
            _ => {
                let mut head = head.with_kind(StoredKind::Instant);
                if let Some(outer) = stacks.get(&scope).and_then(|stack| stack.first()) {
                    head.lane = outer.head.lane;
                }
                let key = (time, 1 << 62);
                collected
                    .events
                    .add(key, &[bytemuck::bytes_of(&head), rest])
            }
        }
    })?;
    let mut open: Vec<UnendedSlice> = stacks.into_values().flatten().collect();
    open.sort_by_key(|open| (open.start, open.head.offset));
    for open in &open {
        let reason = "slice that begins and does not end: shown without an end";
        let offset = Some(open.head.offset);
        collected.report.remark(collected.file, reason, offset);
        add(collected, open, (NONE, 0), &[])?;
    }
    Ok(())
}

fn lost(collected: &mut Collected<'_>, head: RecordHead) -> io::Result<()> {
    let reason = "end of a slice that did not begin";
    let offset = Some(head.offset);
    collected
        .report
        .unrepresented(collected.file, reason, offset);
    Ok(())
}

fn add(
    collected: &mut Collected<'_>,
    open: &UnendedSlice,
    (duration, depth): (u64, usize),
    args: &[u8],
) -> io::Result<()> {
    let head = RecordHead {
        duration,
        ..open.head
    };
    let parts = [bytemuck::bytes_of(&head), &open.rest, args];
    let key = key(open.start, duration, depth);
    collected.events.add(key, &parts)
}

/// Where a slice stands among others: longer ones first, and of equal ones the outer one, so that it comes before those in it.
pub(super) fn key(start: i64, duration: u64, depth: usize) -> SortKey {
    const LONGEST: u64 = (1 << 53) - 1;
    let longer_first = match duration {
        NONE => 0,
        duration => LONGEST.saturating_sub(duration).max(1),
    };
    (start, longer_first << 8 | depth.min(255) as u64)
}
