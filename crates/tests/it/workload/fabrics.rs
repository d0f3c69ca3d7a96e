//! Replays over simulated networks against the simulators themselves, which time the plans and
//! flows without a replay.

use std::collections::BTreeMap;

use opticoll::algorithms;
use opticoll::collective::{Collective, CollectiveKind};
use opticoll::fabric::Fabric;
use opticoll::plan::Plan;
use opticoll::simulate;
use opticoll::simulate::fluid;
use opticoll::simulate::fluid::{Flow, FlowOptions, Flows};
use opticoll::simulate::packet::Issue;
use opticoll::simulate::{Policy, TimingModel};
use opticoll::spec::Spec;
use opticoll::units::{Bytes, Time};
use opticoll::verify::verify;
use opticoll::workload::csv;
use opticoll::workload::error::TraceError;
use opticoll::workload::expand::{Algorithms, expand};
use opticoll::workload::network::on_fabric;
use opticoll::workload::program::Program;
use opticoll::workload::replay::{Eager, EndCosts, ReplaySettings, Replayed, replay};

use crate::proved_plan;

use super::program_of;

/// Every message waits for its receive.
const RENDEZVOUS: EndCosts = EndCosts {
    overhead: Time::ZERO,
    eager: Eager::Never,
};

pub(super) fn run_on(
    program: &Program,
    fabric: &Fabric,
    method: &TimingModel,
    ends: EndCosts,
) -> Result<Replayed, TraceError> {
    let (mut network, _) = on_fabric(fabric, method)?;
    let settings = ReplaySettings {
        timeline: true,
        ends,
        ..ReplaySettings::default()
    };
    replay(program, &mut *network, settings)
}

fn method(settings: &[(&str, &str)]) -> TimingModel {
    TimingModel::from_settings(settings.iter().copied()).unwrap()
}

/// Returns a program in which every rank enters one collective at time 0.
fn one_collective(kind: CollectiveKind, ranks: u32, bytes: u64, algorithm: &str) -> Program {
    let call = match kind {
        CollectiveKind::AllGather => "Allgather",
        CollectiveKind::AllReduce => "Allreduce",
        CollectiveKind::AllToAll => "Alltoall",
        CollectiveKind::Broadcast => "Bcast",
        CollectiveKind::Reduce => "Reduce",
        CollectiveKind::Barrier => "Barrier",
        CollectiveKind::Gather => "Gather",
        CollectiveKind::Scatter => "Scatter",
        CollectiveKind::ReduceScatter => "Reduce_scatter",
    };
    let header = "rank,call,peer,send_bytes,recv_bytes,tag,comm,req,compute_ns";
    let mut text = format!("# app=one ranks={ranks}\n{header}\n");
    for rank in 0..ranks {
        text += &format!("{rank},{call},0,{bytes},{bytes},,0,,0\n");
    }
    let algorithms = Algorithms::default().with(kind, algorithm.parse().unwrap());
    expand(&csv::read(&text).unwrap(), &algorithms).unwrap()
}

/// Returns the verified plan of a collective, without light.
fn plan(kind: CollectiveKind, algorithm: &str, fabric: &Fabric) -> Option<Plan> {
    // What the replay runs: the schedule as it is on a ring of one wavelength.
    let ring = format!("wdm_ring:ranks={},wavelengths=1", fabric.ranks());
    let collective = Collective::new(kind, fabric.ranks()).unwrap();
    let spec: Spec = algorithm.parse().unwrap();
    let ring = Fabric::parse(&ring).unwrap();
    let schedule = algorithms::build_ranges(&spec, collective, &ring).ok()?;
    let plan = Plan::without_light(fabric, schedule, algorithm.into());
    assert_eq!(verify(&plan), [], "{algorithm} on {fabric}");
    Some(plan)
}

const FABRICS: &[&str] = &[
    "crossbar:ranks=8,rate=10Gb/s,latency=1us",
    "fat_tree:down=4x2,up=1x2,rate=10Gb/s",
    "torus:dims=4x2,rate=10Gb/s",
    "electrical_ring:ranks=7,rate=10Gb/s",
];

#[test]
fn a_collective_alone_takes_as_long_as_its_plan_under_fluid() {
    let mut compared = 0;
    for fabric in FABRICS {
        let fabric = Fabric::parse(fabric).unwrap();
        for record in algorithms::records_for(&fabric) {
            let Some(plan) = plan(record.collective, record.name, &fabric) else {
                continue;
            };
            let bytes = 1 << 20;
            let method = method(&[("simulator", "fluid")]);
            let expected = simulate::run(&plan, Bytes::new(bytes), &method).unwrap();
            let program = one_collective(record.collective, fabric.ranks(), bytes, record.name);
            let replayed = run_on(&program, &fabric, &method, RENDEZVOUS).unwrap();
            let case = format!("{} by {} on {fabric}", record.collective, record.name);
            assert_eq!(replayed.time, expected.time, "{case}");
            let sent: u64 = expected.ranks.sent.iter().sum();
            assert_eq!(replayed.bytes, sent, "{case}");
            compared += 1;
        }
    }
    assert!(compared > 100, "{compared}");
}

