//! Arrows, and the ids by which their points and the parts of slices find each other.

use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;

use super::{Collected, LaneKey};
use crate::import::chrome::categories::is_call_to_work;
use crate::import::chrome::event::{ChromeEvent, text};
use crate::import::chrome::ids::{Id, ProcessText};
use crate::import::chrome::record::{NONE, RecordHead, StoredKind, flag};
use crate::import::chrome::{ascend, intercept, proton, unitrace};

/// A flow that an event names.
pub(super) struct BoundFlow<'e> {
    id: &'e str,
    /// Whether it comes into the event, and whether it goes out of it.
    comes: bool,
    goes: bool,
}

/// The flow that an event names, if it does.
pub(super) fn bound<'e>(event: &ChromeEvent<'e>) -> Option<BoundFlow<'e>> {
    let is_yes = |value: Option<&str>| matches!(value, Some("true" | "1" | "\"true\""));
    let (comes, goes) = (is_yes(event.flow_in), is_yes(event.flow_out));
    let id = event.bind_id.filter(|_| comes || goes)?;
    Some(BoundFlow { id, comes, goes })
}

/// Where a point of a flow stands among the records of its time: behind the slices that begin then, the innermost of which is
/// meant, and begins of flows before their ends.
fn order(head: &RecordHead) -> u64 {
    3 << 62 | u64::from(!head.has(flag::FIRST))
}

impl Collected<'_> {
    /// A point of a flow: its first one, its last one, or (`which` is 0) another one.
    pub(super) fn flow(
        &mut self,
        offset: u64,
        event: &ChromeEvent<'_>,
        which: u16,
    ) -> io::Result<()> {
        let last = which == flag::LAST;
        let category = event.cat.map_or(Cow::Borrowed(""), text);
        let Some(time) = self.time(event.ts, offset) else {
            return Ok(());
        };
        let name = event.name.map_or(Cow::Borrowed(""), text);
        let (pid, tid) = (self.id(event.pid), self.id(event.tid));
        let pid = match &*category {
            ascend::ARROW if !last => ascend::home(self, pid),
            _ => pid,
        };
        let lane = LaneKey::Thread {
            pid,
            tid,
            category: 0,
        };
        let mut head = RecordHead::new(StoredKind::Flow, self.lane(lane, offset), offset);
        let correlation = event.id.and_then(|id| text(id).parse().ok());
        let is_of_intercept =
            (&*category, &*name) == intercept::ARROW && self.writers.intercept.is_of(pid);
        head.id = match correlation {
            Some(correlation) if is_call_to_work(&category) || is_of_intercept => {
                head.flags |= flag::BY_CORRELATION;
                if !last {
                    self.correlations.begin_arrow(correlation);
                }
                correlation
            }
            _ => {
                self.has_arrows = true;
                self.async_id(pid, &category, &name, event)
            }
        };
        // Older versions of Kineto have other categories for arrows from calls to work.
        head.duration = correlation.unwrap_or(NONE);
        match &*category {
            ascend::ARROW => {
                head.flags |= flag::TIE;
                head.duration = correlation.map_or(NONE, |id| id >> 32);
            }
            ascend::OPERATOR_ARROW => head.flags |= flag::TIE_OF_OPERATOR,
            category if unitrace::is_to_device(category) => head.flags |= flag::TIE,
            category if unitrace::is_to_host(category) => head.flags |= flag::WAIT,
            category if (category, &*name) == proton::ARROW => head.flags |= flag::TIE_OF_OPERATOR,
            _ => {}
        }
        head.flags |= which;
        if !last || event.bp == Some("\"e\"") {
            head.flags |= flag::ENCLOSING;
        }
        self.add(false, (time, order(&head)), head, &name, &[])
    }

    /// The flow through an event that names it, which a record at the begin of the event stands for.
    pub(super) fn bound_flow(
        &mut self,
        time: i64,
        of: RecordHead,
        event: &ChromeEvent<'_>,
    ) -> io::Result<()> {
        let Some(BoundFlow { id, comes, goes }) = bound(event) else {
            return Ok(());
        };
        let pid = match self.lanes[of.lane as usize] {
            LaneKey::Thread { pid, .. } | LaneKey::Async { pid, .. } => pid,
            LaneKey::Rest => Id::NONE,
        };
        let mut hasher = DefaultHasher::new();
        ("bind_id", event.scope, text(id), self.rank(pid)).hash(&mut hasher);
        let mut head = RecordHead::new(StoredKind::Flow, of.lane, of.offset);
        head.id = hasher.finish();
        head.flags = flag::ENCLOSING;
        if of.kind() != StoredKind::End {
            head.flags |= flag::BOUND;
        }
        if !goes {
            head.flags |= flag::LAST;
        }
        if !comes {
            head.flags |= flag::FIRST;
        }
        self.has_arrows = true;
        self.has_bound_arrows = true;
        self.add(false, (time, order(&head)), head, "", &[])
    }

    /// The rank in the text of a process id.
    fn rank(&self, pid: Id) -> &str {
        match pid {
            Id::Number(_) => "",
            Id::Text(text) => ProcessText::of(self.strings.text(text)).rank,
        }
    }

    /// The id of a flow, or of slices with ids: ids count for one category of one rank, and flows for one name too.
    pub(super) fn async_id(
        &self,
        pid: Id,
        category: &str,
        name: &str,
        event: &ChromeEvent<'_>,
    ) -> u64 {
        let mut hasher = DefaultHasher::new();
        (category, event.scope, self.rank(pid)).hash(&mut hasher);
        match (event.id2, event.id) {
            (Some(id2), _) => {
                id2.hash(&mut hasher);
                if id2.contains("local") {
                    pid.hash(&mut hasher);
                }
            }
            (None, Some(id)) => text(id).hash(&mut hasher),
            (None, None) => name.hash(&mut hasher),
        }
        hasher.finish()
    }
}
