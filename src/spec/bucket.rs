//! Bucket functions: which bucket a key lies in.
