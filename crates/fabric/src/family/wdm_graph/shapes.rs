//! Records of families whose links form a certain shape, such as a line or a torus.

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

/// Record of the optical torus.
pub const TORUS: FamilyRecord = FamilyRecord {
    name: "wdm_torus",
    summary: "Torus of any dimensions whose links are fibres with wavelengths",
    citation: CITATION,
    example: "wdm_torus:dims=4x4,wavelengths=8",
    options: || options::list(&TORUS, declared),
    build: |spec| options::read(spec, &TORUS, declared).map(Fabric::new),
    presets: &[],
};

/// Record of the optical mesh.
pub const MESH: FamilyRecord = FamilyRecord {
    name: "wdm_mesh",
    summary: "Mesh of any dimensions whose links are fibres with wavelengths",
    citation: CITATION,
    example: "wdm_mesh:dims=4x4,wavelengths=8",
    options: || options::list(&MESH, declared),
    build: |spec| options::read(spec, &MESH, declared).map(Fabric::new),
    presets: &[],
};

/// Record of the optical ladder.
pub const LADDER: FamilyRecord = FamilyRecord {
    name: "wdm_ladder",
    summary: "Two rows of ranks with a fibre between opposite ranks, and wavelengths on each fibre",
    citation: "Matsuoka et al., MPI Collective Communication over OBS Grid: 2 x 5 nodes with ten \
        hosts each",
    example: "wdm_ladder:rungs=5,wavelengths=8",
    options: || options::list(&LADDER, declared),
    build: |spec| options::read(spec, &LADDER, declared).map(Fabric::new),
    presets: &[],
};
