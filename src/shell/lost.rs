//! Pins of the session whose snapshot is no longer retained: looked at before every prompt, never waited for.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use super::workers::Workers;
use crate::error::Error;
use crate::sql::Session;

/// Time a prompt may wait for an answer.
const PATIENCE: Duration = Duration::from_millis(100);

/// What is known so far.
#[derive(Debug, Default)]
pub struct LostPins {
    known: Vec<Arc<Error>>,
    asked: Option<Receiver<Vec<Error>>>,
}

impl LostPins {
    /// Asks again, or goes on waiting for what was asked; returns the errors that are new.
    pub fn look(&mut self, session: &Arc<Session>, workers: &Workers) -> Vec<Arc<Error>> {
        if session.session_pins().is_empty() {
            *self = Self::default();
            return Vec::new();
        }
        let asked = self.asked.take().unwrap_or_else(|| {
            let (tell, hear) = channel();
            let session = Arc::clone(session);
            workers.detach(async move { drop(tell.send(session.lost_pins().await)) });
            hear
        });
        match asked.recv_timeout(PATIENCE) {
            Ok(found) => {
                let old = std::mem::replace(&mut self.known, found.into_iter().map(Arc::new).collect());
                let is_new = |error: &&Arc<Error>| !old.iter().any(|known| known.to_string() == error.to_string());
                self.known.iter().filter(is_new).cloned().collect()
            }
            Err(RecvTimeoutError::Timeout) => {
                self.asked = Some(asked);
                Vec::new()
            }
            Err(RecvTimeoutError::Disconnected) => Vec::new(),
        }
    }

    /// Whether any is lost.
    pub fn any(&self) -> bool {
        !self.known.is_empty()
    }
}
