//! Explains why nothing was recorded. The libraries that the program and its children load are examined now and then: an
//! OpenCL library, a CUDA driver or a runtime of ROCm without our library. How far a process came with our library it says itself
//! ([`AttachProgress`]): a look may come while a library is being loaded.

use crate::carried::FILE_NAME;
use gputrail_collect::loading::{cuda, opencl, rocm};
use gputrail_collect::session::{self, AttachProgress};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fmt::Write;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const FIRST_LOOK: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Part of the names of loaders, including the longer names in Python wheels.
const LOADER: &str = "libOpenCL";
/// Drivers with which programs can be linked directly.
const DRIVERS: [&str; 7] = [
    "libpocl",
    "libnvidia-opencl",
    "libamdocl",
    "libigdrcl",
    "libMesaOpenCL",
    "libRusticlOpenCL",
    "libintelocl",
];

/// The driver of CUDA.
const CUDA_DRIVER: &str = "libcuda.so";
/// The runtimes of ROCm.
const ROCM_RUNTIMES: [&str; 2] = ["libamdhip64", "libhsa-runtime64"];

/// The processes found so far.
pub struct Watch {
    root: u32,
    library: PathBuf,
    /// The path of our layer as the memory maps show it, which may differ from `library`.
    loaded_as: PathBuf,
    seen: BTreeMap<u32, Sighting>,
    /// Processes that may not be examined, and their names.
    hidden: BTreeMap<u32, String>,
    /// Forked children of recorded processes: they attach with their first call, so one without calls needs no
    /// explanation.
    forked: BTreeSet<u32>,
    next: Instant,
    pause: Duration,
}

/// A process that has OpenCL, CUDA or ROCm loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Sighting {
    program: String,
    loader: Option<PathBuf>,
    driver: Option<PathBuf>,
    /// The driver of CUDA, in a process without OpenCL.
    cuda: Option<PathBuf>,
    /// A runtime of ROCm, in a process without the others.
    rocm: Option<PathBuf>,
    /// Whether our library was being loaded, or loaded.
    layer_mapped: bool,
    other_layer: Option<PathBuf>,
    /// Whether the environment names our library for the runtime.
    layer_named: bool,
    /// Our library, if the process does not see a file there: it has another root or another /dev/shm.
    out_of_sight: Option<PathBuf>,
    other_user: bool,
}

impl Watch {
    /// A watch over process `root` and its descendants, for our layer at `library`.
    pub fn new(root: u32, library: &Path) -> Watch {
        Watch {
            root,
            library: library.to_owned(),
            loaded_as: library
                .canonicalize()
                .unwrap_or_else(|_| library.to_owned()),
            seen: BTreeMap::new(),
            hidden: BTreeMap::new(),
            forked: BTreeSet::new(),
            next: Instant::now() + FIRST_LOOK,
            pause: FIRST_LOOK,
        }
    }

    /// The time to wait before the next look.
    pub fn pause(&self) -> Duration {
        self.next.saturating_duration_since(Instant::now())
    }

    /// Examines all processes that have not `attached`, if it is time. Looks become rarer, so that they cost nothing in
    /// a long run.
    pub fn look(&mut self, attached: &[u32]) {
        if !self.pause().is_zero() {
            return;
        }
        // Each process with its parent.
        let mut processes = vec![(self.root, 0)];
        let mut index = 0;
        while index < processes.len() && processes.len() < 1000 {
            let (pid, parent) = processes[index];
            processes.extend(children(pid).into_iter().map(|child| (child, pid)));
            if !attached.contains(&pid) {
                match self.look_at(pid) {
                    Look::Saw(sighting) => {
                        let recorded = attached.contains(&parent) || self.forked.contains(&parent);
                        if sighting.layer_mapped && recorded && is_fork(pid, parent) {
                            self.forked.insert(pid);
                            self.seen.remove(&pid);
                        } else {
                            self.forked.remove(&pid);
                            self.seen.insert(pid, sighting);
                        }
                    }
                    Look::Forbidden => drop(self.hidden.insert(pid, name_of(pid))),
                    Look::Nothing => {}
                }
            }
            index += 1;
        }
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        self.next = Instant::now() + self.pause;
    }

