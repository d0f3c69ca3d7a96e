#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod bill;
pub mod components;
pub mod drawing;
pub mod fabric;
pub mod families;
pub mod family;
pub mod library;
pub mod network;
