//! The recorded program: finding it, starting it, waiting for it.

use crate::failure::{FAILED, Failure};
use anyhow::{Context, anyhow};
use gputrail_collect::session::signal_name;
use rustix::fs::{Access, AtFlags, CWD};
use rustix::io::Errno;
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, ErrorKind, Seek, SeekFrom};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

/// A program that can be started.
pub struct Program {
    /// Its name as given by the user, which becomes its argument 0.
    pub name: OsString,
    /// The path of its file.
    pub path: PathBuf,
    arguments: Vec<OsString>,
    /// Whether it runs once more, unseen.
    again: Option<ProgramInput>,
}

/// The input of a program that runs once more: the file of its standard input from where it was at first.
struct ProgramInput(Option<(File, u64)>);

impl Program {
    /// Finds the program, as execvp would.
    pub fn find(words: Vec<OsString>) -> Result<Program, Failure> {
        let mut words = words.into_iter();
        let name = words.next().filter(|name| !name.is_empty());
        let name =
            name.ok_or_else(|| Failure::not_found(anyhow!("the program's name is empty")))?;
        let path = find(&name, std::env::var_os("PATH").as_deref())?;
        Ok(Program {
            name,
            path,
            arguments: words.collect(),
            again: None,
        })
    }

    /// From now on it runs unseen: without output, and with the file that is its standard input from `from` on, or else
    /// without input.
    pub fn again(mut self, from: Option<u64>) -> Program {
        let open = |from| Some((File::open("/proc/self/fd/0").ok()?, from));
        self.again = Some(ProgramInput(from.and_then(open)));
        self
    }

    /// The command that runs `path`.
    fn command(&self, path: &Path) -> Command {
        let mut command = Command::new(path);
        if let Some(ProgramInput(input)) = &self.again {
            let file = input.as_ref().and_then(|(file, from)| {
                let mut file = file.try_clone().ok()?;
                file.seek(SeekFrom::Start(*from)).ok()?;
                Some(Stdio::from(file))
            });
            command.stdin(file.unwrap_or_else(Stdio::null));
            command.stdout(Stdio::null()).stderr(Stdio::null());
        }
        command
    }

    /// Starts it with `variables` added to the environment.
    pub fn start(&self, variables: &[(&str, OsString)]) -> Result<Child, Failure> {
        let variables = || variables.iter().map(|(name, value)| (name, value));
        let started = self
            .command(&self.path)
            .arg0(&self.name)
            .args(&self.arguments)
            .envs(variables())
            .spawn();
        let started = match started {
            // A script without an interpreter in its first line is run by a shell, as shells do.
            Err(error) if error.raw_os_error() == Some(libc::ENOEXEC) && is_text(&self.path) => {
                self.command(Path::new("/bin/sh"))
                    .arg(&self.path)
                    .args(&self.arguments)
                    .envs(variables())
                    .spawn()
            }
            started => started,
        };
        started.map_err(|error| {
            let missing_interpreter = error.kind() == ErrorKind::NotFound && self.path.exists();
            let error = anyhow!(error).context(format!("cannot execute {}", self.path.display()));
            Failure::not_executable(if missing_interpreter {
                error.context(
                    "the interpreter that its first line or ELF header names does not exist",
                )
            } else {
                error
            })
        })
    }
}

fn find(name: &OsStr, search: Option<&OsStr>) -> Result<PathBuf, Failure> {
    let shown = name.display();
    if name.as_bytes().contains(&b'/') {
        return match executable(Path::new(name)) {
            Ok(()) => Ok(name.into()),
            Err(error)
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) =>
            {
                Err(Failure::not_found(anyhow!("{shown}: not found")))
            }
            Err(error) => Err(Failure::not_executable(
                anyhow!(error).context(format!("cannot execute {shown}")),
            )),
        };
    }
    let search = search.unwrap_or(OsStr::new("/usr/local/bin:/usr/bin:/bin"));
    let mut refused = None;
    for directory in std::env::split_paths(search) {
        // An empty entry is the current directory.
        let path = if directory.as_os_str().is_empty() {
            Path::new(".").join(name)
        } else {
            directory.join(name)
        };
        match executable(&path) {
            Ok(()) => return Ok(path),
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::PermissionDenied | ErrorKind::IsADirectory
                ) =>
            {
                refused.get_or_insert((path, error));
            }
            Err(_) => {}
        }
    }
    Err(match refused {
        Some((path, error)) => Failure::not_executable(
            anyhow!(error).context(format!("cannot execute {}", path.display())),
        ),
        None => Failure::not_found(anyhow!("{shown}: not found in PATH")),
    })
}

