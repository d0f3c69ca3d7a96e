//! Records of families whose links form a line, a tree or a hypercube.

use super::{CITATION, declared};
use crate::fabric::options;
use crate::fabric::{Fabric, FamilyRecord};

/// Record of the optical line.
pub const LINE: FamilyRecord = FamilyRecord {
    name: "wdm_line",
    summary: "Ranks in a line whose links are fibres with wavelengths",
    citation: CITATION,
    example: "wdm_line:ranks=16,wavelengths=8",
    options: || options::list(&LINE, declared),
    build: |spec| options::read(spec, &LINE, declared).map(Fabric::new),
    presets: &[],
};

/// Record of the optical tree.
pub const TREE: FamilyRecord = FamilyRecord {
    name: "wdm_tree",
    summary: "Tree with a rank at every vertex whose links are fibres with wavelengths (a star if \
        arity is ranks - 1)",
    citation: CITATION,
    example: "wdm_tree:ranks=15,arity=2,wavelengths=8",
    options: || options::list(&TREE, declared),
    build: |spec| options::read(spec, &TREE, declared).map(Fabric::new),
    presets: &[],
};

/// Record of the optical hypercube.
pub const HYPERCUBE: FamilyRecord = FamilyRecord {
    name: "wdm_hypercube",
    summary: "Hypercube of 2^d ranks whose links are fibres with wavelengths",
    citation: CITATION,
    example: "wdm_hypercube:ranks=16,wavelengths=8",
    options: || options::list(&HYPERCUBE, declared),
    build: |spec| options::read(spec, &HYPERCUBE, declared).map(Fabric::new),
    presets: &[],
};
