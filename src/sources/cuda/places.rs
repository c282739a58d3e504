//! The places in which libcupti and the libraries beside it may lie. It looks at names of files and folders only; `cupti` opens
//! what is found.
//!
//! * Beside CUDA's libraries in the process: packages of the same Python environment; libcudart's folder, and its toolkit's
//!   `extras/CUPTI/lib64`.
//! * Environments (`VIRTUAL_ENV`, `CONDA_PREFIX`, that of the running Python): packages, `lib`, `lib64` and
//!   `targets/x86_64-linux/lib`.
//! * Toolkits (`CUDA_HOME`, `CUDA_PATH`, `/usr/local/cuda`): `extras/CUPTI/lib64`, `lib64` and `targets/x86_64-linux/lib`.

use gputrail_buffer::platform::environment::variable;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// The names of libcupti by version, newest first.
pub(super) const NAMES: [&str; 4] = [
    "libcupti.so.13",
    "libcupti.so.12",
    "libcupti.so.11.8",
    "libcupti.so",
];
/// The toolkit of a machine where no variable names one.
const DEFAULT_TOOLKIT: &str = "/usr/local/cuda";

/// What a process tells of the places of its libraries.
pub(super) struct Surroundings<'a> {
    /// Its mappings, as /proc/self/maps lists them.
    pub maps: String,
    /// Its environment.
    pub variable: &'a dyn Fn(&str) -> Option<PathBuf>,
    /// The file of its program.
    pub executable: Option<PathBuf>,
    /// The program as its caller named it. The Python of a virtual environment is a link: this is its path, while
    /// `executable` is what it leads to.
    pub command: Option<PathBuf>,
}

impl Surroundings<'_> {
    /// Those of this process.
    pub fn of_this_process() -> Surroundings<'static> {
        use std::os::unix::ffi::OsStrExt;
        let command = std::fs::read("/proc/self/cmdline").unwrap_or_default();
        let command = command.split(|byte| *byte == 0).next().unwrap_or_default();
        Surroundings {
            maps: std::fs::read_to_string("/proc/self/maps").unwrap_or_default(),
            variable: &|name| variable(name).map(PathBuf::from),
            executable: std::fs::read_link("/proc/self/exe").ok(),
            command: Some(PathBuf::from(OsStr::from_bytes(command))),
        }
    }

    /// The folders of libcupti, best first: beside CUDA's libraries that the process has loaded, in its Python
    /// environments, in toolkits. They need not exist.
    pub fn folders(&self) -> Vec<PathBuf> {
        let mut folders = Vec::new();
        for path in self.mapped() {
            if let Some(packages) = packages_around(path) {
                folders.extend(of_packages(&packages));
            }
        }
        for path in self.mapped().filter(|path| runtime_major(path).is_some()) {
            let Some(folder) = path.parent() else {
                continue;
            };
            folders.push(folder.to_owned());
            // `lib64`, or `targets/x86_64-linux/lib`.
            let homes = [folder.parent(), folder.ancestors().nth(3)];
            folders.extend(homes.into_iter().flatten().map(in_extras));
        }
        let environments = ["VIRTUAL_ENV", "CONDA_PREFIX"];
        let environments = environments.iter().filter_map(|name| (self.variable)(name));
        for root in environments.chain(self.pythons()) {
            folders.extend(of_environment(&root));
        }
        let homes = ["CUDA_HOME", "CUDA_PATH"];
        let homes = homes.iter().filter_map(|name| (self.variable)(name));
        for home in homes.chain([PathBuf::from(DEFAULT_TOOLKIT)]) {
            folders.push(in_extras(&home));
            folders.extend(of_libraries(&home));
        }
        let mut seen = std::collections::HashSet::new();
        folders.retain(|folder| seen.insert(folder.clone()));
        folders
    }

    /// The files that the process has mapped.
    fn mapped(&self) -> impl Iterator<Item = &Path> {
        let files = self.maps.lines();
        files.filter_map(|line| Some(Path::new(&line[line.find('/')?..])))
    }

    /// The folders of the Python that runs: of its virtual environment, also where that has not been activated, and of its
    /// installation.
    fn pythons(&self) -> Vec<PathBuf> {
        let root = |file: &Path| Some(file.parent()?.parent()?.to_owned());
        let mut roots = Vec::new();
        let command = self.command.as_deref().and_then(|name| self.found(name));
        let environment = command.as_deref().and_then(root);
        roots.extend(environment.filter(|root| root.join("pyvenv.cfg").exists()));
        let is_python = |file: &&Path| {
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with("python")
        };
        if let Some(python) = self.executable.as_deref().filter(is_python) {
            let user = (self.variable)("HOME").map(|home| home.join(".local"));
            roots.extend(user);
            let installation = root(python);
            // Debian's Python has pip install there.
            let is_system = installation.as_deref() == Some(Path::new("/usr"));
            roots.extend(is_system.then(|| PathBuf::from("/usr/local")));
            roots.extend(installation);
        }
        roots
    }

    /// The file of a command: a path, or a name in PATH.
    fn found(&self, command: &Path) -> Option<PathBuf> {
        if command.components().count() > 1 {
            return Some(command.to_owned());
        }
        let folders = (self.variable)("PATH")?;
        let files = std::env::split_paths(&folders).map(|folder| folder.join(command));
        files.into_iter().find(|file| file.is_file())
    }

    /// The versions of the runtime API that the process has loaded, by their major numbers.
    pub fn runtimes(&self) -> Vec<u32> {
        self.mapped().filter_map(runtime_major).collect()
    }

    /// The files of the libcuptis that the process has mapped.
    pub fn loaded_cuptis(&self) -> impl Iterator<Item = PathBuf> {
        let is_cupti = |path: &&Path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with("libcupti.so")
        };
        self.mapped().filter(is_cupti).map(Path::to_owned)
    }
}

