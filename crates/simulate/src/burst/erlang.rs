//! Loss by theory: one link, and networks with full conversion.
//!
//! A link of W wavelengths that is offered A Erlang by Poisson arrivals loses B(A, W), whatever
//! the distribution of lengths: B(A, 0) = 1, B(A, n) = A B(A, n-1) / (n + A B(A, n-1)) (Erlang, 1917).
//! S sources that
//! pause, each offering a Erlang while it pauses, lose E(W) of their calls: E(0) = 1,
//! E(n) = (S - n) a E(n-1) / (n + (S - n) a E(n-1)) (Engset, 1918).
//!
//! In a network with conversion everywhere, links are taken to be independent, and link j to
//! be offered what the links before it on each route r let pass: A_j = sum over r of a_r times
//! product over i before j on r of (1 - B_i), with B_j = B(A_j, W) (Rosberg, Vu, Zukerman and White, Performance
//! analyses of optical burst-switching networks, 2003). It is iterated from no loss at all. Real loss is
//! lower: what has passed a link is smoother than a Poisson process.

use super::network::BurstNetwork;
use super::settings::Destinations;

/// Erlang's B: the loss of `servers` wavelengths that are offered `load` Erlang.
///
/// ```
/// let loss = opticoll_simulate::burst::erlang::erlang_b(10.0, 10);
/// assert!((loss - 0.21458).abs() < 5e-6);
/// ```
pub fn erlang_b(load: f64, servers: u32) -> f64 {
    let mut loss = 1.0;
    for server in 1..=servers {
        loss = load * loss / (f64::from(server) + load * loss);
    }
    loss
}

/// Engset's call congestion: the share of lost calls of `sources` that each offer `load` Erlang while
/// they pause.
pub fn engset(sources: u32, load: f64, servers: u32) -> f64 {
    let mut loss = 1.0;
    for server in 1..=servers {
        let offered = f64::from(sources.saturating_sub(server)) * load * loss;
        loss = offered / (f64::from(server) + offered);
    }
    loss
}

/// What the fixed point says of a network.
#[derive(Debug, Clone, PartialEq)]
pub struct FixedPoint {
    /// Loss of a burst, those within nodes included.
    pub loss: f64,
    /// Loss of a burst between nodes.
    pub loss_between_nodes: f64,
    /// Erlang offered to each link by what the links before let pass.
    pub offered: Vec<f64>,
}

/// The fixed point of a network with full conversion whose hosts each offer `offered_load` Erlang by
/// Poisson processes, over the fabric's routes.
pub fn fixed_point(
    network: &BurstNetwork,
    offered_load: f64,
    destinations: Destinations,
) -> FixedPoint {
    let nodes = network.nodes();
    let at_node = f64::from(network.hosts_per_node());
    let everyone = f64::from(network.hosts()) - 1.0;
    let (partners, inside) = match destinations {
        Destinations::Everyone => (everyone, (at_node - 1.0) / everyone),
        Destinations::OtherNodes => (at_node * f64::from(nodes - 1), 0.0),
    };
    let load = at_node * offered_load * at_node / partners;
    let pairs = || (0..nodes).flat_map(|from| (0..nodes).map(move |to| (from, to)));
    let routes: Vec<&[u32]> = pairs()
        .filter(|(from, to)| from != to)
        .map(|(from, to)| &*network.routes(from, to)[0])
        .collect();
    let mut losses = vec![0.0; network.links().len()];
    let mut offered = losses.clone();
    for _ in 0..10_000 {
        offered.fill(0.0);
        for route in &routes {
            let mut passing = load;
            for link in *route {
                offered[*link as usize] += passing;
                passing *= 1.0 - losses[*link as usize];
            }
        }
        let mut change: f64 = 0.0;
        for (loss, load) in losses.iter_mut().zip(&offered) {
            let next = erlang_b(*load, network.wavelengths());
            change = change.max((next - *loss).abs() / next.max(1e-300));
            // Half-way, since a link that lost less before is offered more now.
            *loss = 0.5 * (*loss + next);
        }
        if change < 1e-12 {
            break;
        }
    }
    let passed = |route: &&[u32]| -> f64 {
        let through = route.iter().map(|link| 1.0 - losses[*link as usize]);
        through.product()
    };
    let mean = routes.iter().map(passed).sum::<f64>() / (routes.len() as f64).max(1.0);
    FixedPoint {
        loss: (1.0 - inside) * (1.0 - mean),
        loss_between_nodes: 1.0 - mean,
        offered,
    }
}
