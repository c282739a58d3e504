//! Names of device work.

use super::join::{EnqueueFields, WorkNature};
use crate::directory::Directory;
use crate::model::{Stage, StageId, WorkKind};
use gputrail_capture::Metadata;
use gputrail_capture::kernel_names::kernel_name;
use gputrail_record::KernelId;

/// A kernel's names.
#[derive(Debug, Default)]
struct NamedKernel {
    name: String,
    demangled: String,
}

/// The stages that the work of a process runs.
#[derive(Debug, Default)]
pub(super) struct ProcessStages {
    /// Kernels that have run and have a name in the names store.
    kernels: Vec<NamedKernel>,
    places: Directory<KernelId>,
    /// The latest kernel without a name in the names store.
    unknown: NamedKernel,
}

impl ProcessStages {
    /// Forgets the names of kernels, because further names have come.
    pub fn clear(&mut self) {
        self.kernels.clear();
        self.places.clear();
    }

    /// The stage of `work`, or of work without its enqueue record.
    #[inline(always)]
    pub fn of(&mut self, metadata: &Metadata, work: Option<&EnqueueFields>) -> Stage<'_> {
        let other = |kind, family: u64, member: u64, name| Stage {
            id: StageId(family << 32 | member),
            kind,
            name,
            demangled: "",
            architecture: "",
        };
        match work.map(|work| work.what) {
            Some(WorkNature::Kernel { kernel, .. }) => {
                let names = self.kernel(metadata, kernel);
                Stage {
                    demangled: &names.demangled,
                    ..other(WorkKind::Kernel, 1, kernel.0.into(), &names.name)
                }
            }
            Some(WorkNature::Copy { transfer, .. }) => {
                let name = transfer.name().unwrap_or("copy");
                other(WorkKind::Copy, 2, transfer.0.into(), name)
            }
            Some(WorkNature::Set { .. }) => other(WorkKind::Set, 3, 0, WorkKind::FILL),
            Some(WorkNature::Synchronization { what, .. }) => {
                let name = what.name().unwrap_or("synchronization");
                other(WorkKind::Synchronization, 4, what.0.into(), name)
            }
            None => other(WorkKind::Unknown, 5, 0, WorkKind::NO_ENQUEUE),
        }
    }

    #[inline]
    fn kernel(&mut self, metadata: &Metadata, id: KernelId) -> &NamedKernel {
        match self.places.get(id.0, id) {
            Some(place) => &self.kernels[place],
            None => self.look_up(metadata, id),
        }
    }

    #[cold]
    fn look_up(&mut self, metadata: &Metadata, id: KernelId) -> &NamedKernel {
        let symbol = metadata.kernels.get(&id);
        let name = symbol.map_or("", |symbol| metadata.string(symbol.name));
        let demangled = symbol.map_or("", |symbol| metadata.string(symbol.demangled));
        let kernel = NamedKernel {
            name: match kernel_name(name, demangled) {
                "" => format!("kernel {id}"),
                name => name.to_owned(),
            },
            demangled: demangled.to_owned(),
        };
        // The list grows with names only.
        if symbol.is_none() {
            self.unknown = kernel;
            return &self.unknown;
        }
        let place = self.kernels.len();
        self.places.insert(id, place);
        self.kernels.push(kernel);
        &self.kernels[place]
    }
}