/// The versions of CUDA on which it depends which libcupti fits.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Versions {
    /// The major version of the runtime API that the process has loaded.
    pub runtime: Option<u32>,
    /// The version that the driver supports: 12090 for 12.9.
    pub driver: Option<u32>,
}

impl Versions {
    /// `runtimes` are the loaded ones; of several, the newest that the driver supports counts.
    pub fn new(runtimes: &[u32], driver: Option<u32>) -> Versions {
        let is_supported = |major: &u32| driver.is_none_or(|driver| *major <= driver / 1000);
        let supported = runtimes.iter().copied().filter(is_supported).max();
        Versions {
            runtime: supported.or(runtimes.iter().copied().max()),
            driver,
        }
    }

    /// The major version that a libcupti should have.
    pub fn wanted(&self) -> Option<u32> {
        self.runtime.or(self.driver.map(|driver| driver / 1000))
    }

    /// How well a libcupti of this major version fits, best first.
    fn rank(&self, major: Option<u32>) -> u32 {
        let above_driver = |major| self.driver.is_some_and(|driver| major > driver / 1000);
        match (major, self.runtime) {
            (None, _) => 1,
            (Some(major), Some(runtime)) if major == runtime => 0,
            (Some(major), _) if above_driver(major) => 2,
            (Some(_), Some(_)) => 1,
            (Some(_), None) => 0,
        }
    }
}

/// The files of libcupti that there are in `folders`, and those that the loader may find: those that fit first, in the order
/// of the folders.
pub(super) fn candidates(folders: &[PathBuf], versions: &Versions) -> Vec<PathBuf> {
    let mut files = in_folders(folders, versions);
    files.extend(NAMES.iter().map(PathBuf::from));
    files.sort_by_key(|file| versions.rank(cupti_major(file)));
    files
}

/// The files of libcupti that there are in `folders`, those that fit first.
pub(super) fn in_folders(folders: &[PathBuf], versions: &Versions) -> Vec<PathBuf> {
    let files = folders
        .iter()
        .flat_map(|folder| NAMES.map(|name| folder.join(name)));
    let mut files: Vec<_> = files.filter(|file| file.exists()).collect();
    files.sort_by_key(|file| versions.rank(cupti_major(file)));
    files
}

/// The major version of a libcupti by its name, or by that of the file to which it is a link.
pub(super) fn cupti_major(file: &Path) -> Option<u32> {
    let of_name = |file: &Path| {
        let name = file.file_name()?.to_str()?;
        let major: u32 = name
            .strip_prefix("libcupti.so.")?
            .split('.')
            .next()?
            .parse()
            .ok()?;
        // Complete versions begin with the year.
        (major < 1000).then_some(major)
    };
    of_name(file).or_else(|| match file.components().count() {
        // The loader finds it, not this folder.
        1 => None,
        _ => of_name(&std::fs::read_link(file).ok()?),
    })
}

/// The major version of the runtime API, if `file` is its library: `libcudart.so.12`, or as packages rename it,
/// `libcudart-d0da41ae.so.11.0`.
fn runtime_major(file: &Path) -> Option<u32> {
    let name = file.file_name()?.to_str()?;
    let (_, version) = name.strip_prefix("libcudart")?.split_once(".so.")?;
    version.split('.').next()?.parse().ok()
}

