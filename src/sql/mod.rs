//! What can be said: the session, time travel, statements, system tables, table functions.