/// Algorithms in whose steps each rank sends one message and receives one of the same length: there
/// it does not matter whether a step ends when a message has left or not.
#[test]
fn a_collective_alone_takes_as_long_as_its_plan_packet_by_packet() {
    use CollectiveKind::{AllGather, AllToAll, Barrier};
    let cases = [
        (AllGather, "ring", FABRICS[0]),
        (AllGather, "ring", FABRICS[3]),
        (AllGather, "recursive_doubling", FABRICS[1]),
        (AllToAll, "pairwise", FABRICS[2]),
        (Barrier, "recursive_doubling", FABRICS[0]),
    ];
    for (kind, algorithm, fabric) in cases {
        let fabric = Fabric::parse(fabric).unwrap();
        let plan = plan(kind, algorithm, &fabric).unwrap();
        let mut packets = method(&[("simulator", "packet")]);
        packets.packet.issue = Issue::Together;
        let expected = simulate::run(&plan, Bytes::new(10_000), &packets).unwrap();
        let program = one_collective(kind, fabric.ranks(), 10_000, algorithm);
        let packets = method(&[("simulator", "packet")]);
        let replayed = run_on(&program, &fabric, &packets, EndCosts::default()).unwrap();
        assert_eq!(
            replayed.time, expected.time,
            "{kind} by {algorithm} on {fabric}"
        );
    }
}

#[test]
fn a_ring_of_light_takes_as_long_as_its_plan_by_slots() {
    let fabric = "wdm_ring:ranks=6,wavelengths=2,rate=40Gb/s,reconfiguration=25us,\
                  propagation=3ns,conversion=7ns";
    let fabric = Fabric::parse(fabric).unwrap();
    let collective = Collective::new(CollectiveKind::AllGather, 6).unwrap();
    let size = Bytes::new(100_000);
    let planned = proved_plan("ring", &fabric, collective, size, &TimingModel::default()).plan;
    let program = one_collective(CollectiveKind::AllGather, 6, 100_000, "ring");
    for policy in Policy::ALL {
        let method = method(&[("policy", policy.name())]);
        let expected = simulate::run(&planned, Bytes::new(100_000), &method).unwrap();
        let replayed = run_on(&program, &fabric, &method, EndCosts::default()).unwrap();
        assert_eq!(replayed.time, expected.time, "{}", policy.name());
    }
}

/// A fixed sequence of pseudo-random numbers below `below`.
struct Draws(u64);

impl Draws {
    fn below(&mut self, below: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (self.0 >> 33) % below
    }
}

#[test]
fn random_programs_take_as_long_as_flows_that_wait_for_one_another() {
    for seed in 0..60 {
        let mut draws = Draws(seed);
        let fabric = Fabric::parse(FABRICS[draws.below(4) as usize]).unwrap();
        let ranks = u64::from(fabric.ranks());
        // Local work before the first call only; afterwards a flow waits for what its source
        // received.
        let work: Vec<u64> = (0..ranks).map(|_| draws.below(50) * 1000).collect();
        let mut received: BTreeMap<u64, Vec<u32>> = BTreeMap::new();
        let mut flows = Flows::default();
        let mut calls: Vec<String> = (0..ranks)
            .map(|rank| format!("{rank},Init,,0,0,,0,,{}", work[rank as usize]))
            .collect();
        for number in 0..draws.below(60) as u32 {
            let source = draws.below(ranks);
            let destination = (source + 1 + draws.below(ranks - 1)) % ranks;
            let bytes = draws.below(4) * 30_000 + draws.below(1000);
            let after = received.get(&source).cloned().unwrap_or_default();
            let mut flow = Flow::new(source as u32, destination as u32, Bytes::new(bytes));
            flow.release = Time::from_ps(work[source as usize] * 1000);
            flows.push(flow, &after);
            received.entry(destination).or_default().push(number);
            calls.push(format!("{source},Send,{destination},{bytes},0,0,0,,0"));
            calls.push(format!("{destination},Recv,{source},0,{bytes},0,0,,0"));
        }
        let network = fabric.network().unwrap();
        let expected = fluid::simulate_flows(network, &flows, &FlowOptions::default()).unwrap();
        let program = program_of(ranks as u32, &calls.join("\n")).unwrap();
        let method = method(&[("simulator", "fluid")]);
        let replayed = run_on(&program, &fabric, &method, EndCosts::default()).unwrap();
        let latest = work
            .iter()
            .map(|work| Time::from_ps(work * 1000))
            .max()
            .unwrap();
        // Receives are taken in order: one that waits for local work of its own ends later.
        let waits = |rank: u32| Time::from_ps(work[rank as usize] * 1000);
        let ends = (0..flows.len()).map(|index| {
            let flow = flows.flow(index);
            expected.flows.end[index].max(waits(flow.destination))
        });
        let last = ends.max().unwrap_or(Time::ZERO).max(latest);
        assert_eq!(replayed.time, last, "seed {seed} on {fabric}");
    }
}