/// The folder `nvidia` of a Python environment that `file` lies in: packages of CUDA's libraries lie beside each other, such as
/// `site-packages/nvidia/cuda_runtime/lib/libcudart.so.12`.
fn packages_around(file: &Path) -> Option<PathBuf> {
    let folders = file.ancestors().skip(1);
    let mut packages = folders.filter(|folder| folder.file_name() == Some(OsStr::new("nvidia")));
    packages.next().map(Path::to_owned)
}

/// The folders of libcupti in `nvidia` of a Python environment: of version 13, and of earlier ones.
fn of_packages(nvidia: &Path) -> [PathBuf; 2] {
    ["cu13/lib", "cuda_cupti/lib"].map(|folder| nvidia.join(folder))
}

/// The folders of libcupti in a Python environment or an environment of conda.
fn of_environment(root: &Path) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    for lib in ["lib", "lib64"] {
        let entries = std::fs::read_dir(root.join(lib));
        let versions = entries.into_iter().flatten().flatten();
        let is_python = |name: &std::ffi::OsString| name.to_string_lossy().starts_with("python");
        let versions = versions.map(|entry| entry.file_name()).filter(is_python);
        let mut versions: Vec<_> = versions.collect();
        versions.sort();
        for version in versions {
            for packages in ["site-packages", "dist-packages"] {
                let packages = root.join(lib).join(&version).join(packages);
                folders.extend(of_packages(&packages.join("nvidia")));
            }
        }
    }
    folders.push(root.join("lib"));
    folders.extend(of_libraries(root));
    folders
}

/// The folders of libraries in a toolkit or an environment of conda.
fn of_libraries(root: &Path) -> [PathBuf; 2] {
    ["lib64", "targets/x86_64-linux/lib"].map(|folder| root.join(folder))
}

