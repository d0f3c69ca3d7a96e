//! Enumeration of every order in which messages may arrive, in small cases. In every order, all
//! flows arrive, and no receiver ever receives flows of two transmitters at the same time.

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashSet;

use super::flows::{Lists, TransceiverFlow, TransceiverFlows};
use super::protocol::{ControlEvent, Effect, ProtocolState};
use opticoll_base::units::Bytes;
use opticoll_fabric::family::wss_grid::TunedLight;

/// Source, destination and slot of each flow, and the flows that must arrive before it.
type FlowsCase = &'static [(u32, u32, u32, &'static [u32])];

fn flows(case: FlowsCase) -> TransceiverFlows {
    let ranks = case.iter().map(|&(from, to, ..)| from.max(to) + 1).max();
    let mut flows = TransceiverFlows {
        flows_of_transmitter: vec![Vec::new(); 2 * ranks.unwrap_or(0) as usize],
        ..TransceiverFlows::default()
    };
    let (mut feeds, mut waiters) = (Vec::new(), Vec::new());
    for (index, &(source, destination, slot, needs)) in case.iter().enumerate() {
        flows.flows.push(TransceiverFlow {
            source,
            destination,
            light: TunedLight {
                plane: 0,
                wavelength: destination as u16,
            },
            slot,
            bytes: Bytes::new(1),
            transfer: index as u32,
            keeps: false,
        });
        flows.needs.push(u32::from(!needs.is_empty()));
        if !needs.is_empty() {
            let join = flows.join_needs.len() as u32;
            feeds.extend(needs.iter().map(|&flow| (flow, join)));
            waiters.push((join, index as u32));
            flows.join_needs.push(needs.len() as u32);
        }
    }
    flows.feeds = Lists::new(case.len(), &feeds);
    flows.waiters = Lists::new(flows.join_needs.len(), &waiters);
    flows.keep_circuits();
    flows
}

/// Enumerates all orders. Returns the number of states, and whether any order sends a REVOKE.
fn explore(flows: &TransceiverFlows) -> (usize, bool) {
    let mut state = ProtocolState::new(flows);
    let mut effects = Vec::new();
    state.open(flows, &mut effects);
    let mut under_way = BTreeSet::new();
    take(&mut effects, &mut under_way);
    let mut seen = FxHashSet::default();
    let mut open = vec![(state, under_way)];
    let mut revoked = false;
    while let Some((state, under_way)) = open.pop() {
        if !seen.insert((state.clone(), under_way.clone())) {
            continue;
        }
        // All flows on their way to a receiver come from one transmitter.
        let mut heard = BTreeMap::new();
        for event in &under_way {
            if let ControlEvent::Sent(flow) | ControlEvent::Arrived(flow) = event {
                let flow = flows.flows[*flow as usize];
                let other = heard.insert(flow.receiver(), flow.transmitter());
                assert!(other.is_none_or(|other| other == flow.transmitter()));
            }
            revoked |= matches!(event, ControlEvent::Revoke { .. });
        }
        if under_way.is_empty() {
            assert_eq!(state.arrived as usize, flows.flows.len(), "{state:?}");
        }
        for &event in &under_way {
            let (mut next, mut remaining) = (state.clone(), under_way.clone());
            remaining.remove(&event);
            next.handle(flows, event, &mut effects);
            take(&mut effects, &mut remaining);
            open.push((next, remaining));
        }
    }
    (seen.len(), revoked)
}

/// Adds the events that the effects cause to the events under way.
fn take(effects: &mut Vec<Effect>, under_way: &mut BTreeSet<ControlEvent>) {
    for effect in effects.drain(..) {
        let next = match effect {
            Effect::Message(message) => message,
            Effect::Begin { flow, .. } => ControlEvent::Sent(flow),
            Effect::UnderWay(flow) => ControlEvent::Arrived(flow),
        };
        assert!(under_way.insert(next), "{next:?} is under way twice");
    }
}

/// Cases: name, flows, and whether a kept circuit is revoked in some order of messages.
const CASES: &[(&str, FlowsCase, bool)] = &[
    ("one flow", &[(0, 1, 0, &[])], false),
    (
        "three to one",
        &[(0, 3, 0, &[]), (1, 3, 1, &[]), (2, 3, 2, &[])],
        false,
    ),
    (
        "an exchange, there and back over the same circuits",
        &[
            (0, 1, 0, &[]),
            (1, 0, 0, &[]),
            (0, 1, 1, &[1]),
            (1, 0, 1, &[0]),
        ],
        false,
    ),
    (
        "halving and doubling of four: the second and third exchange share circuits",
        &[
            (0, 2, 0, &[]),
            (1, 3, 0, &[]),
            (2, 0, 0, &[]),
            (3, 1, 0, &[]),
            (0, 1, 1, &[2]),
            (1, 0, 1, &[3]),
            (2, 3, 1, &[0]),
            (3, 2, 1, &[1]),
            (0, 1, 2, &[5]),
            (1, 0, 2, &[4]),
            (2, 3, 2, &[7]),
            (3, 2, 2, &[6]),
        ],
        true,
    ),
    (
        "a kept circuit in the way of what it waits for",
        // Rank 0 sends to rank 1 and keeps the circuit. The next data first go from rank 2 over 1
        // to 0.
        &[
            (0, 1, 1, &[]),
            (2, 1, 0, &[]),
            (1, 0, 1, &[1]),
            (0, 1, 2, &[2]),
        ],
        true,
    ),
    (
        "two kept circuits, each in the way of the other's data",
        &[
            (0, 1, 1, &[]),
            (2, 3, 1, &[]),
            (2, 1, 0, &[]),
            (0, 3, 0, &[]),
            (1, 0, 1, &[2]),
            (3, 2, 1, &[3]),
            (0, 1, 2, &[4]),
            (2, 3, 2, &[5]),
        ],
        true,
    ),
    (
        "a ring of three, twice around",
        &[
            (0, 1, 0, &[]),
            (1, 2, 0, &[]),
            (2, 0, 0, &[]),
            (0, 1, 1, &[2]),
            (1, 2, 1, &[0]),
            (2, 0, 1, &[1]),
        ],
        false,
    ),
];

#[test]
#[cfg_attr(
    debug_assertions,
    ignore = "slow without optimisation: `make validate`"
)]
fn every_flow_arrives_in_every_order_of_messages() {
    for (name, case, expected) in CASES {
        let (states, revoked) = explore(&flows(case));
        assert!(states >= 4, "{name}");
        assert_eq!(revoked, *expected, "{name}: {states} states");
    }
}
