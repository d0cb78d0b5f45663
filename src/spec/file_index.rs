//! File indexes: whether a file can hold a value.
