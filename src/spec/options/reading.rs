//! The options that a reference, a hint or a session may give, and what each of them is.

/// What an option of a read does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    /// Chooses a snapshot or a range; at most one of them may be given.
    Chooses,
    /// Says how the choosing options are meant.
    Mode,
    /// Changes how the chosen state is read.
    Reads,
}

const OPTIONS: &[(&str, Role)] = &[
    ("scan.mode", Role::Mode),
    ("scan.snapshot-id", Role::Chooses),
    ("scan.tag-name", Role::Chooses),
    ("scan.timestamp-millis", Role::Chooses),
    ("scan.timestamp", Role::Chooses),
    ("scan.watermark", Role::Chooses),
    ("scan.version", Role::Chooses),
    ("scan.file-creation-time-millis", Role::Chooses),
    ("scan.creation-time-millis", Role::Chooses),
    ("scan.bucket", Role::Reads),
    ("scan.fallback-branch", Role::Reads),
    ("scan.primary-branch", Role::Reads),
    ("incremental-between", Role::Chooses),
    ("incremental-between-timestamp", Role::Chooses),
    ("incremental-between-scan-mode", Role::Reads),
    ("incremental-between-tag-to-snapshot", Role::Reads),
    ("incremental-to-auto-tag", Role::Chooses),
    ("file-index.read.enabled", Role::Reads),
    ("deletion-vectors.merge-on-read", Role::Reads),
    ("table-read.sequence-number.enabled", Role::Reads),
];

fn role_of(key: &str) -> Option<Role> {
    OPTIONS.iter().find(|(known, _)| *known == key).map(|(_, role)| *role)
}

/// All of them, in the order of the reference's documentation.
pub(crate) fn reading_options() -> impl Iterator<Item = &'static str> + Clone {
    OPTIONS.iter().map(|(key, _)| *key)
}

/// Whether a reference may give the option.
pub(crate) fn is_reading_option(key: &str) -> bool {
    role_of(key).is_some()
}

/// Those that choose a snapshot or a range.
pub(crate) fn choosing_options() -> impl Iterator<Item = &'static str> {
    OPTIONS.iter().filter(|(_, role)| *role == Role::Chooses).map(|(key, _)| *key)
}

/// Whether the option itself says which state or range is read.
pub(crate) fn chooses(key: &str) -> bool {
    matches!(role_of(key), Some(Role::Chooses | Role::Mode))
}

/// Whether the option, or an older name of one, says where in a table's time a read starts.
pub(crate) fn is_position(key: &str) -> bool {
    chooses(key) || matches!(key, "log.scan" | "log.scan.timestamp-millis")
}
