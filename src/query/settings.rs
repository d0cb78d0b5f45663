//! Settings of a session, `SET lakepin.… = …`.

use datafusion::common::config::{ConfigExtension, ConfigOptions};
use datafusion::common::extensions_options;

use crate::error::Result;
use crate::spec::zone::Zone;

extensions_options! {
    /// Settings under the prefix `lakepin`.
    pub struct LakepinOptions {
        /// Whether Parquet files whose rows need no combining go through DataFusion's own Parquet source.
        pub merge_source: bool, default = true

        /// Fewest rows of a part into which a large merged section of one bucket is cut, so that it uses every core; 0
        /// leaves sections whole.
        pub part_rows: u64, default = 262_144

        /// Whether planning checks that every data file it will read exists with the size its manifest entry says.
        pub verify_files: bool, default = false

        /// Data files a statement may read; 0: no limit. A statement that would read more is refused before it reads.
        pub max_files: usize, default = 0

        /// Bytes of the data files a statement may read, whole files counted; 0: no limit.
        pub max_bytes_scanned: usize, default = 0
    }
}

impl ConfigExtension for LakepinOptions {
    const PREFIX: &'static str = "lakepin";
}

impl LakepinOptions {
    /// The settings of a session, or the defaults where the extension is not registered.
    pub fn of(config: &ConfigOptions) -> Self {
        config.extensions.get::<Self>().cloned().unwrap_or_default()
    }
}

/// The session's zone: `datafusion.execution.time_zone`, UTC when there is none.
pub fn session_zone(config: &ConfigOptions) -> Result<Zone> {
    match config.execution.time_zone.as_deref() {
        Some(zone) => Zone::parse(zone),
        None => Ok(Zone::UTC),
    }
}
