//! Settings of a session, `SET lakepin.… = …`.

use datafusion::common::config::{ConfigExtension, ConfigOptions, ExtensionOptions};
use datafusion::common::extensions_options;

extensions_options! {
    /// Settings under the prefix `lakepin`.
    pub struct LakepinOptions {
        /// Whether Parquet files whose rows need no combining go through DataFusion's own Parquet source.
        pub merge_source: bool, default = true

        /// Whether planning checks that every data file it will read exists with the size its manifest entry says.
        pub verify_files: bool, default = false
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
