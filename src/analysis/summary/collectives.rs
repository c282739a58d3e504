//! Communication of kernels by collective operation and group of ranks: time, bytes and bandwidth.

use std::collections::BTreeMap;

use gputrail_record::Nanos;
use gputrail_trace::model::{Value, Work};
use gputrail_trace::ranks::{collective, text_argument};

use super::distribution::Distribution;

/// Maximum number of operations and groups that are distinguished; the rest is summed up.
const MAX_ROWS: usize = 1 << 10;

/// A collective operation of a group.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct CollectiveKey {
    /// The operation, as the input calls it; the name of the kernel where neither says it.
    pub operation: String,
    /// The group of ranks; may be empty.
    pub group: String,
    /// The number of ranks; 0 if unknown.
    pub ranks: u64,
}

/// The kernels of a collective operation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CollectiveSummary {
    /// Their times, ns.
    pub times: Distribution,
    /// The bytes that each rank put in, where the input says them.
    pub sizes: Distribution,
    /// The time of kernels whose bytes are known.
    pub sized_time: Nanos,
}

/// All communication.
#[derive(Debug, Default)]
pub(super) struct Collectives(BTreeMap<CollectiveKey, CollectiveSummary>);

impl Collectives {
    /// Adds a kernel that ran for `took` ns.
    pub fn add(&mut self, work: &Work<'_>, took: u64) {
        let name = work.stage.name;
        let (operation, group) = collective(name, work.arguments).unwrap_or((name, ""));
        let mut key = CollectiveKey {
            operation: operation.to_owned(),
            group: group.to_owned(),
            ranks: number(work, "Group size").unwrap_or(0),
        };
        if self.0.len() >= MAX_ROWS && !self.0.contains_key(&key) {
            key = CollectiveKey {
                operation: super::REST.to_owned(),
                ..CollectiveKey::default()
            };
        }
        let sum = self.0.entry(key).or_default();
        sum.times.add(took);
        if let Some(bytes) = bytes(work) {
            sum.sizes.add(bytes);
            sum.sized_time = Nanos(sum.sized_time.0.saturating_add(took));
        }
    }

    /// In descending order of time.
    pub fn list(&self) -> Vec<(CollectiveKey, CollectiveSummary)> {
        let each = self.0.iter();
        let mut list: Vec<_> = each.map(|(key, sum)| (key.clone(), sum.clone())).collect();
        list.sort_by_key(|(_, sum)| std::cmp::Reverse(sum.times.total));
        list
    }
}

fn number(work: &Work<'_>, name: &str) -> Option<u64> {
    let found = work.arguments.iter().find(|one| one.name == name)?;
    match found.value {
        Value::Uint(number) => Some(number),
        Value::Int(number) => u64::try_from(number).ok(),
        _ => None,
    }
}

/// The bytes that a rank put in: elements and their type, as PyTorch's profiler says them.
fn bytes(work: &Work<'_>) -> Option<u64> {
    let elements = number(work, "In msg nelems")?;
    let size = match text_argument(work.arguments, "dtype")? {
        "Double" | "Long" | "ComplexFloat" => 8,
        "Float" | "Int" | "ComplexHalf" => 4,
        "Half" | "BFloat16" | "Short" => 2,
        "Byte" | "Char" | "Bool" | "Float8_e4m3fn" | "Float8_e5m2" => 1,
        _ => return None,
    };
    elements.checked_mul(size)
}

#[cfg(test)]
mod tests {
    use super::*;
    use gputrail_trace::model::{EventArgument, Stage};

    #[test]
    fn kernels_of_an_operation_and_a_group_are_summed_up() {
        let argument = |name, value| EventArgument { name, value };
        let arguments = [
            argument("Collective name", Value::Text("allreduce")),
            argument("Process Group Name", Value::Text("dp")),
            argument("Group size", Value::Int(2)),
            argument("In msg nelems", Value::Uint(1000)),
            argument("dtype", Value::Text("BFloat16")),
        ];
        let mut all = Collectives::default();
        let mut work = Work {
            stage: Stage {
                name: "ncclDevKernel_AllGather_RING_LL(ncclDevComm*)",
                ..Stage::default()
            },
            arguments: &arguments,
            ..Work::default()
        };
        all.add(&work, 10);
        all.add(&work, 30);
        work.arguments = &[];
        all.add(&work, 7);
        let list = all.list();
        let told: Vec<_> = list
            .iter()
            .map(|(key, sum)| {
                (
                    &*key.operation,
                    &*key.group,
                    key.ranks,
                    sum.times.total,
                    sum.sizes.total,
                )
            })
            .collect();
        assert_eq!(
            told,
            [("allreduce", "dp", 2, 40, 4000), ("AllGather", "", 0, 7, 0)]
        );
        assert_eq!(list[0].1.sized_time, Nanos(40));
    }
}
