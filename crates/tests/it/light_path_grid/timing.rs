//! Simulated times against the paper's formulas with their sums and roundings corrected, in integer
//! picoseconds, for every number of ranks from 2 to 64 and 1 to 6 ports.

use opticoll::collective::CollectiveKind;
use opticoll::fabric::{Fabric, Light};
use opticoll::family::light_path_grid::LightPathGrid;
use opticoll::plan::Relay;
use opticoll::simulate;
use opticoll::simulate::{Method, SimulationError};
use opticoll::units::Bytes;
use opticoll::verify::verify;

use super::{planned, proved};
use crate::port_formulas::{G, formula};

const CASES: [(CollectiveKind, &str); 10] = [
    (CollectiveKind::Broadcast, "linear"),
    (CollectiveKind::Scatter, "linear"),
    (CollectiveKind::Gather, "linear"),
    (CollectiveKind::Reduce, "linear"),
    (CollectiveKind::AllGather, "ring"),
    (CollectiveKind::AllGather, "recursive_doubling"),
    (CollectiveKind::AllReduce, "recursive_doubling"),
    (CollectiveKind::Barrier, "recursive_doubling"),
    (CollectiveKind::Broadcast, "binomial"),
    (CollectiveKind::Reduce, "binomial"),
];

#[test]
fn simulated_times_are_the_formulas() {
    let size = 1_000;
    for p in 2..=64 {
        for k in 1..=6 {
            let fabric = format!("light_path_grid:ranks={p},ports={k}");
            for (kind, algorithm) in CASES {
                let case = format!("{kind} by {algorithm}, {p} ranks, {k} ports");
                let plan = proved(kind, algorithm, &fabric);
                let n = match kind {
                    CollectiveKind::AllGather => p * size,
                    _ => size,
                };
                let (sending, set_ups) = formula(kind, algorithm, p, k, n);
                let run = |settings: &[(&str, &str)]| {
                    let method = Method::from_settings(settings.iter().copied()).unwrap();
                    simulate::run(&plan, Bytes::new(size), &method)
                };
                let found = run(&[]).unwrap();
                assert_eq!(found.time.ps(), sending + set_ups * G, "{case}");
                assert_eq!(found.reconfigurations, set_ups, "{case}");
                let ideal = run(&[("policy", "free")]).unwrap();
                assert_eq!(ideal.time.ps(), sending, "{case}, ideal");
            }
        }
    }
}

/// A message takes a whole number of picoseconds, rounded up, each for itself.
#[test]
fn every_message_is_rounded_up() {
    let fabric = "light_path_grid:ranks=5,ports=2,latency=3us,rate=7Gb/s,establish=2ms,release=1ms";
    let plan = proved(CollectiveKind::AllGather, "ring", fabric);
    let message = (1_001u64 * 8 * 1_000).div_ceil(7);
    let outcome = simulate::run(&plan, Bytes::new(1_001), &Method::default()).unwrap();
    assert_eq!(outcome.time.ps(), 4 * (3_000_000 + message) + 3_000_000_000);
}

