//! What a statement may read: asked of its plan before any data file is opened.

use datafusion::common::config::ConfigOptions;

use crate::error::{Error, Result};
use crate::query::{LakepinOptions, Work};

/// Refuses work that is more than the session allows.
///
/// # Errors
/// `TooManyFiles`, `TooManyBytes`.
pub(crate) fn check(work: &Work, config: &ConfigOptions) -> Result<()> {
    let LakepinOptions { max_files, max_bytes_scanned, .. } = LakepinOptions::of(config);
    let refused = |found: u64, unit: &str, limit: usize, option: &str, code: &'static str| {
        if limit == 0 || found <= limit as u64 {
            return Ok(());
        }
        Err(Error::exhausted(format!("the statement would read {found} {unit}, more than the {limit} it may; nothing was read"))
            .with_code(code)
            .with_hint(format!(
                "filter by partition or key (EXPLAIN FILES shows what is left out and why), or allow more: SET lakepin.{option} = {found}"
            )))
    };
    refused(work.files, "data files", max_files, "max_files", "TooManyFiles")?;
    refused(work.file_bytes, "bytes of data files", max_bytes_scanned, "max_bytes_scanned", "TooManyBytes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_hold_at_the_number_and_zero_is_none() {
        let work = Work { files: 10, file_bytes: 1000, ..Work::default() };
        for (files, bytes, code) in
            [(0, 0, None), (10, 1000, None), (9, 0, Some("TooManyFiles")), (0, 999, Some("TooManyBytes"))]
        {
            let mut config = ConfigOptions::default();
            let options = LakepinOptions { max_files: files, max_bytes_scanned: bytes, ..LakepinOptions::default() };
            config.extensions.insert(options);
            assert_eq!(check(&work, &config).err().map(|e| e.code()), code, "{files} {bytes}");
        }
    }
}
