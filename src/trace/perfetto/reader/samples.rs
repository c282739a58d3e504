//! Checks that packets of samples refer only to texts, agents, kernels, code objects and addresses that were described
//! before.

use super::id_set::IdSet;
use super::{Findings, PacketPosition};
use crate::perfetto::schema::PcSamples;
use gputrail_record::number_map::NumberMap;

/// Maximum number of sequences with samples.
const MAX_SEQUENCES: usize = 1 << 12;

/// The ids that the samples of one sequence have described so far.
#[derive(Debug, Default)]
struct DescribedIds {
    texts: IdSet,
    agents: IdSet,
    kernels: IdSet,
    objects: IdSet,
    addresses: IdSet,
}

/// The ids that samples have described so far, by sequence.
#[derive(Debug, Default)]
pub(super) struct SampleReferences {
    sequences: NumberMap<u32, DescribedIds>,
}

impl SampleReferences {
    /// Checks one packet.
    pub fn check(
        &mut self,
        position: PacketPosition,
        sequence: u32,
        samples: &PcSamples,
        findings: &mut Findings,
    ) {
        if self.sequences.len() >= MAX_SEQUENCES && !self.sequences.contains_key(&sequence) {
            return;
        }
        let described = self.sequences.entry(sequence).or_default();
        described.take(samples);
        let mut refer = |what: &str, known: &IdSet, id: u32| {
            if id != 0 && !known.has(id.into()) && known.is_complete() {
                findings.add(position, || {
                    format!("samples refer to {what} {id}, which is not described before")
                });
            }
        };
        for address in &samples.addresses {
            refer("code object", &described.objects, address.code_object());
            let frames = address.frames.iter();
            let of_frames = frames.flat_map(|frame| [frame.function(), frame.file()]);
            let own = [address.symbol(), address.instruction(), address.missing()];
            for text in own.into_iter().chain(of_frames) {
                refer("text", &described.texts, text);
            }
        }
        for line in &samples.lines {
            refer("text", &described.texts, line.file());
        }
        for count in &samples.counts {
            refer("agent", &described.agents, count.agent());
            refer("kernel", &described.kernels, count.kernel());
            refer("address", &described.addresses, count.address());
        }
        for count in &samples.executions {
            refer("agent", &described.agents, count.agent());
            refer("kernel", &described.kernels, count.kernel());
            refer("address", &described.addresses, count.address());
        }
        for totals in &samples.totals {
            refer("agent", &described.agents, totals.agent());
            refer("kernel", &described.kernels, totals.kernel());
        }
        if let Some(raw) = &samples.raw {
            for address in &raw.addresses {
                refer("address", &described.addresses, *address);
            }
            let rows = raw.times.len();
            let columns = [
                raw.addresses.len(),
                raw.agents.len(),
                raw.kernels.len(),
                raw.outcomes.len(),
                raw.dispatches.len(),
                raw.correlations.len(),
                raw.externals.len(),
                raw.exec_masks.len(),
                raw.hardware.len(),
                raw.waves_in_group.len(),
                raw.wave_counts.len(),
                raw.absent.len(),
                raw.workgroups.len() / 3,
            ];
            if columns.iter().any(|length| *length != rows) {
                findings.add(position, || "columns of samples differ in length".into());
            }
        }
        if samples
            .counts
            .iter()
            .any(|count| count.outcomes.len() % 3 != 0)
        {
            findings.add(position, || {
                "the number of values in counts of samples is not a multiple of three".into()
            });
        }
    }
}

impl DescribedIds {
    fn take(&mut self, samples: &PcSamples) {
        for text in &samples.texts {
            self.texts.insert(text.id().into());
        }
        for agent in &samples.agents {
            self.agents.insert(agent.id().into());
        }
        for kernel in &samples.kernels {
            self.kernels.insert(kernel.id().into());
        }
        for object in &samples.code_objects {
            self.objects.insert(object.id().into());
        }
        for address in &samples.addresses {
            self.addresses.insert(address.id().into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perfetto::schema::pc_samples::{Address, Count, Kernel, Raw, Text};

    fn findings(packets: &[(u32, PcSamples)]) -> Vec<String> {
        let (mut references, mut findings) = (SampleReferences::default(), Findings::default());
        for (sequence, samples) in packets {
            references.check(PacketPosition::default(), *sequence, samples, &mut findings);
        }
        let list = findings.list().iter();
        list.map(|finding| finding.what.clone()).collect()
    }

    fn described() -> PcSamples {
        PcSamples {
            texts: vec![Text {
                id: Some(1),
                text: Some("s_nop".into()),
            }],
            kernels: vec![Kernel {
                id: Some(7),
                name: Some("saxpy".into()),
            }],
            addresses: vec![Address {
                id: Some(1),
                instruction: Some(1),
                ..Address::default()
            }],
            ..PcSamples::default()
        }
    }

    fn counted(kernel: u32, outcomes: Vec<u64>) -> PcSamples {
        PcSamples {
            counts: vec![Count {
                kernel: Some(kernel),
                address: Some(1),
                outcomes,
                ..Count::default()
            }],
            ..PcSamples::default()
        }
    }

    #[test]
    fn references_to_described_items_are_no_finding() {
        let packets = [(5, described()), (5, counted(7, vec![1, 2, 3]))];
        assert_eq!(findings(&packets), Vec::<String>::new());
    }

    #[test]
    fn references_to_items_of_another_sequence_are_findings() {
        let other = findings(&[(5, described()), (6, counted(7, vec![]))]);
        assert_eq!(other.len(), 2, "{other:?}");
        let unknown = findings(&[(5, described()), (5, counted(8, vec![]))]);
        assert_eq!(
            unknown,
            ["samples refer to kernel 8, which is not described before"]
        );
    }

    #[test]
    fn counts_and_columns_that_are_torn_are_findings() {
        let torn = findings(&[(5, described()), (5, counted(7, vec![1, 2]))]);
        assert_eq!(
            torn,
            ["the number of values in counts of samples is not a multiple of three"]
        );
        let raw = PcSamples {
            raw: Some(Raw {
                times: vec![1, 1],
                addresses: vec![0],
                ..Raw::default()
            }),
            ..PcSamples::default()
        };
        assert_eq!(
            findings(&[(5, raw)]),
            ["columns of samples differ in length"]
        );
    }
}
