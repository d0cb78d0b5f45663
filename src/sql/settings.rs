//! What a session remembers beside DataFusion's own settings: pins and scan options.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use indexmap::IndexMap;
use parking_lot::{Mutex, RwLock};

use datafusion::catalog::TableProvider;

use super::functions::check_range_option;
use super::names::split_parts;
use super::prepared::PreparedStatements;
use super::result::SessionChoice;
use super::selector::drop_choices;
use crate::error::{Error, Result};
use crate::recon::journal::Journal;
use crate::snapshot::nearest::known_names;
use crate::snapshot::{Fingerprint, Pin, SessionZone, TableIdent, parse_timestamp};
use crate::spec::CoreOptions;
use crate::spec::options::{chooses, is_reading_option, reading_options};

/// Options that are part of what a table is, or say that it must not be read: no hint may change them.
const FIXED: &[&str] = &[
    "merge-engine",
    "sequence.field",
    "sequence.field.sort-order",
    "sequence.snapshot-ordering",
    "bucket",
    "bucket-key",
    "bucket-function.type",
    "partition",
    "partition.default-name",
    "partition.legacy-name",
    "primary-key",
    "primary-key.nullable",
    "changelog-producer",
    "force-lookup",
    "deletion-vectors.enabled",
    "ignore-delete",
    "deduplicate.ignore-delete",
    "partial-update.ignore-delete",
    "first-row.ignore-delete",
    "partial-update.remove-record-on-delete",
    "partial-update.remove-record-on-sequence-group",
    "aggregation.remove-record-on-delete",
    "num-levels",
    "num-sorted-run.compaction-trigger",
    "full-compaction.delta-commits",
    "row-tracking.enabled",
    "data-evolution.enabled",
    "data-file.path-directory",
    "index-file-in-data-file-dir",
    "pk-clustering-override",
    "chain-table.enabled",
    "scan.fallback-snapshot-branch",
    "scan.fallback-delta-branch",
    "batch-scan-mode",
    "stream-scan-mode",
    "key-value.sequence_number.enabled",
    "query-auth.enabled",
    "postpone.merge-on-read",
    "blob-field",
    "blob-descriptor-field",
    "blob-view-field",
    "vector-field",
    "vector.file.format",
    "type",
    "path",
];

/// Old names of scan options, as Paimon still reads them.
const OLD_NAMES: &[(&str, &str)] = &[("log.scan", "scan.mode"), ("log.scan.timestamp-millis", "scan.timestamp-millis")];

/// Options of other engines that look like ours: streaming, parallelism. None is a typing error.
const OTHERS: &[&str] =
    &["scan.bounded.watermark", "scan.watermark.", "scan.plan-", "scan.split-enumerator.", "scan.ignore-"];

/// The option a key means that is written in other letters (`SCAN.MODE`, `scan_mode`), without its first word
/// (`snapshot-id`) or behind words of an engine (`spark.paimon.scan.mode`).
fn meant(key: &str) -> Option<&'static str> {
    let plain = key.trim().to_lowercase().replace('_', "-");
    let old = OLD_NAMES.iter().map(|(old, _)| *old);
    reading_options().chain(old).chain(["branch"]).find(|known| {
        let scan = known.strip_prefix("scan.").or(known.strip_prefix("log.scan."));
        plain == *known
            || scan.is_some_and(|rest| plain == rest)
            || (known.contains('.') || known.starts_with("incremental")) && plain.ends_with(&format!(".{known}"))
    })
}

