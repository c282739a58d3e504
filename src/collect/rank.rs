//! The rank of a process in a job of several processes, read from the environment variables of launchers.

use std::fmt;

/// A rank in a job.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rank {
    rank: u32,
    /// The number of processes in the job, if known.
    of: Option<u32>,
}

/// Variables with rank and size, and whether both are required. Launchers may wrap each other, as in torchrun under
/// mpirun under srun; the innermost comes first.
const LAUNCHERS: [(&str, &str, bool); 6] = [
    ("RANK", "WORLD_SIZE", true), // torchrun; RANK alone may be anybody's
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", false), // Open MPI
    ("MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", false), // MVAPICH
    ("PMI_RANK", "PMI_SIZE", false), // MPICH, Intel MPI
    ("PMIX_RANK", "PMIX_SIZE", false), // PMIx
    ("SLURM_PROCID", "SLURM_NTASKS", false), // Slurm
];

/// The rank of this process, if it was launched as one of several.
pub(crate) fn of_this_process() -> Option<Rank> {
    of_variables(&|name| std::env::var(name).ok())
}

fn of_variables(lookup: &dyn Fn(&str) -> Option<String>) -> Option<Rank> {
    let number = |name: &str| lookup(name)?.trim().parse::<u32>().ok();
    let launched = |(rank, of, both): &(&str, &str, bool)| {
        let (rank, of) = (number(rank)?, number(of));
        (of.is_some() || !both).then_some((rank, of))
    };
    let (rank, of) = LAUNCHERS.iter().find_map(launched)?;
    // A job of one process needs no rank, and a size that does not exceed the rank belongs to another launcher.
    (of != Some(1)).then_some(Rank {
        rank,
        of: of.filter(|of| *of > rank),
    })
}

impl fmt::Display for Rank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rank {}", self.rank)?;
        self.of.map_or(Ok(()), |of| write!(f, " of {of}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rank_of(variables: &[(&str, &str)]) -> Option<String> {
        let lookup = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        of_variables(&lookup).map(|rank| rank.to_string())
    }

    #[test]
    fn every_launcher_is_understood() {
        for (rank, of, _) in LAUNCHERS {
            assert_eq!(
                rank_of(&[(rank, "3"), (of, "8")]).as_deref(),
                Some("rank 3 of 8"),
                "{rank}"
            );
        }
    }

    #[test]
    fn the_innermost_launcher_is_believed() {
        let variables = [
            ("SLURM_PROCID", "0"),
            ("SLURM_NTASKS", "2"),
            ("RANK", "5"),
            ("WORLD_SIZE", "16"),
        ];
        assert_eq!(rank_of(&variables).as_deref(), Some("rank 5 of 16"));
    }

    #[test]
    fn incomplete_variables_give_no_rank() {
        assert_eq!(rank_of(&[]), None);
        assert_eq!(rank_of(&[("RANK", "5")]), None);
        assert_eq!(rank_of(&[("PMI_RANK", "first")]), None);
        assert_eq!(
            rank_of(&[("SLURM_PROCID", "0"), ("SLURM_NTASKS", "1")]),
            None
        );
        assert_eq!(
            rank_of(&[("PMI_RANK", "7"), ("PMI_SIZE", "4")]).as_deref(),
            Some("rank 7")
        );
    }
}
