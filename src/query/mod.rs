//! How DataFusion sees a table: catalog, provider, filters, statistics, plan nodes, codec.
