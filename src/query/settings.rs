//! Settings of a session, `SET lakepin.… = …`.

use std::any::Any;

use datafusion::common::config::{ConfigEntry, ConfigExtension, ConfigField, ConfigOptions, ExtensionOptions};
use datafusion::common::{config_datafusion_err, config_err};

use crate::error::Result;
use crate::spec::zone::Zone;

/// Settings under the prefix `lakepin`.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct LakepinOptions {
    /// Whether Parquet files whose rows need no combining go through DataFusion's own Parquet source.
    pub merge_source: bool,
    /// Fewest rows of a part into which a large merged section of one bucket is cut, so that it uses every core; 0
    /// leaves sections whole.
    pub part_rows: u64,
    /// Whether planning checks that every data file it will read exists with the size its manifest entry says.
    pub verify_files: bool,
    /// Whether the live rows of merged buckets are remembered from one statement to the next.
    pub selection_cache: bool,
    /// Data files a statement may read; 0: no limit. A statement that would read more is refused before it reads.
    pub max_files: usize,
    /// Bytes of the data files a statement may read, whole files counted; 0: no limit.
    pub max_bytes_scanned: usize,
}

impl Default for LakepinOptions {
    fn default() -> Self {
        Self {
            merge_source: true,
            part_rows: 262_144,
            verify_files: false,
            selection_cache: true,
            max_files: 0,
            max_bytes_scanned: 0,
        }
    }
}

impl ConfigExtension for LakepinOptions {
    const PREFIX: &'static str = "lakepin";
}

// Written out, since DataFusion's macro names the entries without their prefix: `SHOW` and completion then miss them.
impl ExtensionOptions for LakepinOptions {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }

    fn cloned(&self) -> Box<dyn ExtensionOptions> {
        Box::new(self.clone())
    }

    fn set(&mut self, key: &str, value: &str) -> datafusion::common::Result<()> {
        let set = match key {
            "merge_source" => self.merge_source.set("", value),
            "part_rows" => self.part_rows.set("", value),
            "verify_files" => self.verify_files.set("", value),
            "selection_cache" => self.selection_cache.set("", value),
            "max_files" => self.max_files.set("", value),
            "max_bytes_scanned" => self.max_bytes_scanned.set("", value),
            _ => {
                let known: Vec<String> = self.entries().into_iter().map(|entry| entry.key).collect();
                return config_err!("there is no setting lakepin.{key}; there are {}", known.join(", "));
            }
        };
        set.map_err(|error| {
            let message = error.message().into_owned();
            let first = message.lines().next().unwrap_or_default();
            config_datafusion_err!("lakepin.{key} = '{value}': {first}")
        })
    }

    fn entries(&self) -> Vec<ConfigEntry> {
        let entry = |name: &str, value: String, description: &'static str| ConfigEntry {
            key: format!("{}.{name}", Self::PREFIX),
            value: Some(value),
            description,
        };
        vec![
            entry("merge_source", self.merge_source.to_string(), "Parquet files that need no combining by DataFusion"),
            entry("part_rows", self.part_rows.to_string(), "Fewest rows of a part of a merged bucket; 0: whole"),
            entry("verify_files", self.verify_files.to_string(), "Check every data file to be read while planning"),
            entry("selection_cache", self.selection_cache.to_string(), "Remember the live rows of merged buckets"),
            entry("max_files", self.max_files.to_string(), "Data files a statement may read; 0: no limit"),
            entry("max_bytes_scanned", self.max_bytes_scanned.to_string(), "Bytes a statement may read; 0: no limit"),
        ]
    }
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
