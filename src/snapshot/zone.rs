//! The session's time zone: what a wall-clock time without a zone means.

use std::fmt;

use crate::error::{Error, Result};

/// The zone of a session: how wall-clock times become instants and instants are shown.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SessionZone(Zone);

#[derive(Debug, Clone, PartialEq, Eq, Default)]
enum Zone {
    #[default]
    Utc,
}

impl SessionZone {
    /// UTC.
    pub fn utc() -> Self {
        Self(Zone::Utc)
    }

    /// The zone of this machine.
    pub fn local() -> Self {
        Self(Zone::Utc)
    }

    /// `UTC`, `Z`, `+08:00`, `Asia/Shanghai`, `local`.
    pub fn parse(text: &str) -> Result<Self> {
        let _ = text;
        Err(Error::internal("not built yet"))
    }

    /// Its name as written: `UTC`, `+08:00`, `Asia/Shanghai`.
    pub fn name(&self) -> String {
        String::new()
    }

    /// Seconds east of UTC at an instant.
    pub fn offset_seconds(&self, epoch_millis: i64) -> i32 {
        let _ = epoch_millis;
        0
    }

    /// An instant as text: `2026-04-16 10:00:00.123 +08:00`.
    pub fn show(&self, epoch_millis: i64) -> String {
        let _ = epoch_millis;
        String::new()
    }
}

impl fmt::Display for SessionZone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())
    }
}
