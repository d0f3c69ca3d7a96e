//! Routes that a plan names: the simulators follow them, the text form keeps them, and the verifier
//! checks them.

use opticoll::collective::{Collective, CollectiveKind};
use opticoll::fabric::Fabric;
use opticoll::plan::{NamedRoutes, Plan, text};
use opticoll::simulate;
use opticoll::simulate::TimingModel;
use opticoll::units::Bytes;
use opticoll::verify::{ViolationKind, verify};

use crate::rows;

/// Two ranks joined by two switches: link 0 leads from rank 0 to switch 2, link 3 from there to
/// rank 1, links 4 and 7 do the same over switch 3.
const TWO_SWITCHES: &str = "custom:ranks=2,switches=2,links=0-2+1-2+0-3+1-3,rate=1GB/s,latency=1us";

/// Returns a broadcast of two chunks from rank 0 to rank 1, one transfer for each of the given
/// routes.
fn broadcast(fabric: &str, routes: [&str; 2]) -> Plan {
    let lines = [0, 1].map(|chunk| match routes[chunk] {
        "" => format!("copy {chunk} 0>1"),
        route => format!("copy {chunk} 0>1 via {route}"),
    });
    let [one, other] = lines;
    let text = format!(
        "opticoll plan 1\ncollective broadcast ranks=2 root=0 pieces=2\nfabric {fabric}\n\
         algorithm by hand\n\
         steps 1\nslot 0\n{one}\n{other}\nend 2\n"
    );
    text::read(&text).unwrap()
}

fn time_us(plan: &Plan, settings: &[(&str, &str)]) -> f64 {
    let method = TimingModel::from_settings(settings.iter().copied()).unwrap();
    let outcome = simulate::run(plan, Bytes::new(2_000_000), &method).unwrap();
    outcome.time.ps() as f64 / 1e6
}

#[test]
fn two_paths_take_half_the_time_of_one() {
    let by_fabric = broadcast(TWO_SWITCHES, ["", ""]);
    assert!(by_fabric.routes.is_empty());
    for simulator in ["fluid", "bulk_synchronous"] {
        let time = |plan: &Plan| time_us(plan, &[("simulator", simulator)]);
        assert_eq!(time(&by_fabric), 2002.0);
        for routes in [["0.3", "4.7"], ["4.7", "0.3"]] {
            assert_eq!(
                time(&broadcast(TWO_SWITCHES, routes)),
                1002.0,
                "{simulator}"
            );
        }
        // Both over one switch are one message.
        let one = broadcast(TWO_SWITCHES, ["4.7", "4.7"]);
        assert_eq!(one.routes.len(), 1);
        assert_eq!(time(&one), 2002.0);
    }
}

/// The links of the outcome are those of the routes.
#[test]
fn the_load_is_on_the_links_named() {
    for simulator in ["fluid", "bulk_synchronous"] {
        let method = TimingModel::from_settings([("simulator", simulator)]).unwrap();
        let plan = broadcast(TWO_SWITCHES, ["0.3", "4.7"]);
        let outcome = simulate::run(&plan, Bytes::new(2_000_000), &method).unwrap();
        let loads = [1, 0, 0, 1, 1, 0, 0, 1].map(|load| load * 1_000_000);
        assert_eq!(outcome.links.bytes, loads, "{simulator}");
    }
}

#[test]
fn packets_refuse_named_routes_in_a_sentence() {
    let method = TimingModel::from_settings([("simulator", "packet")]).unwrap();
    let plan = broadcast(TWO_SWITCHES, ["0.3", "4.7"]);
    let refused = simulate::run(&plan, Bytes::new(2_000_000), &method).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "packets use the routes of the fabric, but this plan names other routes; use fluid or \
         bulk_synchronous"
    );
}

/// A route from rank 0 to rank 1 over two switches, and its fault.
const ROUTES: &str = "
0.3 | -
4.7 | -
0.1.4.7 | -
0 | has a route that ends at switch 0, not at rank 1
3 | goes over link 3 (switch 0 -> rank 1), which does not leave rank 0, where it starts
3.0 | goes over link 3 (switch 0 -> rank 1), which does not leave rank 0, where it starts
0.7 | goes over link 7 (switch 1 -> rank 1), which does not leave switch 0, where link 0 (rank 0 -> switch 0) ends
0.2 | goes over link 2 (rank 1 -> switch 0), which does not leave switch 0, where link 0 (rank 0 -> switch 0) ends
2.1 | goes over link 2 (rank 1 -> switch 0), which does not leave rank 0, where it starts
0.8 | goes over link 8, which does not exist
";

/// The same over two half-duplex cables and one switch.
const HALF_DUPLEX: &str = "
0.1 | -
1.0 | goes over link 1 (rank 1 <-> switch 0), which does not leave rank 0, where it starts
";

