//! Times, settings and traffic of plans on rings against closed forms.

use std::collections::BTreeMap;

use opticoll::collective::Collective;
use opticoll::collective::CollectiveKind;
use opticoll::collective::CollectiveKind::{AllGather, AllReduce, AllToAll};
use opticoll::fabric::Fabric;
use opticoll::family::wdm_ring::{Direction, WdmLight, WdmRing};
use opticoll::plan::Plan;
use opticoll::simulate;
use opticoll::simulate::{Policy, TimingModel, circuit, simulate};
use opticoll::spec::Spec;
use opticoll::units::{Bytes, Time};
use opticoll::{algorithms, planner};

use crate::{verified, verified_with};

fn time(plan: &opticoll::plan::Plan, size: &str, policy: Policy, simulator: &str) -> Time {
    simulate(plan, size.parse().unwrap(), policy, simulator)
        .unwrap()
        .time
}

fn ps(text: &str) -> Time {
    text.parse().unwrap()
}

#[test]
fn every_step_costs_its_block_and_a_reconfiguration() {
    // slots * (d / B + a) with d / B = 838.8608 us and a = 25 us.
    for (algorithm, slots) in [
        ("optree", 72),
        ("ring", 1023),
        ("neighbour_exchange", 512),
        ("one_stage", 2048),
    ] {
        let plan = verified(AllGather, algorithm, 1024, 64);
        let expected = ps("863.8608us").times(slots).unwrap();
        assert_eq!(
            time(&plan, "4MiB", Policy::EveryStep, "circuit"),
            expected,
            "{algorithm}"
        );
    }
}

#[test]
fn plans_claim_the_published_steps() {
    for (algorithm, claimed) in [
        ("optree:depth=paper", 70),
        ("wrht", 259),
        ("neighbour_exchange", 512),
        ("ring", 1023),
        ("one_stage", 2048),
    ] {
        let plan = verified(AllGather, algorithm, 1024, 64);
        let claims = plan.schedule.claims;
        assert_eq!(claims.paper_steps, Some(claimed), "{algorithm}");
    }
    let plan = verified(AllReduce, "wrht", 1024, 64);
    // 100 MB of ResNet50: 3 * (20 ms + 25 us) = 60.075 ms.
    assert_eq!(
        time(&plan, "100MB", Policy::EveryStep, "circuit"),
        ps("60.075ms")
    );
}

#[test]
fn static_circuits_are_charged_once() {
    let check =
        |kind: CollectiveKind, algorithm: &str, configurations: u64, slots: u64, slot: &str| {
            let plan = verified(kind, algorithm, 16, 2);
            assert_eq!(
                circuit::configurations(&plan),
                configurations,
                "{algorithm}"
            );
            let sending = ps(slot).times(slots).unwrap();
            let once = ps("25us").times(configurations).unwrap();
            assert_eq!(
                time(&plan, "16KiB", Policy::Free, "circuit"),
                sending,
                "{algorithm}"
            );
            let on_change = time(&plan, "16KiB", Policy::OnChange, "circuit");
            assert_eq!(on_change, sending.plus(once).unwrap(), "{algorithm}");
        };
    // 16 KiB at 40 Gb/s: 3.2768 us; a sixteenth of it: 204.8 ns.
    check(AllGather, "ring", 1, 15, "3.2768us");
    check(AllGather, "ring_bidirectional", 1, 8, "3.2768us");
    // Sums and results go the same way around.
    check(AllReduce, "ring", 1, 30, "204.8ns");
}

/// Counts the settings of a plan on a ring by the definition: a run of slots goes on as long as no
/// two of its circuits share a channel of a link.
fn settings_by_definition(plan: &Plan) -> u64 {
    let ring = plan.fabric.downcast::<WdmRing>().unwrap();
    let mut settings = 0;
    // By direction, fibre, wavelength and link: the ends of the circuit.
    let mut up = BTreeMap::new();
    for slot in 0..plan.slots() {
        let mut own = Vec::new();
        for lightpath in plan.lightpaths().filter(|one| one.slot == slot) {
            let light = WdmLight::from(lightpath.light);
            let ends = (lightpath.transfer.source, lightpath.transfer.destination);
            let (mut at, clockwise) = (ends.0, light.direction == Direction::Clockwise);
            while at != ends.1 {
                let next = (at + if clockwise { 1 } else { ring.ranks - 1 }) % ring.ranks;
                let link = if clockwise { at } else { next };
                own.push(((clockwise, light.fibre, light.wavelength, link), ends));
                at = next;
            }
        }
        let fits = own
            .iter()
            .all(|(place, ends)| up.get(place).is_none_or(|other| other == ends));
        if !fits || settings == 0 {
            settings += 1;
            up.clear();
        }
        up.extend(own);
    }
    settings
}

