//! The format of a data file, told by its name: one table may mix formats.

use std::fmt;

use crate::error::{Error, Result};

/// A format that is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FileFormat {
    /// Apache Parquet.
    Parquet,
    /// Apache ORC.
    Orc,
    /// Apache Avro object container file.
    Avro,
}

/// Formats of the specification that are known by name only.
const REFUSED: &[&str] = &["csv", "json", "text", "blob", "row", "lance", "vortex", "mosaic"];

/// Suffixes that name a compression, not a format; text formats put them last.
const COMPRESSIONS: &[&str] =
    &["gz", "gzip", "bz2", "deflate", "snappy", "lz4", "zst", "zstd", "xz", "br", "none", "lzo"];

impl FileFormat {
    /// The format named by the last extension of a file name or path; a compression suffix is stepped over.
    ///
    /// # Errors
    /// A format that is not read, or no extension, is refused with its name.
    pub fn of_file(path: &str) -> Result<Self> {
        let name = path.rsplit('/').next().unwrap_or(path);
        let mut parts = name.rsplit('.');
        let mut extension = parts.next().unwrap_or_default().to_ascii_lowercase();
        if COMPRESSIONS.contains(&extension.as_str())
            && let Some(before) = parts.next()
        {
            extension = before.to_ascii_lowercase();
        }
        // the part before the first dot is the name itself
        if parts.next().is_none() {
            extension.clear();
        }
        match extension.as_str() {
            "parquet" => Ok(Self::Parquet),
            "orc" => Ok(Self::Orc),
            "avro" => Ok(Self::Avro),
            known if REFUSED.contains(&known) || known.starts_with("vector") => {
                Err(Error::unsupported(format!("data files of format '{known}' are not read"))
                    .with_code("UnsupportedFileFormat")
                    .with_context("file", path)
                    .with_hint("Parquet, ORC and Avro are read"))
            }
            "" => Err(Error::unsupported("the data file's name has no extension that tells its format")
                .with_code("UnsupportedFileFormat")
                .with_context("file", path)
                .with_hint("Parquet, ORC and Avro are read")),
            other => Err(Error::unsupported(format!("unknown data file format '{other}'"))
                .with_code("UnsupportedFileFormat")
                .with_context("file", path)
                .with_hint("Parquet, ORC and Avro are read")),
        }
    }

    /// Whether a file of this format can begin with these bytes (four are enough).
    pub fn matches_magic(self, first: &[u8]) -> bool {
        first.starts_with(match self {
            Self::Parquet => b"PAR1".as_slice(),
            Self::Orc => b"ORC".as_slice(),
            Self::Avro => b"Obj\x01".as_slice(),
        })
    }

    /// `parquet`, `orc` or `avro`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Parquet => "parquet",
            Self::Orc => "orc",
            Self::Avro => "avro",
        }
    }
}

impl fmt::Display for FileFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn format_comes_from_the_last_extension() {
        for (name, format) in [
            ("a/b.c/data-1-0.parquet", FileFormat::Parquet),
            ("data-1-0.zstd.parquet", FileFormat::Parquet),
            ("data-1-0.ORC", FileFormat::Orc),
            ("data--u-x-s-0-w-1-0.avro", FileFormat::Avro),
            ("data-1-0.avro.gz", FileFormat::Avro),
        ] {
            assert_eq!(FileFormat::of_file(name).unwrap(), format, "{name}");
        }
    }

    #[test]
    fn other_formats_are_refused_by_name() {
        for (name, told) in [
            ("data-1.json.gz", "'json'"),
            ("data-1.blob", "'blob'"),
            ("data-1.lance", "'lance'"),
            ("data-1.xyz", "'xyz'"),
            ("a.parquet/data-1", "no extension"),
            ("data-1.gz", "no extension"),
        ] {
            let error = FileFormat::of_file(name).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unsupported);
            assert_eq!(error.code(), "UnsupportedFileFormat");
            assert!(error.message().contains(told), "{name}: {error}");
        }
    }
}