/// Checks the options of one reference: what is fixed by the table cannot be changed, and a name that is nearly one we
/// honour is a typing error, never dropped.
pub(crate) fn check_reference_options(options: &BTreeMap<String, String>) -> Result<()> {
    for key in options.keys() {
        if FIXED.contains(&key.as_str()) || key.starts_with("fields.") {
            return Err(Error::invalid(format!("option {key} is fixed by the table and cannot be given in a query"))
                .with_code("FixedOption")
                .with_context("option", key)
                .with_hint(match key.as_str() {
                    "batch-scan-mode" => {
                        "leave it out: 'deletion-vectors.merge-on-read'='true' reads what a table with deletion vectors \
                         has not compacted yet, paimon_delta(table, from, to) the rows that commits added to any table"
                    }
                    _ => "leave it out: it says how the table was written, and is set on the table alone",
                }));
        }
        if is_honoured(key) {
            continue;
        }
        let typed = (key.starts_with("scan.") || key.starts_with("incremental"))
            && !OTHERS.iter().any(|other| key.starts_with(other));
        let near = || crate::snapshot::nearest::nearest(key, reading_options()).first().copied();
        if let Some(near) = meant(key).or_else(|| near().filter(|_| typed)) {
            return Err(Error::invalid(format!("'{key}' is no scan option"))
                .with_code("UnknownOption")
                .with_context("option", key)
                .with_hint(format!("did you mean '{near}'?")));
        }
    }
    Ok(())
}

/// Gives scan options under an old name their own; a value under that one wins.
pub(crate) fn rename_old(options: &mut BTreeMap<String, String>) {
    for (old, own) in OLD_NAMES {
        if let Some(value) = options.remove(*old) {
            options.entry((*own).to_string()).or_insert(value);
        }
    }
}

/// Whether an option of a reference changes what is read. All others stay out of the read.
pub(crate) fn is_honoured(key: &str) -> bool {
    is_reading_option(key) || key == "branch"
}

/// A pin the session holds until it is told otherwise.
#[derive(Debug, Clone)]
pub(crate) struct SessionPin {
    /// The pin.
    pub(crate) pin: Arc<Pin>,
    /// What it was asked as.
    pub(crate) said: String,
    /// Options it was pinned with that choose no snapshot.
    pub(crate) options: BTreeMap<String, String>,
}

/// What a session chose to read: its pins and scan options.
#[derive(Debug, Default)]
pub struct Chosen {
    pins: IndexMap<TableIdent, SessionPin>,
    options: BTreeMap<String, String>,
    table_options: BTreeMap<(String, String), BTreeMap<String, String>>,
}

/// Settings of one session, shared by its statements.
#[derive(Debug, Default)]
pub(crate) struct Settings {
    /// Pins, in the order they were made.
    pub(crate) pins: RwLock<IndexMap<TableIdent, SessionPin>>,
    /// `SET 'paimon.scan.…'`: for every table.
    options: RwLock<BTreeMap<String, String>>,
    /// `SET 'paimon.db.t.scan.…'`.
    table_options: RwLock<BTreeMap<(String, String), BTreeMap<String, String>>>,
    /// Views and tables that live in the session only: database and name.
    locals: Mutex<BTreeMap<(String, String), Arc<dyn TableProvider>>>,
    /// Values for `$name`.
    pub(crate) parameters: RwLock<BTreeMap<String, String>>,
    /// Statements that `EXECUTE` runs.
    pub(super) prepared: PreparedStatements,
    /// Where it is kept what statements read.
    pub(crate) journal: RwLock<Option<Arc<Journal>>>,
    /// Why the last entry could not be kept, until it is told.
    pub(super) journal_failed: Mutex<Option<Error>>,
    /// Whether it was told since an entry could last be kept: every statement would say the same.
    pub(super) journal_told: AtomicBool,
}

impl Settings {
    /// What the session pins of a table: of this branch, or of all its branches.
    pub(crate) fn pinned(&self, table: &TableIdent, all_branches: bool) -> Vec<Fingerprint> {
        let same = |other: &TableIdent| {
            (&other.database, &other.table) == (&table.database, &table.table)
                && (all_branches || other.branch == table.branch)
        };
        self.pins.read().iter().filter(|(ident, _)| same(ident)).map(|(_, held)| held.pin.fingerprint.clone()).collect()
    }

