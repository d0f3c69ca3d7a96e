//! The bandwidth that a rank can inject, against a count by hand of what leaves a rank.

use opticoll::fabric::Fabric;

const GIGA: u128 = 1_000_000_000;

/// Spellings with the transmitters of a rank times their rate, counted by hand.
const COUNTED: &[(&str, u128)] = &[
    // Two directions, two fibres each, four wavelengths on a fibre.
    (
        "wdm_ring:ranks=8,wavelengths=4,fibres=2,rate=40Gb/s",
        2 * 2 * 4 * 40,
    ),
    ("wdm_ring:ranks=8,wavelengths=4,rate=40Gb/s,ports=3", 3 * 40),
    (
        "wdm_ring:ranks=8,wavelengths=4,rate=40Gb/s,dead=1",
        2 * 3 * 40,
    ),
    // Rank 3 lacks the way to 4, or rank 4 the way to 3; with both, each has one way left.
    (
        "wdm_ring:ranks=8,wavelengths=4,rate=40Gb/s,broken=3-4cw",
        4 * 40,
    ),
    (
        "wdm_ring:ranks=8,wavelengths=4,rate=40Gb/s,broken=3-4",
        4 * 40,
    ),
    ("wss_grid:rows=4,columns=4,rate=100Gb/s", 2 * 100),
    ("wss_grid:rows=1,columns=4,rate=100Gb/s", 100),
    (
        "wss_grid:rows=4,columns=4,rate=100Gb/s,dead_transceivers=5.row",
        100,
    ),
    ("light_path_grid:ranks=16,ports=3,rate=10Gb/s", 3 * 10),
    ("crossbar:ranks=8,rate=100Gb/s", 100),
    ("crossbar:ranks=8,rate=100Gb/s,duplex=half", 100),
    ("fat_tree:down=4x4,up=1x2,rate=100Gb/s", 100),
    (
        "dragonfly:terminals_per_router=2,routers_per_group=4,global_per_router=2,rate=40Gb/s",
        40,
    ),
    ("fully_connected:ranks=5,rate=10Gb/s", 4 * 10),
    ("torus:dims=4x4,rate=10Gb/s", 4 * 10),
    // The corner of a mesh has two neighbours.
    ("mesh:dims=4x4,rate=10Gb/s", 2 * 10),
    ("electrical_ring:ranks=6,rate=10Gb/s", 2 * 10),
    // The slowest rank counts.
    (
        "custom:ranks=3,switches=1,links=0-3@100Gb/s+1-3@1Gb/s+2-3@50Gb/s",
        1,
    ),
];

#[test]
fn a_rank_injects_what_leaves_it() {
    for (spelling, expected) in COUNTED {
        let fabric = Fabric::parse(spelling).unwrap();
        assert_eq!(fabric.injection_bandwidth(), expected * GIGA, "{spelling}");
    }
}