    fn look_at(&self, pid: u32) -> Look {
        match std::fs::read_to_string(format!("/proc/{pid}/maps")) {
            Ok(maps) => {
                let seen = see(pid, &maps, &self.library, &self.loaded_as);
                seen.map_or(Look::Nothing, Look::Saw)
            }
            Err(error) if error.kind() == ErrorKind::PermissionDenied => Look::Forbidden,
            Err(_) => Look::Nothing,
        }
    }

    /// A sentence for each process that had OpenCL, CUDA or ROCm loaded, or may have had, and has not `attached`.
    pub fn findings(&self, attached: &[u32]) -> Vec<String> {
        let missed = |pid: &u32| !attached.contains(pid);
        let seen = self.seen.iter().filter(|(pid, _)| missed(pid));
        let hidden = self.hidden.iter().filter(|(pid, _)| missed(pid));
        let progress = self.library.parent().map(session::progress);
        let progress = progress.unwrap_or_default();
        let seen = seen.map(|(pid, sighting)| sighting.explain(*pid, progress.get(pid).copied()));
        // A process that no look has met.
        let unseen = progress.iter().filter(|(pid, _)| {
            let is_known = self.seen.contains_key(pid) || self.forked.contains(pid);
            missed(pid) && !is_known
        });
        let unseen = unseen.map(|(pid, step)| {
            let why = explain_progress(*step);
            format!("process {pid} was not traced: {why}")
        });
        let hidden = hidden.map(|(pid, name)| {
            format!(
                "{name} (process {pid}) has more rights than we (setuid?) and could not be looked \
                 into; if it uses OpenCL, CUDA or ROCm, start gputrail with those rights"
            )
        });
        seen.chain(hidden).chain(unseen).collect()
    }
}

impl Sighting {
    fn explain(&self, pid: u32, progress: Option<AttachProgress>) -> String {
        let mut text = format!("{} (process {pid}) ", self.program);
        let library = self
            .loader
            .as_ref()
            .or(self.driver.as_ref())
            .or(self.cuda.as_ref())
            .or(self.rocm.as_ref())
            .expect("one of them was seen");
        let _ = write!(
            text,
            "had {} loaded, but was not traced: ",
            library.display()
        );
        if let Some(step) = progress {
            text += explain_progress(step);
        } else if let Some(layer) = &self.other_layer {
            let _ = write!(text, "another gputrail traces it, with {}", layer.display());
        } else if !self.layer_named {
            let _ = write!(
                text,
                "it was started with an environment in which {} does not name our library; \
                 `gputrail library --help` shows how to pass it on",
                variable_of(self.cuda.is_some(), self.rocm.is_some())
            );
        } else if let Some(library) = &self.out_of_sight {
            let _ = write!(
                text,
                "it does not see our library, {}, as in a container with a /dev/shm of its own: share that folder with it, or \
                 have the library record without us, `gputrail library --help`",
                library.display()
            );
        } else if self.other_user {
            text += "it runs as another user (setuid, su?), who can neither read our library nor reach this \
                     gputrail; start gputrail as that user, or have the library record without us, \
                     `gputrail library --help`";
        } else if self.cuda.is_some() {
            text += "it did not initialise CUDA (cuInit) while gputrail recorded, had emptied or changed its environment before, or could not load \
                     our library (LD_DEBUG=files shows what the dynamic linker did)";
        } else if self.rocm.is_some() {
            text += "it called no function of HIP or HSA while gputrail recorded, had emptied or changed its environment before, or has no \
                     rocprofiler-sdk, which loads our library (ROCPROFILER_LOG_LEVEL=info shows what it does)";
        } else if let Some(loader) = &self.loader {
            if opencl::inserts_layers(loader) {
                text += "it called no OpenCL function while gputrail recorded, had emptied or changed its environment before, or could not load \
                         our library (LD_DEBUG=files shows what the dynamic linker did)";
            } else {
                text += "that loader does not support layers; ocl-icd does since version 2.3.0";
            }
        } else {
            text += "it uses this driver directly, or by an OpenCL loader that is part of the program and does not support \
                     layers";
        }
        text
    }
}

