#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod decibels;
pub mod event;
pub mod graph;
pub mod hash;
pub mod interrupt;
pub mod memory;
pub mod names;
pub mod ports;
pub mod spec;
pub mod units;
