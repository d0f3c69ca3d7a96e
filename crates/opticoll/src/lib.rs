#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub use opticoll_algorithms as algorithms;
pub use opticoll_base::{event, graph, hash, interrupt, memory, names, ports, spec, units};
pub use opticoll_bounds as bounds;
pub use opticoll_fabric::{bill, components, drawing, fabric, families, family, library, network};
pub use opticoll_placement as placement;
pub use opticoll_plan::{collective, plan, schedule};
pub use opticoll_planner as planner;
pub use opticoll_program::{chakra, program};
pub use opticoll_simulate as simulate;
pub use opticoll_verify as verify;
pub use opticoll_workload as workload;
