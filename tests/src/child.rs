//! A driver process.

use std::ffi::OsString;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, ChildStdout, Command, ExitStatus, Stdio};

use anyhow::{Context as _, Result, bail};
use tempfile::TempDir;

use crate::output::Output;
use crate::places;
use crate::protocol::{Reply, Request};

/// How a driver is started.
#[derive(Debug)]
pub struct Setup {
    driver: PathBuf,
    variables: Vec<(OsString, OsString)>,
    wrapper: Vec<OsString>,
    folder: TempDir,
}

impl Setup {
    /// The plugin's default configuration, except that its files go to a folder of the test's own, and that it flushes
    /// every 50 ms. `driver`: path of the driver program.
    ///
    /// # Errors
    /// No temporary folder can be made.
    pub fn new(driver: &str) -> Result<Self> {
        let folder = TempDir::new()?;
        let setup = Self { driver: driver.into(), variables: Vec::new(), wrapper: Vec::new(), folder };
        let output = setup.folder().join("out");
        Ok(setup.variable("COLLANDER_SINK_DIRECTORY", output).variable("COLLANDER_SINK_FLUSH", "50ms"))
    }

    /// Sets an environment variable of the driver.
    #[must_use]
    pub fn variable(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.variables.push((name.into(), value.into()));
        self
    }

    /// Gives the library this configuration file.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn configuration(self, toml: &str) -> Result<Self> {
        let path = self.folder().join("collander.toml");
        std::fs::write(&path, toml)?;
        Ok(self.variable("COLLANDER_CONFIG", path))
    }

    /// Everything that can be recorded is.
    #[must_use]
    pub fn everything(self) -> Self {
        let all = "channels,proxy_ops,proxy_steps,phases,channel_list,proxy_list,step_list,api";
        self.variable("COLLANDER_CAPTURE_DETAIL", all)
    }

    /// Starts the driver by another program.
    #[must_use]
    pub fn under(mut self, wrapper: &[&str]) -> Self {
        self.wrapper = wrapper.iter().map(OsString::from).collect();
        self
    }

    /// The test's folder; it goes with the child.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Starts it.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn spawn(self) -> Result<Child> {
        let mut words: Vec<OsString> = self.wrapper;
        words.extend(places::runner().unwrap_or_default().into_iter().map(OsString::from));
        words.push(self.driver.into());
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).arg(places::library()).current_dir(self.folder.path());
        for (name, _) in std::env::vars_os() {
            let text = name.to_string_lossy();
            if ["COLLANDER_", "NCCL_", "SLURM_"].iter().any(|prefix| text.starts_with(prefix)) {
                command.env_remove(&name);
            }
        }
        command.envs(self.variables).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().with_context(|| words[0].display().to_string())?;
        let stdin = process.stdin.take();
        let stdout = BufReader::new(process.stdout.take().context("a pipe")?);
        Ok(Child { process, stdin, stdout, folder: self.folder })
    }
}

/// A driver process. Dropping it kills it and removes its folder.
#[derive(Debug)]
pub struct Child {
    process: std::process::Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    folder: TempDir,
}

impl Child {
    /// Asks for one thing and waits until it is done.
    ///
    /// # Errors
    /// The driver ends, or what it does fails.
    pub fn ask(&mut self, request: &Request) -> Result<Reply> {
        self.send(request)?;
        self.answer()
    }

    /// Asks without waiting.
    ///
    /// # Errors
    /// The driver has ended.
    pub fn send(&mut self, request: &Request) -> Result<()> {
        let mut line = serde_json::to_vec(request)?;
        line.push(b'\n');
        self.stdin.as_mut().context("the driver was told to end")?.write_all(&line).context("the driver has ended")
    }

    /// Waits for an answer.
    ///
    /// # Errors
    /// As [`Self::ask`].
    pub fn answer(&mut self) -> Result<Reply> {
        let mut line = String::new();
        if self.stdout.read_line(&mut line)? == 0 {
            bail!("the driver ended: {}", self.process.wait()?);
        }
        let reply: Reply = serde_json::from_str(&line).with_context(|| line.clone())?;
        match reply.error {
            Some(error) => bail!(error),
            None => Ok(reply),
        }
    }

    /// Process id; of the wrapper, if there is one.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Its folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Where its output goes.
    #[must_use]
    pub fn out(&self) -> PathBuf {
        self.folder.path().join("out")
    }

    /// Reads its output as it is now.
    ///
    /// # Errors
    /// It cannot be read, or is not what our format says.
    pub fn output(&self) -> Result<Output> {
        Output::read(&self.out())
    }

    /// Ends it in order: its library's exit handlers run.
    ///
    /// # Errors
    /// It does not end in order.
    pub fn end(&mut self) -> Result<()> {
        self.stdin = None;
        let status = self.process.wait()?;
        if status.success() { Ok(()) } else { bail!("the driver ended with {status}") }
    }

    /// kill -9.
    ///
    /// # Errors
    /// It is gone already.
    pub fn kill(&mut self) -> Result<ExitStatus> {
        self.process.kill()?;
        Ok(self.process.wait()?)
    }

    /// `/proc/PID/…` as text.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn proc(&self, file: &str) -> Result<String> {
        let path = format!("/proc/{}/{file}", self.pid());
        std::fs::read_to_string(&path).context(path)
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // Fails if it has ended, which is as good.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
