#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub use opticoll_core::*;
pub use opticoll_planner as planner;
pub use opticoll_workload as workload;
