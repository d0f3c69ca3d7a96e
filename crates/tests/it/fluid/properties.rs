//! The fluid simulator on random networks against a slow reference simulator, and laws that hold
//! for every run.

use opticoll::network::{Link, Network, Routed, Sharing};
use opticoll::simulate::fluid::{Flow, FlowOptions, Flows, LinkBin, simulate_flows};
use opticoll::units::{Bytes, Rate, Time};
use proptest::prelude::*;

/// Rates by textbook filling: every rate rises until a link is full or a cap is reached. Each flow
/// has its links and its cap, in bytes per ps.
fn fill(capacities: &[f64], flows: &[(&[u32], f64)]) -> Vec<f64> {
    let mut rates = vec![None; flows.len()];
    while rates.contains(&None) {
        let mut step = f64::INFINITY;
        for (at, (_, cap)) in flows.iter().enumerate() {
            if rates[at].is_none() {
                step = step.min(*cap);
            }
        }
        let share = |link: u32, rates: &[Option<f64>]| {
            let on = || (0..flows.len()).filter(|&at| flows[at].0.contains(&link));
            let fixed: f64 = on().filter_map(|at| rates[at]).sum();
            let rising = on().filter(|&at| rates[at].is_none()).count();
            (capacities[link as usize] - fixed) / rising as f64
        };
        for (at, (route, _)) in flows.iter().enumerate() {
            if rates[at].is_none() {
                step = route
                    .iter()
                    .map(|&link| share(link, &rates))
                    .fold(step, f64::min);
            }
        }
        let full: Vec<bool> = flows
            .iter()
            .map(|(route, cap)| {
                let reached = |level: f64| level <= step * (1.0 + 1e-12);
                reached(*cap) || route.iter().any(|&link| reached(share(link, &rates)))
            })
            .collect();
        for (rate, full) in rates.iter_mut().zip(full) {
            if rate.is_none() && full {
                *rate = Some(step);
            }
        }
    }
    rates.into_iter().map(Option::unwrap).collect()
}

/// Computes the ends (ps) of flows; at every event it looks at all flows.
fn slow(network: &Routed, flows: &Flows) -> Vec<f64> {
    let links = network.links();
    let rate = |link: u32| links[link as usize].rate.bits_per_second() as f64 / 8e12;
    let capacities: Vec<f64> = (0..links.len() as u32).map(rate).collect();
    let mut ends: Vec<Option<f64>> = vec![None; flows.len()];
    let mut left: Vec<f64> = (0..flows.len())
        .map(|at| flows.flow(at).bytes.get() as f64)
        .collect();
    let mut joins: Vec<Option<f64>> = vec![None; flows.len()];
    let mut now = 0.0;
    let (mut routes, mut caps) = (Vec::new(), Vec::new());
    for at in 0..flows.len() {
        let flow = flows.flow(at);
        let mut route = Vec::new();
        network.route(flow.source, flow.destination, &mut route);
        let cap = flow
            .rate_cap
            .map_or(f64::INFINITY, |cap| cap.bits_per_second() as f64 / 8e12);
        let private = |link: &u32| links[*link as usize].sharing == Sharing::PerFlow;
        caps.push(
            route
                .iter()
                .filter(|link| private(link))
                .map(|&link| rate(link))
                .fold(cap, f64::min),
        );
        let latency: u64 = route
            .iter()
            .map(|&link| links[link as usize].latency.ps())
            .sum();
        route.retain(|link| !private(link));
        routes.push((route, latency as f64));
    }
    while ends.contains(&None) {
        for at in 0..flows.len() {
            let before = flows.after(at).iter().map(|&flow| ends[flow as usize]);
            if joins[at].is_none()
                && let Some(before) = before.collect::<Option<Vec<f64>>>()
            {
                let release = flows.flow(at).release.ps() as f64;
                joins[at] = Some(before.into_iter().fold(release, f64::max) + routes[at].1);
            }
        }
        let moving: Vec<usize> = (0..flows.len())
            .filter(|&at| ends[at].is_none() && joins[at].is_some_and(|join| join <= now + 1e-3))
            .collect();
        let parts: Vec<(&[u32], f64)> = moving
            .iter()
            .map(|&at| (&routes[at].0[..], caps[at]))
            .collect();
        let rates = fill(&capacities, &parts);
        let mut next = f64::INFINITY;
        for (&at, rate) in moving.iter().zip(&rates) {
            next = next.min(
                now + if left[at] == 0.0 {
                    0.0
                } else {
                    left[at] / rate
                },
            );
        }
        for &join in joins.iter().flatten().filter(|join| **join > now + 1e-3) {
            next = next.min(join);
        }
        for (&at, rate) in moving.iter().zip(&rates) {
            let time_left = if left[at] == 0.0 {
                0.0
            } else {
                left[at] / rate
            };
            left[at] -= if rate.is_finite() {
                rate * (next - now)
            } else {
                left[at]
            };
            if time_left <= next - now + 1e-3 {
                ends[at] = Some(next);
            }
        }
        now = next;
    }
    ends.into_iter().map(Option::unwrap).collect()
}