/// The folder of libcupti in a toolkit.
fn in_extras(home: impl AsRef<Path>) -> PathBuf {
    home.as_ref().join("extras/CUPTI/lib64")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// A made-up tree of files, and what a process tells of itself.
    #[derive(Default)]
    struct Tree {
        root: Option<tempfile::TempDir>,
        variables: BTreeMap<&'static str, &'static str>,
        maps: String,
        executable: Option<&'static str>,
        command: Option<&'static str>,
    }

    impl Tree {
        fn new(files: &[&str]) -> Tree {
            let root = tempfile::tempdir().unwrap();
            for file in files {
                let file = root.path().join(file);
                std::fs::create_dir_all(file.parent().unwrap()).unwrap();
                std::fs::write(file, "").unwrap();
            }
            Tree {
                root: Some(root),
                ..Tree::default()
            }
        }

        fn path(&self, name: &str) -> PathBuf {
            self.root.as_ref().unwrap().path().join(name)
        }

        fn map(mut self, file: &str) -> Tree {
            let file = self.path(file);
            self.maps += &format!("7f0-7f1 r-xp 0 08:01 1      {}\n", file.display());
            self
        }

        fn set(mut self, name: &'static str, value: &'static str) -> Tree {
            self.variables.insert(name, value);
            self
        }

        /// The files that are found in the tree, best first. `driver` is the version of the driver.
        fn found(&self, driver: u32) -> Vec<String> {
            let variable = |name: &str| Some(self.path(self.variables.get(name)?));
            let surroundings = Surroundings {
                maps: self.maps.clone(),
                variable: &variable,
                executable: self.executable.map(|name| self.path(name)),
                command: self.command.map(|name| self.path(name)),
            };
            let versions = Versions::new(&surroundings.runtimes(), Some(driver));
            let files = in_folders(&surroundings.folders(), &versions);
            let root = self.path("");
            let inside = files
                .iter()
                .filter_map(|file| file.strip_prefix(&root).ok());
            inside.map(|file| file.display().to_string()).collect()
        }

        fn first(&self, driver: u32) -> String {
            self.found(driver).first().cloned().unwrap_or_default()
        }
    }

    const TOOLKIT: [&str; 2] = [
        "cuda/extras/CUPTI/lib64/libcupti.so.12",
        "cuda/extras/CUPTI/lib64/libcupti.so.13",
    ];

    #[test]
    fn the_major_version_is_that_of_the_loaded_runtime_else_the_newest_that_the_driver_supports() {
        let tree = || Tree::new(&TOOLKIT).set("CUDA_HOME", "cuda");
        assert_eq!(tree().first(12090), TOOLKIT[0]);
        assert_eq!(tree().first(13000), TOOLKIT[1]);
        assert_eq!(tree().map("x/libcudart.so.12").first(13000), TOOLKIT[0]);
        assert_eq!(tree().map("x/libcudart.so.13.0.1").first(13000), TOOLKIT[1]);
        let renamed = "x/libcudart-d0da41ae.so.12.1";
        assert_eq!(tree().map(renamed).first(13000), TOOLKIT[0]);
        let both = tree().map("x/libcudart.so.13").map("x/libcudart.so.12");
        assert_eq!(both.first(12090), TOOLKIT[0]);
        // One that does not fit is better than none.
        let only = Tree::new(&TOOLKIT[1..]).set("CUDA_HOME", "cuda");
        assert_eq!(only.first(12090), TOOLKIT[1]);
    }

    #[test]
    fn one_that_fits_in_a_later_place_comes_before_one_that_does_not_fit() {
        let packages = "v/lib/python3.12/site-packages/nvidia";
        let thirteen = format!("{packages}/cu13/lib/libcupti.so.13");
        let twelve = format!("{packages}/cuda_cupti/lib/libcupti.so.12");
        let tree = |files: &[&str]| {
            let tree = Tree::new(files);
            tree.set("VIRTUAL_ENV", "v").set("CUDA_HOME", "cuda")
        };
        assert_eq!(tree(&[&thirteen, TOOLKIT[0]]).first(12090), TOOLKIT[0]);
        assert_eq!(
            tree(&[&thirteen, &twelve]).found(12090),
            [&*twelve, &thirteen]
        );
        assert_eq!(tree(&[&thirteen, TOOLKIT[1]]).first(13000), thirteen);
    }

    #[test]
    fn a_link_has_the_version_of_the_file_that_it_leads_to() {
        let tree = Tree::new(&["cuda/lib64/libcupti.so.13"]).set("CUDA_PATH", "cuda");
        let link = tree.path("cuda/lib64/libcupti.so");
        std::os::unix::fs::symlink("libcupti.so.13", &link).unwrap();
        assert_eq!(cupti_major(&link), Some(13));
        assert_eq!(cupti_major(Path::new("/x/libcupti.so.11.8")), Some(11));
        assert_eq!(cupti_major(Path::new("/x/libcupti.so.2025.2.1")), None);
        assert_eq!(cupti_major(Path::new("libcupti.so")), None);
    }

    #[test]
    fn each_place_is_searched() {
        let python = "lib/python3.12/site-packages/nvidia/cuda_cupti/lib/libcupti.so.12";
        let found = |tree: Tree, file: &str| assert_eq!(tree.found(12090), [file]);

        // Beside packages and the runtime that are loaded.
        let file = format!("v/{python}");
        let package = "v/lib/python3.12/site-packages/nvidia/cuda_runtime/lib/libcudart.so.12";
        found(Tree::new(&[&file]).map(package), &file);
        let file = "c/lib64/libcupti.so.12";
        found(Tree::new(&[file]).map("c/lib64/libcudart.so.12"), file);
        let file = "c/extras/CUPTI/lib64/libcupti.so.12";
        found(Tree::new(&[file]).map("c/lib64/libcudart.so.12"), file);
        let library = "c/targets/x86_64-linux/lib/libcudart.so.12.9.79";
        found(Tree::new(&[file]).map(library), file);

        // Environments of conda, and toolkits.
        for (name, place) in [
            ("CONDA_PREFIX", "e/lib"),
            ("CONDA_PREFIX", "e/targets/x86_64-linux/lib"),
            ("CUDA_HOME", "e/lib64"),
            ("CUDA_PATH", "e/targets/x86_64-linux/lib"),
            ("CUDA_HOME", "e/extras/CUPTI/lib64"),
        ] {
            let file = format!("{place}/libcupti.so.12");
            found(Tree::new(&[&file]).set(name, "e"), &file);
        }
    }

    #[test]
    fn a_python_that_was_not_activated_is_searched() {
        let python = "lib/python3.12/site-packages/nvidia/cuda_cupti/lib/libcupti.so.12";
        let file = format!(".venv/{python}");
        let mut tree = Tree::new(&[&file, ".venv/pyvenv.cfg"]);
        (tree.command, tree.executable) = (Some(".venv/bin/python"), Some("usr/bin/python3.12"));
        assert_eq!(tree.first(12090), file);

        let file = format!("opt/conda/{python}");
        let mut tree = Tree::new(&[&file]);
        tree.executable = Some("opt/conda/bin/python3.12");
        assert_eq!(tree.first(12090), file);
        // Another program's folder says nothing of Python.
        tree.executable = Some("opt/conda/bin/program");
        assert_eq!(tree.first(12090), "");
    }
}
