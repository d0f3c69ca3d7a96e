//! Families of fabrics, one file or folder each: the type of the machine, its options, its links or
//! its light, and the times of its circuits ([`Circuits`](crate::fabric::Circuits)).

pub mod circuit_switch;
pub mod crossbar;
pub mod custom;
pub mod dragonfly;
#[cfg(test)]
#[expect(unreachable_pub, reason = "written as families of the list are")]
mod example;
pub mod fat_tree;
pub mod fully_connected;
pub mod gpu_servers;
pub mod lightpath_grid;
pub mod message_cost;
pub mod ocs_torus;
pub mod passive_star;
pub mod torus;
pub mod tree;
pub mod wdm_graph;
pub mod wdm_ring;
pub mod wss_grid;
