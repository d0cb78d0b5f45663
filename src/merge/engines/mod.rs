//! One file for each merge engine.