/// Draws links, routes and flows with dependencies, releases and caps.
fn cases() -> impl Strategy<Value = (Routed, Flows)> {
    let link =
        (1u64..5, prop_oneof![Just(0u64), 1u64..4], 0..6u8).prop_map(|(rate, latency, kind)| {
            Link {
                rate: Rate::from_bits_per_second(rate * 1_000_000_000).unwrap(),
                latency: Time::from_ps(latency * 300_000),
                sharing: if kind == 0 {
                    Sharing::PerFlow
                } else {
                    Sharing::Shared
                },
            }
        });
    (2u32..6, prop::collection::vec(link, 1..7)).prop_flat_map(|(ranks, links)| {
        let count = links.len() as u32;
        let route = prop::collection::btree_set(0..count, 0..4);
        let routes = prop::collection::vec(route, (ranks * ranks) as usize);
        let flow = (
            0..ranks,
            1..ranks,
            0u64..2000,
            0u64..8,
            0u64..6,
            prop::collection::vec(any::<prop::sample::Index>(), 0..3),
        );
        (
            Just(ranks),
            Just(links),
            routes,
            prop::collection::vec(flow, 1..14),
        )
            .prop_map(|(ranks, links, routes, list)| {
                let routes = (0u32..).zip(routes).map(|(at, route)| {
                    (
                        (at / ranks, at % ranks),
                        route.into_iter().collect::<Vec<u32>>(),
                    )
                });
                let network = Routed::new(ranks, links, routes);
                let mut flows = Flows::default();
                for (at, (source, away, bytes, release, cap, after)) in list.into_iter().enumerate()
                {
                    let after: Vec<u32> = match at {
                        0 => vec![],
                        _ => after.iter().map(|index| index.index(at) as u32).collect(),
                    };
                    let flow = Flow {
                        release: Time::from_ps(if release < 4 { 0 } else { release * 100_000 }),
                        rate_cap: (cap == 0)
                            .then(|| Rate::from_bits_per_second(700_000_000).unwrap()),
                        ..Flow::new(source, (source + away) % ranks, Bytes::new(bytes * 100))
                    };
                    flows.push(flow, &after);
                }
                (network, flows)
            })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn random_flows_end_when_the_slow_simulator_says((network, flows) in cases()) {
        let outcome = simulate_flows(&network, &flows, &FlowOptions::default()).unwrap();
        for (at, expected) in slow(&network, &flows).into_iter().enumerate() {
            let end = outcome.flows.end[at].ps() as f64;
            let off = (end - expected).abs();
            prop_assert!(
                off <= 1.0 + 1e-9 * expected, "flow {at}: {end} ps, {expected} ps expected"
            );
        }
        // Every byte of every flow crosses every link of its route, once.
        let mut bytes = vec![0; network.links().len()];
        for at in 0..flows.len() {
            let flow = flows.flow(at);
            let mut route = Vec::new();
            network.route(flow.source, flow.destination, &mut route);
            for link in route {
                let moves = flow.bytes.get();
                bytes[link as usize] += moves;
            }
        }
        prop_assert_eq!(&outcome.links.bytes, &bytes);
        // No link carries more than its rate does in the time in which it is used, and the use
        // over time adds up to the same bytes.
        let mut capacity = 0.0;
        let mut moved = 0.0;
        for ((link, &bytes), busy) in network.links().iter().zip(&bytes).zip(&outcome.links.busy) {
            if link.sharing == Sharing::Shared {
                let rate = link.rate.bits_per_second() as f64 / 8e12;
                prop_assert!(bytes as f64 <= rate * (busy.ps() as f64 + 1.0) * (1.0 + 1e-9));
                capacity += rate;
                moved += bytes as f64;
            }
        }
        if capacity > 0.0 {
            let bin = outcome.profile.bin.ps() as f64;
            let used: f64 = outcome.profile.share.iter().map(|share| share * bin * capacity).sum();
            prop_assert!((used - moved).abs() <= 1e-6 * moved, "{} of {}", used, moved);
            let highest = outcome.profile.share.iter().copied().fold(0.0, f64::max);
            prop_assert!(highest <= 1.0 + 1e-9);
        }
        // The critical path leads to the end without a hole.
        let path = &outcome.critical_path;
        prop_assert_eq!(path.last().unwrap().end, outcome.time);
        prop_assert!(path.windows(2).all(|pair| pair[0].end == pair[1].start));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn use_of_links_adds_up_to_their_bytes_and_stays_within_their_rate(
        (network, flows) in cases()
    ) {
        for bin_ps in [30_000u64, 777_777, 10_000_000_000] {
            let bin = LinkBin::Length(Time::from_ps(bin_ps));
            let options = FlowOptions { link_bin: Some(bin), ..FlowOptions::default() };
            let outcome = simulate_flows(&network, &flows, &options).unwrap();
            let plain = simulate_flows(&network, &flows, &FlowOptions::default()).unwrap();
            prop_assert_eq!(&outcome.flows, &plain.flows);
            let used = outcome.link_use.unwrap();
            prop_assert!(used.bin.ps() % bin_ps == 0);
            prop_assert!(used.bins * network.links().len() <= (1 << 24) + network.links().len());
            prop_assert_eq!(used.bytes.len(), used.bins * network.links().len());
            for (index, link) in network.links().iter().enumerate() {
                let bytes = &used.bytes[index * used.bins..][..used.bins];
                let carried = outcome.links.bytes[index] as f64;
                let sum: f64 = bytes.iter().sum();
                prop_assert!((sum - carried).abs() <= 1e-6 * carried + 1e-3, "{sum}, {carried}");
                let most = link.rate.bits_per_second() as f64 / 8e12 * used.bin.ps() as f64;
                if link.sharing == Sharing::Shared {
                    let over = bytes.iter().find(|&&bytes| bytes > most * (1.0 + 1e-6) + 1e-9);
                    prop_assert_eq!(over, None, "{}", most);
                }
            }
        }
    }
}
