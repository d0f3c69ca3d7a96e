//! opticoll plans, proves and simulates collective communication on optical interconnects.
//!
//! Work flows from top to bottom through these modules, and imports only point upwards:
//! [`units`], [`network`] and [`fabric`] (the machine), [`collective`], [`schedule`] (what moves), [`algorithm`] (named ways to
//! make one), [`plan`] (how it moves), [`bound`] (what cannot be beaten),
//! [`verify`], [`simulate`].
#![forbid(unsafe_code)]

mod names;

pub mod drawing;
pub mod event;
pub mod graph;
pub mod hash;
pub mod interrupt;
pub mod memory;
pub mod ports;
pub mod spec;
pub mod units;

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

pub mod planner;

pub mod workload;