fn executable(path: &Path) -> io::Result<()> {
    if std::fs::metadata(path)?.is_dir() {
        return Err(ErrorKind::IsADirectory.into());
    }
    rustix::fs::accessat(CWD, path, Access::EXEC_OK, AtFlags::EACCESS)?;
    Ok(())
}

/// Whether a file looks like text, by the test of shells: no zero byte near the begin.
fn is_text(path: &Path) -> bool {
    use std::io::Read;
    let mut start = Vec::new();
    let read = std::fs::File::open(path).and_then(|file| file.take(128).read_to_end(&mut start));
    read.is_ok() && !start.contains(&0)
}

/// The exit code that a shell reports for this status: 128 and the number of the signal that killed the program.
pub fn exit_code(status: ExitStatus) -> u8 {
    let code = status
        .code()
        .or_else(|| status.signal().map(|signal| 128 + signal));
    code.unwrap_or(i32::from(FAILED)) as u8
}

/// How the program died, as text; `None` if it ended by itself.
pub fn death(status: ExitStatus) -> Option<String> {
    let signal = status.signal()?;
    let core = if status.core_dumped() {
        ", core dumped"
    } else {
        ""
    };
    Some(format!(
        "killed by signal {signal} ({}{core})",
        signal_name(signal)
    ))
}

/// The place in the file that is the command's standard input; `None` if it is none.
pub fn input_place() -> Option<u64> {
    let input = std::io::stdin();
    let stat = rustix::fs::fstat(&input).ok()?;
    let is_file = rustix::fs::FileType::from_raw_mode(stat.st_mode).is_file();
    is_file.then(|| rustix::fs::tell(&input).ok()).flatten()
}

/// Waits until a child has ended, which [`reap`] then returns from at once.
pub fn wait_without_reaping(child: &Child) {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    // A signal interrupts the wait.
    while waitid(WaitId::Pid(Pid::from_child(child)), options).err() == Some(Errno::INTR) {}
}

/// Waits for a child without the message of a shell.
pub fn reap(child: &mut Child) -> Result<ExitStatus, Failure> {
    Ok(child.wait().context("cannot wait for the program")?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code_of(words: &[&str]) -> u8 {
        let words = words.iter().map(OsString::from).collect();
        let status = Program::find(words).and_then(|program| reap(&mut program.start(&[])?));
        match status {
            Ok(status) => exit_code(status),
            Err(failure) => failure.code,
        }
    }

    #[test]
    fn exit_codes_are_those_of_a_shell() {
        assert_eq!(code_of(&["true"]), 0);
        assert_eq!(code_of(&["sh", "-c", "exit 77"]), 77);
        assert_eq!(code_of(&["sh", "-c", "kill -TERM $$"]), 143);
        assert_eq!(code_of(&["sh", "-c", "kill -KILL $$"]), 137);
    }

    #[test]
    fn a_program_that_is_not_there_gives_127() {
        assert_eq!(code_of(&["no-such-program-anywhere"]), 127);
        assert_eq!(code_of(&["/no/such/program"]), 127);
        assert_eq!(code_of(&["/etc/passwd/program"]), 127);
        assert_eq!(code_of(&[""]), 127);
    }

    #[test]
    fn a_program_that_cannot_be_executed_gives_126() {
        assert_eq!(code_of(&["/etc/passwd"]), 126);
        assert_eq!(code_of(&["/etc"]), 126);
    }

    #[test]
    fn a_script_without_a_first_line_is_run_by_a_shell() {
        use std::os::unix::fs::PermissionsExt;
        let directory =
            crate::private_dir::create_in(&std::env::temp_dir(), "gputrail-test-").unwrap();
        let script = directory.path().join("script");
        let make = |text: &str| {
            // Written by another process: a file that the child of another test still has open for writing cannot be
            // executed.
            let draft = directory.path().join("draft");
            std::fs::write(&draft, text).unwrap();
            std::fs::set_permissions(&draft, PermissionsExt::from_mode(0o755)).unwrap();
            assert!(
                Command::new("cp")
                    .args([&draft, &script])
                    .status()
                    .unwrap()
                    .success()
            );
        };
        make("exit $1\n");
        assert_eq!(code_of(&[script.to_str().unwrap(), "5"]), 5);
        make("#!/no/such/interpreter\n");
        assert_eq!(code_of(&[script.to_str().unwrap()]), 126);
        make("\x7fELF\0");
        assert_eq!(code_of(&[script.to_str().unwrap()]), 126);
    }
}
