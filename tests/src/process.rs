//! One real process: started, stopped, continued, killed and restarted by its id.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

use crate::logs::Logs;
use crate::wait::until;

/// How long a process may take to be held.
const STOP_DEADLINE: Duration = Duration::from_secs(5);

/// What to run: a program with its arguments and its additions to the environment.
#[derive(Debug, Clone)]
pub struct Program {
    path: PathBuf,
    args: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
}

impl Program {
    /// A program by its path, without arguments.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), args: Vec::new(), env: Vec::new() }
    }

    /// Adds arguments.
    #[must_use]
    pub fn args<S: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.args.extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        self
    }

    /// Adds an option with its value.
    #[must_use]
    pub fn arg(mut self, option: &str, value: impl AsRef<OsStr>) -> Self {
        self.args.extend([option.into(), value.as_ref().to_owned()]);
        self
    }

    /// Adds a variable to the environment.
    #[must_use]
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.env.push((name.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }

    fn spawn(&self, logs: &Logs) -> Child {
        Command::new(&self.path)
            .args(&self.args)
            .envs(self.env.iter().cloned())
            .current_dir(logs.folder())
            .stdin(Stdio::null())
            .stdout(logs.open())
            .stderr(logs.open())
            .spawn()
            .unwrap_or_else(|error| panic!("{} does not start: {error}", self.path.display()))
    }
}

/// A running program. Dropping it kills it.
#[derive(Debug)]
pub struct Process {
    program: Program,
    // Dropped after the `Drop` below has ended the child, so the log that a failing test shows is whole.
    logs: Logs,
    child: Child,
    // Known once the child has been waited for; from then on its id may be another process's.
    ended: Option<ExitStatus>,
}

impl Process {
    /// Starts a program in a folder of its own; `name` marks the folder and the log.
    pub fn start(name: &str, program: Program) -> Self {
        Self::start_in(Logs::new(name), program)
    }

    pub(crate) fn start_in(logs: Logs, program: Program) -> Self {
        let child = program.spawn(&logs);
        Self { program, logs, child, ended: None }
    }

    /// All that the process has printed.
    pub fn log(&self) -> String {
        self.logs.text()
    }

    /// The folder in which the process runs.
    pub fn folder(&self) -> &Path {
        self.logs.folder()
    }

    /// The memory that the process has in use at present, as the kernel counts it (`VmRSS`).
    pub fn resident_bytes(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()));
        let status = status.expect("the kernel tells of a running child");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
        kib.expect("a running process has memory") * 1024
    }

    /// Holds the process (SIGSTOP), all of its threads: its sockets stay open and nothing answers.
    pub fn stop(&self) {
        self.signal(Signal::STOP);
        // On a busy machine threads go on until one of them has come to see the signal.
        let deadline = Instant::now() + STOP_DEADLINE;
        let stopped = WaitIdOptions::STOPPED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        while waitid(WaitId::Pid(Pid::from_child(&self.child)), stopped).is_ok_and(|state| state.is_none()) {
            assert!(Instant::now() < deadline, "{} does not stop", self.program.path.display());
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Lets a held process go on (SIGCONT).
    pub fn cont(&self) {
        self.signal(Signal::CONT);
    }

    /// Asks the process to end (SIGTERM).
    pub fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// Ends the process at once (SIGKILL), held or not, and waits until it is gone.
    pub fn kill(&mut self) {
        // An error means that it has already ended, which is what was wanted.
        let _ = self.child.kill();
        self.ended = self.child.wait().ok();
    }

    /// Kills the process if it still runs, and starts the same program again.
    pub fn restart(&mut self) {
        self.kill();
        self.child = self.program.spawn(&self.logs);
        self.ended = None;
    }

    /// Waits until the process ends by itself.
    pub async fn exited(&mut self, deadline: Duration) -> ExitStatus {
        until("the end of the process", deadline, async || self.try_exit()).await
    }

    /// Waits until `ready` gives a value; a process that ends instead fails the test at once.
    pub async fn ready<T>(
        &mut self,
        what: &str,
        deadline: Duration,
        mut ready: impl AsyncFnMut() -> Option<T>,
    ) -> T {
        until(what, deadline, async || {
            if let Some(status) = self.try_exit() {
                panic!("{} ended ({status}) instead of: {what}", self.program.path.display());
            }
            ready().await
        })
        .await
    }

    fn try_exit(&mut self) -> Option<ExitStatus> {
        self.ended = self.child.try_wait().expect("a child can be asked for its state");
        self.ended
    }

    fn signal(&self, signal: Signal) {
        assert!(self.ended.is_none(), "{} has already ended", self.program.path.display());
        kill_process(Pid::from_child(&self.child), signal).expect("a running child can be signalled");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}
