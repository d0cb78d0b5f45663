//! Statistics files: hints for a planner, never used to drop data.