/// What stays up costs nothing the next time, unless other paths have taken its ports.
#[test]
fn kept_paths_save_what_the_ports_can_hold() {
    // A collective of p ranks with k ports: set-ups and releases that are paid, kept and warm, of 7 and 3 ms.
    let per = |set_ups: u64, releases: u64| set_ups * 7_000_000_000 + releases * 3_000_000_000;
    for (kind, algorithm, p, k, kept, warm) in [
        // The ring is there from one time to the next.
        (CollectiveKind::AllGather, "ring", 8, 2, (1, 0), (0, 0)),
        (CollectiveKind::AllGather, "ring", 9, 5, (1, 0), (0, 0)),
        // With one port the two halves of the ring take turns: only the first finds free ports.
        (CollectiveKind::AllGather, "ring", 8, 1, (14, 13), (14, 14)),
        (CollectiveKind::AllGather, "ring", 9, 1, (24, 23), (24, 24)),
        // As many partners as ports, or fewer.
        (
            CollectiveKind::AllReduce,
            "recursive_doubling",
            16,
            4,
            (1, 0),
            (0, 0),
        ),
        (
            CollectiveKind::AllReduce,
            "recursive_doubling",
            16,
            6,
            (1, 0),
            (0, 0),
        ),
        // More partners than ports, in turn: the one needed next is the one that went last.
        (
            CollectiveKind::AllReduce,
            "recursive_doubling",
            16,
            3,
            (2, 1),
            (2, 2),
        ),
        (
            CollectiveKind::AllReduce,
            "recursive_doubling",
            16,
            2,
            (2, 1),
            (2, 2),
        ),
        (
            CollectiveKind::AllReduce,
            "recursive_doubling",
            16,
            1,
            (4, 3),
            (4, 4),
        ),
        // Only the root has many partners.
        (CollectiveKind::Broadcast, "linear", 7, 6, (1, 0), (0, 0)),
        (CollectiveKind::Broadcast, "linear", 7, 4, (2, 1), (2, 2)),
    ] {
        let fabric = format!("light_path_grid:ranks={p},ports={k},establish=7ms,release=3ms");
        let plan = proved(kind, algorithm, &fabric);
        let time = |settings: &[(&str, &str)]| {
            let method = Method::from_settings(settings.iter().copied()).unwrap();
            simulate::run(&plan, Bytes::new(1_000), &method)
                .unwrap()
                .time
                .ps()
        };
        let sending = time(&[("policy", "free")]);
        let case = format!("{kind} by {algorithm} on {fabric}");
        assert_eq!(
            time(&[("paths", "kept")]) - sending,
            per(kept.0, kept.1),
            "{case}, kept"
        );
        assert_eq!(
            time(&[("paths", "warm")]) - sending,
            per(warm.0, warm.1),
            "{case}, warm"
        );
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let grid = "light_path_grid:ranks=4,ports=2";
    let ring = "wdm_ring:ranks=4,wavelengths=1";
    let star = "crossbar:ranks=4";
    for (fabric, settings, expected) in [
        (
            grid,
            vec![("policy", "on_change")],
            "use establish_release (by groups of slots), every_step, per_port or free",
        ),
        (
            grid,
            vec![("policy", "free"), ("paths", "kept")],
            "leave the setting paths out",
        ),
        (grid, vec![("simulator", "fluid")], "use circuit"),
        (
            grid,
            vec![("simulator", "control")],
            "its lasers are not tuned flow by flow",
        ),
        (
            grid,
            vec![("start", "step")],
            "does not know the setting `start`",
        ),
        (
            ring,
            vec![("policy", "establish_release")],
            "establish_release for the ports of a light_path_grid",
        ),
        (
            ring,
            vec![("paths", "kept")],
            "paths: on wdm_ring lightpaths change by slots",
        ),
        (star, vec![("simulator", "circuit")], "use fluid"),
    ] {
        let fabric = Fabric::parse(fabric).unwrap();
        let plan = match fabric.downcast::<LightPathGrid>() {
            Some(_) => planned(CollectiveKind::AllGather, "ring", &fabric).unwrap(),
            None if fabric.has_light() => crate::verified(CollectiveKind::AllGather, "ring", 4, 1),
            None => {
                let collective =
                    opticoll::collective::Collective::new(CollectiveKind::AllGather, 4);
                let spec = "ring".parse().unwrap();
                let schedule = opticoll::algorithms::build(&spec, collective.unwrap(), &fabric);
                opticoll::plan::Plan::without_light(&fabric, schedule.unwrap(), "ring".into())
            }
        };
        let method = Method::from_settings(settings.iter().copied()).unwrap();
        let error = simulate::run(&plan, Bytes::new(8), &method)
            .unwrap_err()
            .to_string();
        assert!(
            error.contains(expected),
            "{fabric} with {settings:?}: {error}"
        );
    }
    for (settings, expected) in [
        (("paths", "forgotten"), "unknown value `forgotten`"),
        (("policy", "establish"), "unknown policy `establish`"),
    ] {
        let error = Method::from_settings([settings]).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn a_plan_with_relays_is_refused() {
    let mut plan = proved(
        CollectiveKind::AllGather,
        "ring",
        "light_path_grid:ranks=4,ports=2",
    );
    plan.relays.push(Relay {
        transfer: 0,
        rank: 2,
        light: Light::NONE,
        slot: 1,
    });
    assert_ne!(verify(&plan), []);
    let refused = simulate::run(&plan, Bytes::new(1), &Method::default());
    assert!(
        matches!(refused, Err(SimulationError::Transfer { transfer: 0, .. })),
        "{refused:?}"
    );
}
