//! From a path or URL and its options to a store.
