//! Names to tables: databases and tables of a warehouse.