/// The variable that names our library for the runtime of a process.
fn variable_of(has_cuda: bool, has_rocm: bool) -> &'static str {
    match (has_cuda, has_rocm) {
        (true, _) => cuda::INJECTION_VARIABLE,
        (_, true) => rocm::TOOLS_VARIABLE,
        _ => opencl::LAYERS_VARIABLE,
    }
}

/// Why a process was not recorded that came as far as this step, and did not attach.
fn explain_progress(step: AttachProgress) -> &'static str {
    match step {
        AttachProgress::Offered => {
            "its OpenCL loader has loaded our library and has not made it a layer; OCL_ICD_ENABLE_TRACE=1 has Khronos's \
             loader say why"
        }
        AttachProgress::Failed => {
            "our library was loaded, but could not reach this gputrail; what it said stands in the program's own error \
             output"
        }
    }
}

/// The result of examining a process.
enum Look {
    Nothing,
    Saw(Sighting),
    Forbidden,
}

/// Whether `child` was forked from `parent` and has not executed another program since: its stack begins at the same
/// address, which is random otherwise.
fn is_fork(child: u32, parent: u32) -> bool {
    /// The index of the field in /proc/PID/stat, counted from the field after the name.
    const STACK_START: usize = 25;
    let stack_start = |pid| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let (_, fields) = stat.rsplit_once(") ")?;
        let address: u64 = fields.split(' ').nth(STACK_START)?.parse().ok()?;
        // It reads as 0 or 1 if it is hidden.
        (address > 1).then_some(address)
    };
    let child = stack_start(child);
    child.is_some() && child == stack_start(parent)
}

fn name_of(pid: u32) -> String {
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    name.trim_end().to_owned()
}

fn see(pid: u32, maps: &str, library: &Path, loaded_as: &Path) -> Option<Sighting> {
    let loaded = loaded_libraries(maps);
    let find = |prefix: &str| {
        let named = |path: &&Path| {
            path.file_name()
                .is_some_and(|name| name.as_bytes().starts_with(prefix.as_bytes()))
        };
        loaded
            .iter()
            .find(|path| named(path))
            .map(|path| path.to_path_buf())
    };
    let loader = find(LOADER);
    let driver = DRIVERS.into_iter().find_map(find);
    let has_opencl = loader.is_some() || driver.is_some();
    let cuda = find(CUDA_DRIVER).filter(|_| !has_opencl);
    let rocm = ROCM_RUNTIMES.into_iter().find_map(find);
    let rocm = rocm.filter(|_| !has_opencl && cuda.is_none());
    if !has_opencl && cuda.is_none() && rocm.is_none() {
        return None;
    }
    let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    let effective_user =
        std::os::unix::fs::MetadataExt::uid(&std::fs::metadata(format!("/proc/{pid}")).ok()?);
    let variable = variable_of(cuda.is_some(), rocm.is_some());
    let libraries = || libraries_of(&environment, variable);
    let layer_named = libraries().any(|layer| layer == library);
    let its_root = Path::new("/proc").join(pid.to_string()).join("root");
    let in_sight = its_root.join(library.strip_prefix("/").unwrap_or(library));
    // A file that may not be looked at is no sign.
    let is_missing = in_sight
        .symlink_metadata()
        .is_err_and(|error| error.kind() == ErrorKind::NotFound);
    Some(Sighting {
        program: name_of(pid),
        loader,
        driver,
        cuda,
        rocm,
        // Another gputrail may have loaded the same file.
        layer_mapped: layer_named && loaded.contains(&loaded_as),
        other_layer: libraries()
            .find(|layer| *layer != library && layer.ends_with(FILE_NAME))
            .map(Path::to_owned),
        layer_named,
        out_of_sight: is_missing.then(|| library.to_owned()),
        other_user: effective_user != rustix::process::geteuid().as_raw(),
    })
}