#[test]
fn a_route_must_lead_from_end_to_end_over_links_that_exist() {
    let half_duplex = "custom:ranks=2,switches=1,links=0~2+1~2,rate=1GB/s";
    let both = [(TWO_SWITCHES, ROUTES), (half_duplex, HALF_DUPLEX)];
    let cases = both.into_iter().flat_map(|(fabric, table)| {
        rows(table).map(move |[route, problem]| (fabric, route, problem))
    });
    for (fabric, route, problem) in cases {
        let wrong = verify(&broadcast(fabric, [route, ""]));
        if problem == "-" {
            assert_eq!(wrong, [], "{route}");
            continue;
        }
        assert_eq!(wrong.len(), 1, "{route}: {wrong:?}");
        assert_eq!(wrong[0].kind, ViolationKind::Route);
        assert_eq!(wrong[0].transfers, [0]);
        let sentence = format!("slot 0: transfer 0 (rank 0 to 1) {problem}");
        assert_eq!(wrong[0].sentence, sentence, "{route}");
    }
}

#[test]
fn where_there_are_no_links_no_route_is_right() {
    let mut plan = broadcast(TWO_SWITCHES, ["", ""]);
    plan.routes.assign(1, &[0, 3]);
    plan.fabric = Fabric::parse("wdm_ring:ranks=2,wavelengths=1").unwrap();
    let wrong = verify(&plan);
    assert!(
        wrong.iter().any(|one| one.kind == ViolationKind::Route),
        "{wrong:?}"
    );
}

#[test]
fn a_link_that_does_not_exist_is_refused_by_the_simulators() {
    let plan = broadcast(TWO_SWITCHES, ["", "0.9"]);
    for simulator in ["fluid", "bulk_synchronous"] {
        let method = TimingModel::from_settings([("simulator", simulator)]).unwrap();
        let refused = simulate::run(&plan, Bytes::new(2000), &method).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "transfer 1 cannot be simulated: its route has a link that the fabric does not have; \
             verify the plan first"
        );
    }
}

/// Of routes of one kind, chunks that follow one another are one statement.
#[test]
fn routes_are_written_and_read_back_exactly() {
    let fabric = Fabric::parse(TWO_SWITCHES).unwrap();
    let collective = Collective::new(CollectiveKind::Broadcast, 2).unwrap();
    let collective = collective.with_pieces(12).unwrap();
    let mut schedule = opticoll::schedule::Schedule::new(collective);
    schedule.begin_step();
    let mut routes = NamedRoutes::default();
    for chunk in 0..12u32 {
        schedule.push(opticoll::schedule::Transfer::copy(chunk, 0, 1));
        match chunk % 3 {
            0 => {}
            1 => routes.assign(chunk as usize, &[4, 7]),
            _ => routes.assign(chunk as usize, &[0, 3]),
        }
    }
    let plan = Plan {
        routes,
        ..Plan::without_light(&fabric, schedule, "by hand".into())
    };
    assert_eq!(verify(&plan), []);
    let written = text::write(&plan);
    for line in [
        "copy 0 0>1 x4 chunk+3",
        "copy 2 0>1 via 0.3 x4 chunk+3",
        "copy 1 0>1 via 4.7 x4 chunk+3",
    ] {
        assert!(written.contains(&format!("\n{line}\n")), "{written}");
    }
    let read = text::read_any(&written).unwrap();
    assert_eq!(text::write(&read), written);
    assert!(read.is_same(&plan));
    let mut other = plan;
    other.routes.assign(2, &[4, 7]);
    assert!(!read.is_same(&other));
}

#[test]
fn what_is_no_route_is_refused_with_its_place() {
    for (line, problem) in [
        (
            "copy 0 0>1 via",
            "the line ends where the links of a route, such as 3.7.12 was expected",
        ),
        (
            "copy 0 0>1 via 0.",
            "`0.`: `` is not a number, or is too large",
        ),
        (
            "copy 0 0>1 via 0>3",
            "`0>3`: `0>3` is not a number, or is too large",
        ),
        (
            "copy 0 0>1 via 0.3 via 4.7",
            "`via`: expected a repetition, such as x4 chunk+1 rank+1",
        ),
    ] {
        let text = format!(
            "opticoll plan 1\ncollective broadcast ranks=2 root=0 pieces=1\nfabric \
             {TWO_SWITCHES}\nalgorithm by hand\n\
             steps 1\nslot 0\n{line}\nend 1\n"
        );
        let refused = text::read(&text).unwrap_err();
        assert_eq!(
            (refused.line, refused.problem.as_str()),
            (7, problem),
            "{line}"
        );
    }
}