#[test]
fn a_setting_holds_the_circuits_of_as_many_slots_as_fit() {
    let mut shared = 0;
    let mut left_out = crate::leaves_out(4);
    for (ranks, wavelengths) in [(16, 2), (12, 3), (9, 4), (20, 4)] {
        let fabric =
            Fabric::parse(&format!("wdm_ring:ranks={ranks},wavelengths={wavelengths}")).unwrap();
        for kind in CollectiveKind::ALL {
            if left_out() {
                continue;
            }
            let collective = Collective::new(kind, ranks).unwrap();
            let of_kind = algorithms::records_for(&fabric).filter(|one| one.collective == kind);
            let planners = planner::PLANNERS
                .iter()
                .filter(|one| one.collectives.contains(&kind));
            let planners = planners
                .filter(|one| one.applies(&fabric))
                .map(|one| one.name);
            for name in of_kind.map(|one| one.name).chain(planners) {
                let method = TimingModel::from(Policy::OnChange);
                let size = Bytes::new(100_000);
                let made = planner::plan(&Spec::new(name), &fabric, collective, size, &method);
                let Ok(made) = made else { continue };
                let whole = made.plan.clone().into_expanded();
                let settings = settings_by_definition(&whole);
                let outcome = |plan: &Plan| simulate::run(plan, size, &method).unwrap();
                assert_eq!(
                    outcome(&made.plan).reconfigurations,
                    settings,
                    "{name} {kind}"
                );
                assert_eq!(outcome(&whole).reconfigurations, settings, "{name}");
                assert!(circuit::configurations(&whole) <= settings);
                shared += u32::from(settings > 1 && settings < u64::from(whole.slots()));
            }
        }
    }
    assert!(shared > 5, "{shared}");
}

#[test]
fn conversion_and_propagation_are_charged_to_the_longest_path() {
    let fabric = "wdm_ring:ranks=16,wavelengths=32,conversion=100ns,propagation=5ns";
    let plan = verified_with(AllGather, "one_stage", fabric, "auto");
    // One slot; the longest path has 8 hops: 25 us + 100 ns + 40 ns + 3.2768 us.
    assert_eq!(plan.slots(), 1);
    assert_eq!(
        time(&plan, "16KiB", Policy::EveryStep, "circuit"),
        ps("28.4168us")
    );
}

#[test]
fn per_port_lets_everything_else_go_on() {
    // The ring's circuits are set once; then each rank forwards as soon as it has received.
    let plan = verified(AllGather, "ring", 16, 2);
    let expected = ps("3.2768us").times(15).unwrap().plus(ps("25us")).unwrap();
    assert_eq!(time(&plan, "16KiB", Policy::PerPort, "circuit"), expected);
    // Neighbour exchange uses two sets of ports in turn, on two wavelengths: each is set once, and
    // the second set is set up while the first is, so that one delay shows.
    let plan = verified(AllGather, "neighbour_exchange", 16, 2);
    let expected = ps("3.2768us").times(8).unwrap().plus(ps("25us")).unwrap();
    assert_eq!(time(&plan, "16KiB", Policy::PerPort, "circuit"), expected);
}

#[test]
fn sizes_that_do_not_divide_are_cut_to_within_a_byte() {
    let plan = verified(AllReduce, "ring", 7, 1);
    let outcome = simulate(&plan, Bytes::new(100), Policy::Free, "circuit").unwrap();
    // Each rank sends 12 chunks of 14 or 15 bytes; together all chunks twice but for one round:
    // 2 * (7 - 1) * 100 bytes.
    assert_eq!(outcome.ranks.sent.iter().sum::<u64>(), 1200);
    assert_eq!(outcome.ranks.received.iter().sum::<u64>(), 1200);
    // Every step has some chunk of 15 bytes: 3 ns.
    assert_eq!(outcome.time, ps("3ns").times(12).unwrap());
    let plan = verified(AllToAll, "direct", 7, 1);
    let outcome = simulate(&plan, Bytes::new(100), Policy::Free, "circuit").unwrap();
    let kept: u64 = (0..7)
        .map(|rank| (rank + 1) * 100 / 7 - rank * 100 / 7)
        .sum();
    assert_eq!(outcome.ranks.sent.iter().sum::<u64>(), 700 - kept);
}

