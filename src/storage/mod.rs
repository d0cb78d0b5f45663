//! Object stores: reading, listing, retries, request counters, caches; and the only clock and source of ids.
