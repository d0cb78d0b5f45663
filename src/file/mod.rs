//! One data file: opening Parquet, ORC and Avro with the columns of the table's schema.
