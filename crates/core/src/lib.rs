//! opticoll plans, proves and simulates collective communication on optical interconnects.
//!
//! Work flows from top to bottom through these modules, and imports only point upwards:
//! [`units`], [`network`] and [`fabric`] (the machine), [`collective`], [`schedule`] (what moves), [`algorithm`] (named ways to
//! make one), [`plan`] (how it moves), [`bound`] (what cannot be beaten),
//! [`verify`], [`simulate`].
#![forbid(unsafe_code)]

pub mod drawing;
#[doc(inline)]
pub use opticoll_base::{event, graph, hash, interrupt, memory, names, ports, spec, units};

pub mod network;

pub mod fabric;

pub mod chakra;

pub mod collective;

pub mod schedule;

pub mod algorithm;

pub mod place;
pub mod plan;

pub mod program;

pub mod bound;

pub mod family;

pub mod families;

pub mod verify;

pub mod table;

pub mod outcome;

pub mod simulate;
