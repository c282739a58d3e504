//! Texts of XLA about kernels and copies: `regs:32 grid:16,1,1 block:256,1,1`.

use gputrail_record::TransferKind;
use gputrail_trace::model::{Launch, Resources};

/// The values of a text for which work has a place.
#[derive(Debug, Default, PartialEq)]
pub(in crate::import) struct Details<'t> {
    pub launch: Option<Launch>,
    pub resources: Resources,
    pub bytes: u64,
    /// The kinds of memory of a copy.
    pub source: &'t str,
    pub destination: &'t str,
    /// Other values with their names.
    pub rest: Vec<(&'t str, &'t str)>,
}

/// Three numbers with commas between them.
fn three<T: std::str::FromStr>(text: &str) -> Option<[T; 3]> {
    let mut numbers = text.split(',').map(|number| number.parse().ok());
    let all = [numbers.next()??, numbers.next()??, numbers.next()??];
    numbers.next().is_none().then_some(all)
}

impl<'t> Details<'t> {
    /// Reads a text. Parts without a name are values called `details`.
    pub fn read(text: &'t str) -> Details<'t> {
        let mut details = Details::default();
        let (mut grid, mut block) = (None, None);
        for part in text.split_whitespace() {
            let (name, value) = part.split_once(':').unwrap_or(("details", part));
            let resources = &mut details.resources;
            let place = match name {
                "regs" => Some(&mut resources.registers),
                "static_shared" | "group_mem" => Some(&mut resources.static_local),
                "dynamic_shared" => Some(&mut resources.dynamic_local),
                "private_mem" => Some(&mut resources.private),
                _ => None,
            };
            if let (Some(place), Ok(number)) = (place, value.parse()) {
                *place = number;
                continue;
            }
            match name {
                "grid" if grid.is_none() => grid = three::<u64>(value),
                "block" if block.is_none() => block = three::<u32>(value),
                "size" | "num_bytes" if details.bytes == 0 => {
                    details.bytes = value.parse().unwrap_or(0);
                }
                "occ_pct" if value == "0" => continue,
                "kind_src" => details.source = value,
                "kind_dst" => details.destination = value,
                _ => {}
            }
            let is_taken = match name {
                "grid" => grid.is_some(),
                "block" => block.is_some(),
                "size" | "num_bytes" => value.parse::<u64>() == Ok(details.bytes),
                _ => false,
            };
            if !is_taken {
                details.rest.push((name, value));
            }
        }
        match (grid, block) {
            (Some(groups), Some(workgroup)) => {
                let items = |at: usize| groups[at].saturating_mul(u64::from(workgroup[at]));
                details.launch = Some(Launch {
                    grid: [items(0), items(1), items(2)],
                    workgroup,
                });
            }
            (None, None) => {}
            // One of them says nothing by itself.
            _ => details.rest.push(("details", text)),
        }
        details
    }

    /// The direction of a copy called `name` with these kinds of memory.
    pub fn direction(&self, name: &str) -> TransferKind {
        let is_host = |kind: &str| matches!(kind, "pageable" | "pinned");
        let is_device = |kind: &str| matches!(kind, "device" | "device_static");
        let named = [
            ("H2D", TransferKind::HOST_TO_DEVICE),
            ("D2H", TransferKind::DEVICE_TO_HOST),
            ("D2D", TransferKind::DEVICE_TO_DEVICE),
            ("H2H", TransferKind::HOST_TO_HOST),
            ("P2P", TransferKind::PEER_TO_PEER),
        ];
        let (from, to) = (self.source, self.destination);
        match named.iter().find(|(part, _)| name.contains(part)) {
            Some((_, kind)) => *kind,
            None if is_host(from) && is_device(to) => TransferKind::HOST_TO_DEVICE,
            None if is_device(from) && is_host(to) => TransferKind::DEVICE_TO_HOST,
            None if is_device(from) && is_device(to) => TransferKind::DEVICE_TO_DEVICE,
            None if is_host(from) && is_host(to) => TransferKind::HOST_TO_HOST,
            None => TransferKind::UNKNOWN,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_both_vendors_say_how_a_kernel_was_launched() {
        let amd =
            Details::read(" grid:219,40,1 block:256,1,1 private_mem:4 group_mem:49280 occ_pct:0");
        let launch = Launch {
            grid: [56064, 40, 1],
            workgroup: [256, 1, 1],
        };
        assert_eq!(amd.launch, Some(launch));
        assert_eq!(
            (amd.resources.static_local, amd.resources.private),
            (49280, 4)
        );
        assert!(amd.rest.is_empty());
        let nvidia = Details::read(
            "regs:32 static_shared:16 dynamic_shared:8 grid:16,1,1 block:512,1,1 occ_pct:62.5",
        );
        let resources = Resources {
            registers: 32,
            static_local: 16,
            dynamic_local: 8,
            ..Resources::default()
        };
        assert_eq!(nvidia.resources, resources);
        assert_eq!(nvidia.rest, [("occ_pct", "62.5")]);
    }

    #[test]
    fn a_copy_has_its_bytes_and_its_direction() {
        let copy = Details::read("kind_src:pinned kind_dst:device size:4096 dest:0 async:1");
        assert_eq!(copy.bytes, 4096);
        assert_eq!(copy.direction("copy"), TransferKind::HOST_TO_DEVICE);
        assert_eq!(copy.direction("MemcpyD2H"), TransferKind::DEVICE_TO_HOST);
        assert_eq!(
            copy.rest,
            [
                ("kind_src", "pinned"),
                ("kind_dst", "device"),
                ("dest", "0"),
                ("async", "1")
            ]
        );
    }

    #[test]
    fn what_is_not_understood_stays() {
        let odd = Details::read("grid:1,2 block:4,1,1 regs:many word");
        assert_eq!(odd.launch, None);
        assert_eq!(
            odd.rest,
            [
                ("grid", "1,2"),
                ("regs", "many"),
                ("details", "word"),
                ("details", "grid:1,2 block:4,1,1 regs:many word")
            ]
        );
    }
}
