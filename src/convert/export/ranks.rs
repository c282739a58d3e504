//! Ranks of a parallel program.

use gputrail_trace::model::{EventArgument, Process};

use super::spans::text_argument;

/// The rank of processes for which the recording gives none.
pub const NO_RANK: i64 = -1;

/// The rank of a process: `rank 3`, or a name that ends in `(rank 3)` or `(rank 3 of 8)`.
pub(super) fn rank_of(process: &Process<'_>) -> i64 {
    let text = match process.rank {
        "" => process.name.rsplit_once('(').map_or("", |(_, rest)| rest),
        rank => rank,
    };
    let digits = text.strip_prefix("rank ").unwrap_or_default();
    let end = digits.find(|letter: char| !letter.is_ascii_digit());
    let digits = &digits[..end.unwrap_or(digits.len())];
    digits.parse().unwrap_or(NO_RANK)
}

/// The collective operation that a kernel executes, and the name of the group of ranks, as PyTorch
/// says them beside the kernel or as NCCL and RCCL name their kernels.
pub(crate) fn collective<'v>(
    name: &'v str,
    arguments: &[EventArgument<'v>],
) -> Option<(&'v str, &'v str)> {
    if let Some(collective) = text_argument(arguments, "Collective name") {
        let group = text_argument(arguments, "Process Group Name");
        return Some((collective, group.unwrap_or("")));
    }
    let kernels = ["ncclDevKernel_", "ncclKernel_"];
    let rest = kernels.iter().find_map(|known| name.strip_prefix(known))?;
    let rest = rest.strip_prefix("Generic_").unwrap_or(rest);
    let end = rest.find(|letter: char| !letter.is_ascii_alphanumeric());
    Some((&rest[..end.unwrap_or(rest.len())], ""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use gputrail_record::ProcessId;

    #[test]
    fn a_rank_is_read_from_its_text_or_from_the_name_of_the_process() {
        let rank = |name, rank| {
            rank_of(&Process {
                pid: ProcessId(1),
                name,
                rank,
                command: &[],
                order: None,
            })
        };
        assert_eq!(rank("python", "rank 12"), 12);
        assert_eq!(rank("python", "rank 3 of 8"), 3);
        assert_eq!(rank("python (rank 5)", ""), 5);
        assert_eq!(rank("python (rank 5 of 64)", ""), 5);
        for name in ["python", "rank 3", "python (rank x)", "python (rank )"] {
            assert_eq!(rank(name, ""), NO_RANK, "{name}");
        }
    }

    #[test]
    fn collectives_are_known_by_their_kernels() {
        let found = |name| collective(name, &[]).map(|(name, _)| name);
        assert_eq!(
            found("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)"),
            Some("AllReduce")
        );
        assert_eq!(found("ncclDevKernel_Generic(x)"), Some("Generic"));
        assert_eq!(found("gemm"), None);
    }
}
