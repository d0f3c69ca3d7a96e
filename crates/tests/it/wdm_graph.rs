//! Graphs of fibres: options, times of lightpaths, and the rules that mutants of plans break.

mod mutants;
mod ring;
mod times;