/// The files in the lines of /proc/PID/maps, each once.
fn loaded_libraries(maps: &str) -> Vec<&Path> {
    let mut paths: Vec<&Path> = maps
        .lines()
        .filter_map(|line| line.find('/').map(|start| Path::new(&line[start..])))
        .collect();
    paths.dedup();
    paths
}

/// The libraries that a variable of an environment names.
fn libraries_of<'a>(environment: &'a [u8], variable: &str) -> impl Iterator<Item = &'a Path> {
    let prefix = format!("{variable}=");
    environment
        .split(|&byte| byte == 0)
        .filter_map(move |variable| variable.strip_prefix(prefix.as_bytes()))
        .flat_map(|value| value.split(|&byte| byte == b':'))
        .map(|layer| Path::new(OsStr::from_bytes(layer)))
}

fn children(pid: u32) -> Vec<u32> {
    let Ok(tasks) = std::fs::read_dir(format!("/proc/{pid}/task")) else {
        return Vec::new();
    };
    let lists = tasks
        .flatten()
        .filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    lists
        .flat_map(|list| {
            list.split_whitespace()
                .flat_map(str::parse)
                .collect::<Vec<u32>>()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPS: &str = "\
7f00-7f10 r-xp 00000000 08:01 1   /usr/lib/x86_64-linux-gnu/libOpenCL.so.1.0.0
7f10-7f20 r--p 00000000 08:01 1   /usr/lib/x86_64-linux-gnu/libOpenCL.so.1.0.0
7f20-7f30 rw-p 00000000 00:00 0
7f30-7f40 r-xp 00000000 08:01 2   /opt/with space/libpocl.so.2
7f40-7f50 rw-p 00000000 00:00 0   [stack]";

    fn sighting() -> Sighting {
        Sighting {
            program: "prog".into(),
            loader: Some("/lib/libOpenCL.so.1".into()),
            driver: None,
            cuda: None,
            rocm: None,
            layer_mapped: false,
            other_layer: None,
            layer_named: true,
            out_of_sight: None,
            other_user: false,
        }
    }

    #[test]
    fn libraries_are_found_in_maps() {
        let expected = [
            "/usr/lib/x86_64-linux-gnu/libOpenCL.so.1.0.0",
            "/opt/with space/libpocl.so.2",
        ];
        assert_eq!(loaded_libraries(MAPS), expected.map(Path::new));
    }

    #[test]
    fn layers_are_found_in_an_environment() {
        let environment = b"A=1\0OPENCL_LAYERS=/x.so:/run/a/lib.so\0XOPENCL_LAYERS=/y.so";
        let layers: Vec<_> = libraries_of(environment, opencl::LAYERS_VARIABLE).collect();
        assert_eq!(layers, ["/x.so", "/run/a/lib.so"].map(Path::new));
    }

    #[test]
    fn each_reason_has_its_sentence() {
        let explain = |change: fn(&mut Sighting)| {
            let mut sighting = sighting();
            change(&mut sighting);
            sighting.explain(7, None)
        };
        assert!(explain(|_| {}).contains("called no OpenCL function"));
        assert!(explain(|s| s.layer_named = false).contains("environment"));
        assert!(explain(|s| s.other_user = true).contains("another user"));
        let hidden = explain(|s| s.out_of_sight = Some("/dev/shm/x/lib.so".into()));
        assert!(hidden.contains("does not see our library, /dev/shm/x/lib.so"));
        // Being loaded, or refused by the dynamic linker.
        assert!(explain(|s| s.layer_mapped = true).contains("could not load our library"));
        let after = |step| sighting().explain(7, Some(step));
        assert!(after(AttachProgress::Offered).contains("has not made it a layer"));
        assert!(after(AttachProgress::Failed).contains("could not reach this gputrail"));
        assert!(explain(|s| s.other_layer = Some("/x".into())).contains("another gputrail"));
        assert!(
            explain(|s| s.loader = Some("/proc/self/comm".into()))
                .contains("does not support layers")
        );
        assert!(
            explain(|s| (s.loader, s.driver) = (None, Some("/lib/libpocl.so".into())))
                .contains("directly")
        );
    }

    #[test]
    fn a_process_with_cuda_alone_is_explained_by_its_own_variable() {
        let cuda = |layer_named| Sighting {
            loader: None,
            cuda: Some("/lib/libcuda.so.1".into()),
            layer_named,
            ..sighting()
        };
        let unnamed = cuda(false).explain(7, None);
        assert!(unnamed.contains("libcuda.so.1") && unnamed.contains("CUDA_INJECTION64_PATH"));
        assert!(cuda(true).explain(7, None).contains("cuInit"));
        let maps = "7f00-7f10 r-xp 0 08:01 1   /usr/lib/libcuda.so.1";
        let own = std::process::id();
        let library = Path::new("/x/libgputrail.so.0");
        let seen = see(own, maps, library, library).unwrap();
        assert_eq!(seen.out_of_sight.as_deref(), Some(library));
        assert_eq!(
            (seen.cuda.as_deref(), seen.layer_named),
            (Some(Path::new("/usr/lib/libcuda.so.1")), false)
        );
        let both = format!("{maps}\n{MAPS}");
        let seen = see(own, &both, library, library).unwrap();
        assert!(seen.cuda.is_none() && seen.loader.is_some());
    }

    #[test]
    fn a_process_with_rocm_alone_is_explained_by_its_own_variable() {
        let rocm = |layer_named| Sighting {
            loader: None,
            rocm: Some("/opt/rocm/lib/libamdhip64.so.7".into()),
            layer_named,
            ..sighting()
        };
        let unnamed = rocm(false).explain(7, None);
        assert!(unnamed.contains("libamdhip64.so.7") && unnamed.contains("ROCP_TOOL_LIBRARIES"));
        assert!(rocm(true).explain(7, None).contains("no function of HIP"));
        let maps = "7f00-7f10 r-xp 0 08:01 1   /opt/rocm/lib/libhsa-runtime64.so.1";
        let library = Path::new("/x/libgputrail.so.0");
        let seen = see(std::process::id(), maps, library, library).unwrap();
        assert!(seen.rocm.is_some() && !seen.layer_named);
    }

    #[test]
    fn a_forked_child_is_distinguished_from_another_program() {
        // SAFETY: the child only sleeps and exits.
        let forked = unsafe { libc::fork() };
        if forked == 0 {
            // SAFETY: as above.
            unsafe {
                libc::pause();
                libc::_exit(0)
            }
        }
        let mut other = std::process::Command::new("sleep")
            .arg("1000")
            .spawn()
            .unwrap();
        let own = std::process::id();
        assert!(is_fork(forked as u32, own));
        assert!(!is_fork(other.id(), own));
        // SAFETY: a child of this test, which is waited for.
        unsafe {
            libc::kill(forked, libc::SIGKILL);
            libc::waitpid(forked, std::ptr::null_mut(), 0);
        }
        other.kill().unwrap();
        other.wait().unwrap();
    }

    #[test]
    fn a_process_that_no_look_has_met_is_explained_by_its_progress() {
        let directory = tempfile::tempdir().unwrap();
        let watch = Watch::new(std::process::id(), &directory.path().join(FILE_NAME));
        std::fs::write(directory.path().join("offered-7"), "").unwrap();
        std::fs::write(directory.path().join("failed-8"), "").unwrap();
        let findings = watch.findings(&[8]);
        assert_eq!(findings.len(), 1);
        assert!(findings[0].starts_with("process 7 was not traced: its OpenCL loader"));
    }

    #[test]
    fn a_process_without_opencl_is_no_finding() {
        let mut watch = Watch::new(std::process::id(), Path::new("/x"));
        watch.next = Instant::now();
        watch.look(&[]);
        assert!(watch.findings(&[]).is_empty());
    }
}
