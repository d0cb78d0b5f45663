//! Two states of a table that are compared: what they have in common is found once, and read by neither side.

use std::sync::Arc;

use tokio::sync::OnceCell;

use crate::error::Result;
use crate::scan::{CommonFiles, ScanEnv, ScanRequest, plan};
use crate::snapshot::Pin;

/// Two pins whose final rows are compared.
#[derive(Debug)]
pub struct Compared {
    before: Arc<Pin>,
    after: Arc<Pin>,
    common: OnceCell<Arc<CommonFiles>>,
}

impl Compared {
    /// Two pins, read with one schema.
    pub fn new(before: &Arc<Pin>, after: &Arc<Pin>) -> Arc<Self> {
        Arc::new(Self { before: Arc::clone(before), after: Arc::clone(after), common: OnceCell::new() })
    }

    /// Files that are rows of both, found when the first side is planned. Cost: the metadata of both pins.
    pub(super) async fn common(&self, env: &ScanEnv) -> Result<Arc<CommonFiles>> {
        let found = self.common.get_or_try_init(|| async {
            if !self.comparable() {
                return Ok(Arc::default());
            }
            let request = ScanRequest::default();
            let (before, after) =
                futures::try_join!(plan(&self.before, &request, env), plan(&self.after, &request, env))?;
            Ok(Arc::new(CommonFiles::of(&before, &after)))
        });
        found.await.map(Arc::clone)
    }

    /// Whether equal files mean equal rows: one table, the same rules, and no other branch that fills partitions.
    fn comparable(&self) -> bool {
        let alone = |pin: &Pin| pin.fallback.is_none() && pin.primary.is_none();
        self.before.fingerprint.location == self.after.fingerprint.location
            && self.before.schema.id == self.after.schema.id
            && self.before.options == self.after.options
            && alone(&self.before)
            && alone(&self.after)
    }
}
