//! The program in a pseudo-terminal, its screen as a terminal would show it.

use std::io::{Read, Write};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};

/// Long enough for a loaded machine; nothing waits so long when all is well.
const PATIENCE: Duration = Duration::from_secs(60);

pub struct Pty {
    writer: Box<dyn Write + Send>,
    screen: Arc<Mutex<vt100::Parser>>,
    raw: Arc<Mutex<Vec<u8>>>,
    child: Box<dyn Child + Send + Sync>,
    master: Box<dyn MasterPty + Send>,
}

impl Pty {
    /// Starts the program with these arguments and environment, an empty value taking a name away; its home is `home`.
    pub fn start(
        arguments: &[&str],
        env: &[(&str, &str)],
        home: &Path,
        (rows, cols): (u16, u16),
    ) -> Result<Self, String> {
        let error = |e: &dyn std::fmt::Display| e.to_string();
        let pair = native_pty_system()
            .openpty(PtySize { rows, cols, pixel_width: 0, pixel_height: 0 })
            .map_err(|e| error(&e))?;
        let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_lakepin"));
        command.args(arguments);
        command.env_clear();
        command.env("PATH", std::env::var("PATH").unwrap_or_default());
        command.env("HOME", home);
        command.env("XDG_STATE_HOME", home.join("state"));
        command.env("TERM", "xterm-256color");
        command.env("PAGER", "cat");
        for (name, value) in env {
            if value.is_empty() {
                command.env_remove(name);
            } else {
                command.env(name, value);
            }
        }
        command.cwd(home);
        let child = pair.slave.spawn_command(command).map_err(|e| error(&e))?;
        drop(pair.slave);
        let mut reader = pair.master.try_clone_reader().map_err(|e| error(&e))?;
        let writer = pair.master.take_writer().map_err(|e| error(&e))?;
        let screen = Arc::new(Mutex::new(vt100::Parser::new(rows, cols, 2000)));
        let raw = Arc::new(Mutex::new(Vec::new()));
        let (seen, kept) = (Arc::clone(&screen), Arc::clone(&raw));
        std::thread::spawn(move || {
            let mut bytes = [0u8; 4096];
            while let Ok(n) = reader.read(&mut bytes) {
                if n == 0 {
                    break;
                }
                kept.lock().expect("raw lock").extend_from_slice(&bytes[..n]);
                seen.lock().expect("screen lock").process(&bytes[..n]);
            }
        });
        Ok(Self { writer, screen, raw, child, master: pair.master })
    }

    /// Types.
    pub fn send(&mut self, text: &str) -> Result<(), String> {
        self.send_bytes(text.as_bytes())
    }

    /// Sends bytes as a terminal in another encoding does.
    pub fn send_bytes(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.writer.write_all(bytes).and_then(|()| self.writer.flush()).map_err(|e| e.to_string())
    }

    /// Types a line.
    pub fn line(&mut self, text: &str) -> Result<(), String> {
        self.send(&format!("{text}\r"))
    }

    /// Makes the window larger or smaller.
    pub fn resize(&self, rows: u16, cols: u16) -> Result<(), String> {
        self.screen.lock().expect("screen lock").screen_mut().set_size(rows, cols);
        self.master.resize(PtySize { rows, cols, pixel_width: 0, pixel_height: 0 }).map_err(|e| e.to_string())
    }

    /// The program's process.
    pub fn id(&self) -> Result<u32, String> {
        self.child.process_id().ok_or_else(|| "the program has ended".to_string())
    }

    /// Everything the program wrote, codes included.
    pub fn raw(&self) -> String {
        String::from_utf8_lossy(&self.raw.lock().expect("raw lock")).into_owned()
    }