    /// Options for one table: those of every table, then its own.
    pub(crate) fn options_for(&self, database: &str, table: &str) -> BTreeMap<String, String> {
        let mut options = self.options.read().clone();
        if let Some(own) = self.table_options.read().get(&(database.to_string(), table.to_string())) {
            // what chooses for this table, a mode too, replaces what chooses for all
            if own.keys().any(|key| chooses(key)) {
                drop_choices(&mut options);
            }
            options.extend(own.clone());
        }
        options
    }

    /// Sets (or with None removes) an option.
    pub(crate) fn set_option(&self, name: OptionName, value: Option<&str>) {
        let OptionName { table, option } = name;
        let put = |options: &mut BTreeMap<String, String>| match value {
            Some(value) => {
                options.insert(option.clone(), value.to_string());
            }
            None => {
                options.remove(&option);
            }
        };
        match table {
            None => put(&mut self.options.write()),
            Some(table) => {
                let mut all = self.table_options.write();
                put(all.entry(table).or_default());
                all.retain(|_, options| !options.is_empty());
            }
        }
    }

    /// Options that choose a snapshot, those for every table first.
    pub(crate) fn choices(&self) -> Vec<SessionChoice> {
        let chosen = |options: &BTreeMap<String, String>, table: Option<String>| -> Vec<SessionChoice> {
            let choosing = options.iter().filter(|(option, _)| chooses(option));
            let choice = |(option, value): (&String, &String)| SessionChoice {
                table: table.clone(),
                option: option.clone(),
                value: value.clone(),
            };
            choosing.map(choice).collect()
        };
        let mut all = chosen(&self.options.read(), None);
        for ((database, table), options) in self.table_options.read().iter() {
            all.extend(chosen(options, Some(format!("{}.{}", quoted_part(database), quoted_part(table)))));
        }
        all
    }

    /// Puts pins and scan options in the place of those there are, which it returns.
    pub(crate) fn exchange(&self, chosen: Chosen) -> Chosen {
        Chosen {
            pins: std::mem::replace(&mut self.pins.write(), chosen.pins),
            options: std::mem::replace(&mut self.options.write(), chosen.options),
            table_options: std::mem::replace(&mut self.table_options.write(), chosen.table_options),
        }
    }

    /// Forgets all scan options.
    pub(crate) fn reset_options(&self) {
        self.options.write().clear();
        self.table_options.write().clear();
    }

    /// The value of an option.
    pub(crate) fn option(&self, name: &OptionName) -> Option<String> {
        match &name.table {
            None => self.options.read().get(&name.option).cloned(),
            Some(table) => self.table_options.read().get(table).and_then(|o| o.get(&name.option)).cloned(),
        }
    }

    /// A view or table of this session.
    pub(crate) fn local(&self, database: &str, name: &str) -> Option<Arc<dyn TableProvider>> {
        self.locals.lock().get(&(database.to_string(), name.to_string())).map(Arc::clone)
    }

    /// Adds one; the one replaced is returned.
    pub(crate) fn put_local(
        &self,
        database: &str,
        name: &str,
        provider: Arc<dyn TableProvider>,
    ) -> Option<Arc<dyn TableProvider>> {
        self.locals.lock().insert((database.to_string(), name.to_string()), provider)
    }

    /// Removes one.
    pub(crate) fn remove_local(&self, database: &str, name: &str) -> Option<Arc<dyn TableProvider>> {
        self.locals.lock().remove(&(database.to_string(), name.to_string()))
    }

    /// Names of this session's own views and tables in a database.
    pub(crate) fn local_names(&self, database: &str) -> Vec<String> {
        self.locals.lock().keys().filter(|(d, _)| d == database).map(|(_, name)| name.clone()).collect()
    }
}

/// A part of an option's name: quoted when it holds what parts it from the next.
fn quoted_part(name: &str) -> String {
    if name.contains(['.', '"']) { format!("\"{}\"", name.replace('"', "\"\"")) } else { name.to_string() }
}

