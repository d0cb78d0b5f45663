//! Sections to batches: files opened, deleted rows masked, versions of a key selected or combined.
//!
//! [`section`] reads a whole section, [`file()`] one file of a section whose rows are not combined, so that the files of
//! one bucket can be read on every core. Neither knows a file format (room `file`) or a merge engine (room `merge`).
//!
//! | file | one idea |
//! |---|---|
//! | `context` | what a read needs: pin, columns, memory, caches; what it counted |
//! | `section` | a section to rows, by its class |
//! | `merged` | a section, or a part of one, to rows out of a merge of its runs |
//! | `parts` | where to cut a section that is merged, so that it uses every core |
//! | `data_file` | one data file to rows: which columns are read, which are made |
//! | `selection` | the live rows of a section, computed once for all who ask |
//! | `kept` | what a selection is about, so that the next statement finds it |
//! | `streamed` | the same, where the keys do not fit into memory |
//! | `deletion` | the deletion vector of a file; how many rows of a file are believed without asking it |
//! | `flight`, `prefetch` | one computation for many; decoding ahead |
//! | `stretch` | large files in stretches of rows, decoded on several cores |
//! | `wanted` | the rows of a file that hold the keys a query wants |
//! | `versions` | the rows of a key in one file, as they lie there |
//! | `held`, `pace` | memory and tasks that go with their owner; what a merge tries when memory is short |
//!
//! A file that is gone is never fewer rows: the pin is looked at again, and the read fails as expired or as damaged.

mod context;
mod data_file;
mod deletion;
pub mod flight;
mod held;
mod kept;
mod merged;
mod pace;
mod parts;
pub mod prefetch;
mod section;
mod selection;
mod streamed;
mod stretch;
mod versions;
mod wanted;

pub use context::{
    FOOTER_CACHE_BYTES, INDEX_FILE_CACHE_BYTES, ReadCaches, ReadColumn, ReadContext, ReadCounters, ReadOptions,
    SELECTION_CACHE_BYTES, SectionHandle, check_rules,
};
pub use deletion::live_rows;
pub use held::Held;
pub use merged::part;
pub use parts::SectionPart;
pub use section::{file, is_merged, is_told, live_mask, section};
pub use selection::{recall, selection};
pub use versions::{FoundRows, KeyMatch, versions};
