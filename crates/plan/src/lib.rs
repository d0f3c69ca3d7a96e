#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod collective;
pub mod plan;
pub mod schedule;
