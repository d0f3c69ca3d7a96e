//! Measurements of the core of opticoll: `cargo bench --package opticoll-bench`.
