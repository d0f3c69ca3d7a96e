//! Lightpaths that are set up when they are needed: the grid over an optical burst-switched network.

pub mod placement;