#[test]
fn a_message_is_late_and_delays_what_waits_for_it() {
    // 1 byte takes 0.8 ns; latency 1 us on each of two links. Rank 2 sends while rank 0's message
    // is on the way to the same rank: both share its link from then on. Rank 0's 10 000 bytes begin
    // at 0 and move from 2 us; rank 2's 10 000 from 2 us + 4 us. By then 5 000 are left of the
    // first; at half the rate they take 8 us: 14 us. Of the second 5 000 are left then: 18 us.
    let rows = "0,Send,1,10000,0,0,0,,0\n2,Send,1,10000,0,0,0,,4000\n\
                1,Recv,0,0,10000,0,0,,0\n1,Recv,2,0,10000,0,0,,0\n1,Finalize,,0,0,,0,,500";
    let program = program_of(3, rows).unwrap();
    let fabric = Fabric::parse("crossbar:ranks=3,rate=10Gb/s,latency=1us").unwrap();
    let method = method(&[]);
    let replayed = run_on(&program, &fabric, &method, EndCosts::default()).unwrap();
    assert_eq!(replayed.time, Time::from_ps(18_500_000));
    let of_rank_1: Vec<u64> = (0..replayed.timeline.rank.len())
        .filter(|&index| replayed.timeline.rank[index] == 1)
        .map(|index| replayed.timeline.end[index].ps())
        .collect();
    assert_eq!(of_rank_1, [14_000_000, 18_000_000, 18_500_000]);
}

#[test]
fn what_a_replay_cannot_have_is_refused() {
    let program = program_of(3, "0,Send,1,8,0,0,0,,0\n1,Recv,0,0,8,0,0,,0").unwrap();
    // The fabric, settings, and what the message says.
    type Case = (
        &'static str,
        &'static [(&'static str, &'static str)],
        &'static str,
    );
    let cases: &[Case] = &[
        (
            "crossbar:ranks=2",
            &[],
            "the trace has 3 ranks, but the fabric has 2 ranks; give a fabric with at least 3 ranks",
        ),
        (
            "crossbar:ranks=3",
            &[("start", "step")],
            "the fluid simulator does not know the setting `start`, which belongs to plans; \
             a replay has an overhead and an eager limit of its own; leave the start out",
        ),
        (
            "crossbar:ranks=3",
            &[("simulator", "bulk_synchronous")],
            "the bulk_synchronous simulator cannot run on crossbar: replays run message by \
             message: fluid and packet on electrical fabrics, circuit on a wdm_ring or a graph \
             of fibres",
        ),
        (
            "wdm_ring:ranks=3,wavelengths=1,broken=0-1+1-2",
            &[],
            "rank 0, event 0 (line 3): no lightpath leads from rank 0 to 1: every route is cut, beyond the reach of light or without wavelengths",
        ),
        (
            "crossbar:ranks=3",
            &[("policy", "free")],
            "the fluid simulator does not know the setting `policy`, which belongs to circuit and \
             control; leave the policy out",
        ),
    ];
    for &(fabric, settings, expected) in cases {
        let fabric = Fabric::parse(fabric).unwrap();
        let error = run_on(&program, &fabric, &method(settings), EndCosts::default()).unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn a_deadlock_is_found_beside_endless_traffic() {
    let rows = "0,Recv,1,0,8,0,0,,0\n0,Send,1,8,0,0,0,,0\n1,Recv,0,0,8,0,0,,0\n1,Send,0,8,0,0,0,,0";
    let program = program_of(2, rows).unwrap();
    let fabric = Fabric::parse("crossbar:ranks=4,rate=10Gb/s").unwrap();
    for simulator in ["fluid", "packet"] {
        let beside = match simulator {
            "fluid" => "pair:from=2,to=3,rate=1Gb/s",
            _ => "uniform:bytes=2KiB,period=2us",
        };
        let method = method(&[("simulator", simulator), ("background", beside)]);
        let error = run_on(&program, &fabric, &method, EndCosts::default()).unwrap_err();
        assert!(matches!(error, TraceError::Deadlock { .. }), "{error}");
    }
}