/// `paimon.[db.table.]option`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OptionName {
    /// Database and table; None: every table.
    pub(crate) table: Option<(String, String)>,
    option: String,
}

impl OptionName {
    pub(crate) fn parse(name: &str) -> Result<Self> {
        let unknown = |option: &str| {
            Error::invalid(format!("'{name}' is no scan option"))
                .with_code("UnknownOption")
                .with_context("option", option)
                .with_hint(known_names("options", option, reading_options()))
        };
        let rest = name.strip_prefix("paimon.").ok_or_else(|| unknown(name))?;
        if is_reading_option(rest) {
            return Ok(Self { table: None, option: rest.to_string() });
        }
        // the longest known option at the end; what stands before names the table
        let option = reading_options()
            .filter(|option| rest.strip_suffix(*option).is_some_and(|before| before.ends_with('.')))
            .max_by_key(|option| option.len())
            .ok_or_else(|| unknown(rest))?;
        let before = rest.strip_suffix(option).unwrap_or_default().trim_end_matches('.');
        let parts = split_parts(before);
        // a catalog in front is allowed
        let (database, table) = match parts.as_slice() {
            [database, table] | [_, database, table] => (database.clone(), table.clone()),
            _ => {
                return Err(unknown(rest).with_hint(format!(
                    "write paimon.{option} or paimon.DATABASE.TABLE.{option}; a name with points in it stands in quotes: \
                     paimon.DATABASE.\"a.b\".{option}"
                )));
            }
        };
        Ok(Self { table: Some((database, table)), option: option.to_string() })
    }