#[test]
fn links_and_ranks_are_accounted_for() {
    let plan = verified(AllGather, "ring", 8, 1);
    let outcome = simulate(&plan, Bytes::new(5000), Policy::Free, "circuit").unwrap();
    // 5000 bytes take 1 us. Every clockwise link carries 7 blocks, no counter-clockwise one any.
    assert_eq!(outcome.links.bytes[..8], [35_000; 8]);
    assert_eq!(outcome.links.bytes[8..], [0; 8]);
    assert_eq!(outcome.links.busy[..8], [ps("7us"); 8]);
    assert_eq!(outcome.ranks.sent, [35_000; 8]);
    assert_eq!(outcome.ranks.finish, [ps("7us"); 8]);
    assert!(
        (outcome.utilisation - 0.5).abs() < 1e-12,
        "one direction of two"
    );
    assert_eq!(outcome.critical_path.len(), 7);
    assert_eq!(outcome.slots.end.last(), Some(&ps("7us")));
}

#[test]
fn links_of_both_directions_are_numbered_by_their_start() {
    // Rank 0 of 5 scatters: link 0 clockwise carries blocks 1 and 2, link 0 counter-clockwise
    // (from rank 0 to rank 4) blocks 4 and 3; link 1 clockwise block 2, link 4 the other way 3.
    let plan = verified(CollectiveKind::Scatter, "direct", 5, 2);
    let outcome = simulate(&plan, Bytes::new(10), Policy::Free, "circuit").unwrap();
    assert_eq!(outcome.links.bytes, [20, 10, 0, 0, 0, 20, 0, 0, 0, 10]);
}

#[test]
fn per_port_keeps_the_order_in_which_contributions_combine() {
    // Rank 0's contribution takes four links to rank 4: 41 s. Rank 3 has everybody's after 21 s,
    // but its copy must not reach rank 4 before that, or rank 0 would be counted twice: 41 + 11 s.
    let written = "opticoll plan 1
collective all_reduce ranks=5 root=0 pieces=1
fabric wdm_ring:ranks=5,wavelengths=4,rate=8b/s,reconfiguration=0s,propagation=10s
algorithm by hand
steps 1 1
slot 0
reduce 0 4>3 ccw 0.0
reduce 0 2>3 cw 0.0
reduce 0 1>3 cw 0.1
reduce 0 0>3 ccw 0.2
reduce 0 0>4 cw 0.3
slot 1
copy 0 3>4 cw 0.0
copy 0 3>2 ccw 0.0
copy 0 3>1 ccw 0.1
copy 0 3>0 cw 0.1
end 9
";
    let plan = opticoll::plan::text::read(written).unwrap();
    assert_eq!(opticoll::verify::verify(&plan), []);
    let outcome = simulate(&plan, Bytes::new(1), Policy::PerPort, "circuit").unwrap();
    assert_eq!(outcome.time, ps("52s"));
}

#[test]
fn papers_speak_of_all_gather_only() {
    for reversed in ["ring", "optree", "one_stage"] {
        let plan = verified(CollectiveKind::ReduceScatter, reversed, 8, 1);
        assert_eq!(plan.schedule.claims.paper_steps, None, "{reversed}");
    }
}

#[test]
fn a_time_beyond_64_bits_is_an_error() {
    let plan = verified_with(
        AllGather,
        "ring",
        "wdm_ring:ranks=8,wavelengths=1,rate=1b/s",
        "auto",
    );
    let size = Bytes::new(u64::MAX / 8);
    assert!(simulate(&plan, size, Policy::Free, "circuit").is_err());
}

#[test]
fn traffic_beyond_64_bits_is_an_error() {
    let plan = verified_with(
        AllGather,
        "ring",
        "wdm_ring:ranks=8,wavelengths=1,rate=9000Tb/s",
        "auto",
    );
    let error = simulate(&plan, Bytes::new(u64::MAX / 4), Policy::Free, "circuit").unwrap_err();
    assert!(error.to_string().contains("too large"), "{error}");
}
