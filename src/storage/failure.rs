//! An object store's error in our words.
