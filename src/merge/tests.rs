//! The merge against a naive model and against rows worked out by hand.
