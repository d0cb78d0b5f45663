//! One merge engine a file.