    /// Checks a value before it is set: one that can never be used would fail every later statement.
    pub(crate) fn check(&self, value: &str, zone: &SessionZone) -> Result<()> {
        let option = self.option.as_str();
        CoreOptions::parse(&BTreeMap::from([(option.to_string(), value.to_string())]))?;
        if option == "scan.timestamp" {
            parse_timestamp(value, zone).map_err(|e| e.with_context("option", option))?;
        }
        check_range_option(option, value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_is_for_all_tables_or_for_one() {
        let settings = Settings::default();
        let name = |text: &str| OptionName::parse(text).unwrap();
        settings.set_option(name("paimon.scan.snapshot-id"), Some("3"));
        settings.set_option(name("paimon.pay.orders.scan.tag-name"), Some("eod"));
        assert_eq!(settings.options_for("pay", "x").get("scan.snapshot-id").map(String::as_str), Some("3"));
        let own = settings.options_for("pay", "orders");
        assert_eq!(own.get("scan.tag-name").map(String::as_str), Some("eod"));
        assert!(!own.contains_key("scan.snapshot-id"));
        settings.set_option(name("paimon.pay.latest.scan.mode"), Some("latest"));
        let mode = settings.options_for("pay", "latest");
        assert_eq!(mode.into_iter().collect::<Vec<_>>(), [("scan.mode".to_string(), "latest".to_string())]);
        settings.set_option(name("paimon.pay.\"a.b\".scan.tag-name"), Some("eod"));
        settings.set_option(name("paimon.pay.\"a.b\".file-index.read.enabled"), Some("false"));
        let choices: Vec<String> = settings.choices().iter().map(SessionChoice::name).collect();
        assert_eq!(
            choices,
            [
                "paimon.scan.snapshot-id",
                "paimon.pay.\"a.b\".scan.tag-name",
                "paimon.pay.latest.scan.mode",
                "paimon.pay.orders.scan.tag-name"
            ]
        );
        settings.set_option(name("paimon.pay.\"a.b\".scan.tag-name"), None);
        settings.set_option(name("paimon.scan.snapshot-id"), None);
        assert!(settings.options_for("pay", "x").is_empty());
        assert_eq!(settings.option(&name("paimon.pay.orders.scan.tag-name")).as_deref(), Some("eod"));
    }

    #[test]
    fn a_hint_cannot_change_the_table_and_is_not_misspelt() {
        let code = |key: &str| {
            let options = BTreeMap::from([(key.to_string(), "x".to_string())]);
            check_reference_options(&options).err().map(|e| e.code())
        };
        assert_eq!(code("merge-engine"), Some("FixedOption"));
        assert_eq!(code("fields.a.aggregate-function"), Some("FixedOption"));
        assert_eq!(code("scan.fallback-delta-branch"), Some("FixedOption"));
        assert_eq!(code("scan.snapshotid"), Some("UnknownOption"));
        assert_eq!(code("scan.snapshot-id"), None);
        assert_eq!(code("deletion-vectors.merge-on-read"), None, "what a reader may choose");
        assert_eq!(code("sink.parallelism"), None);
        assert_eq!(code("scan.bounded.watermark"), None);
        assert_eq!(code("scan.watermark.emit.strategy"), None);
        for key in [
            "SCAN.SNAPSHOT-ID",
            "Scan.Snapshot-Id",
            "scan.snapshot_id",
            "snapshot-id",
            "scan.snapshot-id ",
            "paimon.scan.snapshot-id",
            "spark.paimon.scan.mode",
            "Incremental-Between",
            "incremental_between",
            "LOG.SCAN",
            "Branch",
            "tag_name",
        ] {
            assert_eq!(code(key), Some("UnknownOption"), "{key}");
        }
        for key in ["read.batch-size", "parquet.compression", "file.format", "scan.plan-sort-partition"] {
            assert_eq!(code(key), None, "{key}");
        }
    }

    #[test]
    fn a_table_with_points_in_its_name_is_quoted() {
        let name = OptionName::parse("paimon.pay.\"a.b\".scan.snapshot-id").unwrap();
        assert_eq!(name.table, Some(("pay".to_string(), "a.b".to_string())));
        let unquoted = OptionName::parse("paimon.c.pay.a.b.scan.snapshot-id").unwrap_err();
        assert!(unquoted.to_string().contains("in quotes"), "{unquoted}");
    }

    #[test]
    fn a_value_that_can_never_be_used_is_not_set() {
        let zone = SessionZone::utc();
        let check =
            |option: &str, value: &str| OptionName::parse(&format!("paimon.{option}")).unwrap().check(value, &zone);
        for (option, value) in [
            ("scan.snapshot-id", "abc"),
            ("scan.mode", "nonsense"),
            ("scan.timestamp", "yesterday"),
            ("scan.timestamp-millis", "1.5"),
            ("scan.watermark", "x"),
            ("scan.bucket", "x"),
            ("scan.creation-time-millis", "x"),
            ("incremental-between", "1"),
            ("incremental-between-timestamp", "1"),
            ("incremental-between-scan-mode", "x"),
            ("incremental-between-tag-to-snapshot", "x"),
            ("file-index.read.enabled", "x"),
            ("table-read.sequence-number.enabled", "x"),
        ] {
            let error = check(option, value).unwrap_err();
            assert!(error.to_string().contains(option), "{option}: {error}");
        }
        for (option, value) in [
            ("scan.snapshot-id", "3"),
            ("scan.mode", "from-snapshot"),
            ("scan.timestamp", "2026-04-16 10:00:00"),
            ("incremental-between", "1,eod"),
            ("incremental-between-scan-mode", "Diff"),
            ("file-index.read.enabled", "FALSE"),
            ("scan.fallback-branch", "b"),
        ] {
            check(option, value).unwrap();
        }
    }

    #[test]
    fn an_unknown_option_names_the_nearest() {
        let error = OptionName::parse("paimon.scan.snapshotid").unwrap_err();
        assert_eq!(error.code(), "UnknownOption");
        assert!(error.to_string().contains("scan.snapshot-id"), "{error}");
        assert!(OptionName::parse("paimon.t.scan.mode").is_err());
    }
}
