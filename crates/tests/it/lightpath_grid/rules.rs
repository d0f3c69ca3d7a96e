//! Placement on a grid of lightpaths, and its specification. The reference verifier judges mutants
//! of its plans (tests/test_lightpaths.py).

use opticoll::collective::CollectiveKind;
use opticoll::fabric::Fabric;
use opticoll::placement::lightpath_grid::placement::assign_ports;
use opticoll::schedule::{Schedule, Transfer};

use super::proved;

/// With fewer ports than partners in a step, the step is cut into as few slots as a ring allows.
#[test]
fn a_ring_takes_two_halves_with_one_port_and_three_where_it_is_odd() {
    for ranks in 2..=64 {
        for ports in 1..=3 {
            let fabric = format!("lightpath_grid:ranks={ranks},ports={ports}");
            let plan = proved(CollectiveKind::AllGather, "ring", &fabric);
            let parts = match (ports, ranks) {
                (1, 3..) => 2 + ranks % 2,
                _ => 1,
            };
            assert_eq!(plan.slots(), parts * (ranks - 1), "{fabric}");
        }
    }
}

#[test]
fn schedules_that_join_no_two_ranks_are_refused() {
    let fabric = Fabric::parse("lightpath_grid:ranks=3").unwrap();
    let grid = fabric.downcast().unwrap();
    let whole = opticoll::collective::Collective::new(CollectiveKind::Broadcast, 3).unwrap();
    for (source_rank, destination) in [(1, 1), (0, 3), (4, 0)] {
        let mut schedule = Schedule::new(whole);
        schedule.push(Transfer::copy(0, source_rank, destination));
        let refused = assign_ports(schedule, &fabric, grid, "by hand".into()).unwrap_err();
        let said = format!("transfer 0 goes from rank {source_rank} to rank {destination}");
        assert!(refused.to_string().starts_with(&said), "{refused}");
    }
}

#[test]
fn fabrics_are_spelled_in_full_and_read_back() {
    for (given, expected) in [
        (
            "lightpath_grid:ranks=64",
            "lightpath_grid:ranks=64,ports=1,latency=100us,rate=1Gb/s,setup=5ms",
        ),
        (
            "Lightpath-Grid:ports=4,ranks=2,teardown=1us,setup=2us,rate=10Gb/s,latency=0s",
            "lightpath_grid:ranks=2,ports=4,latency=0s,rate=10Gb/s,setup=2us,teardown=1us",
        ),
    ] {
        let fabric = Fabric::parse(given).unwrap();
        assert_eq!(fabric.to_string(), expected);
        assert_eq!(Fabric::parse(expected).unwrap(), fabric);
    }
}