    /// Colour of the first cell of the last line that is not blank.
    pub fn colour_of_last(&self) -> vt100::Color {
        let parser = self.screen.lock().expect("screen lock");
        let screen = parser.screen();
        let (_, cols) = screen.size();
        let row =
            screen.rows(0, cols).enumerate().filter(|(_, row)| !row.trim().is_empty()).last().map_or(0, |(i, _)| i);
        screen.cell(u16::try_from(row).unwrap_or(0), 0).map_or(vt100::Color::Default, vt100::Cell::fgcolor)
    }

    /// The screen as lines.
    pub fn screen(&self) -> Vec<String> {
        self.screen.lock().expect("screen lock").screen().contents().lines().map(str::to_string).collect()
    }

    /// The last line that is not blank.
    pub fn last(&self) -> String {
        self.screen().into_iter().rev().find(|line| !line.trim().is_empty()).unwrap_or_default()
    }

    /// Waits until the screen is as wanted.
    pub fn wait(&self, what: &str, wanted: impl Fn(&[String]) -> bool) -> Result<Vec<String>, String> {
        let started = Instant::now();
        loop {
            let screen = self.screen();
            if wanted(&screen) {
                return Ok(screen);
            }
            if started.elapsed() > PATIENCE {
                return Err(format!("no {what} on the screen:\n{}", screen.join("\n")));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits for a text anywhere.
    pub fn wait_text(&self, text: &str) -> Result<Vec<String>, String> {
        self.wait(&format!("{text:?}"), |lines| lines.iter().any(|line| line.contains(text)))
    }

    /// Waits until the cursor stands behind this prompt with nothing typed.
    pub fn wait_prompt(&self, prompt: &str) -> Result<Vec<String>, String> {
        self.wait(&format!("prompt {prompt:?}"), |lines| {
            lines.iter().rev().find(|line| !line.trim().is_empty()).is_some_and(|last| last.trim_end() == prompt)
        })
    }

    /// Rows of the screen that begin with a text.
    pub fn rows_beginning(&self, text: &str) -> Vec<usize> {
        let parser = self.screen.lock().expect("screen lock");
        let screen = parser.screen();
        let (_, cols) = screen.size();
        screen.rows(0, cols).enumerate().filter(|(_, row)| row.starts_with(text)).map(|(at, _)| at).collect()
    }

    /// Column, in cells, of every occurrence of a character in a row of the screen.
    pub fn columns_of(&self, row: usize, wanted: &str) -> Vec<u16> {
        let parser = self.screen.lock().expect("screen lock");
        let screen = parser.screen();
        let (_, cols) = screen.size();
        let row = u16::try_from(row).unwrap_or(0);
        (0..cols).filter(|col| screen.cell(row, *col).is_some_and(|cell| cell.contents() == wanted)).collect()
    }

    /// Whether the program has ended.
    pub fn ended(&mut self) -> Result<bool, String> {
        Ok(self.child.try_wait().map_err(|e| e.to_string())?.is_some())
    }

    /// Sends a signal to the program.
    pub fn signal(&self, name: &str) -> Result<(), String> {
        let process = self.child.process_id().ok_or("the program has ended")?;
        let sent = std::process::Command::new("kill").args([&format!("-{name}"), &process.to_string()]).status();
        if sent.map_err(|e| e.to_string())?.success() { Ok(()) } else { Err("kill failed".to_string()) }
    }

    /// Whether the terminal edits lines and echoes by itself, as before a program made it raw.
    pub fn is_cooked(&self) -> Result<bool, String> {
        let modes = self.master.get_termios().ok_or("the terminal has no modes")?;
        Ok(format!("{modes:?}").contains("ICANON"))
    }

    /// Waits for the end; the exit code.
    pub fn end(&mut self) -> Result<u32, String> {
        let started = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().map_err(|e| e.to_string())? {
                return Ok(status.exit_code());
            }
            if started.elapsed() > PATIENCE {
                let _ = self.child.kill();
                return Err(format!("the program does not end:\n{}", self.screen().join("\n")));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Pty {
    fn drop(&mut self) {
        let _ = self.child.kill();
    }
}
