//! Paimon types as Arrow types, and datums as arrays.
