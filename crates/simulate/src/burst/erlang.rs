//! Theoretical burst loss of a single link, and of networks with converters at every node.
//!
//! **Erlang.** Let a link have W wavelengths, Poisson arrivals, and an offered load of A erlang.
//! The link loses the share B(A, W) of its bursts, whatever the distribution of their lengths: B(A,
//! 0) = 1, B(A, n) = A B(A, n-1) / (n + A B(A, n-1)) (Erlang, 1917).
//!
//! **Engset.** Let S sources send and pause, each with an offered load of a erlang during its
//! pauses. The sources lose the share E(W) of their calls: E(0) = 1, E(n) = (S - n) a E(n-1) / (n +
//! (S - n) a E(n-1)) (Engset, 1918).
//!
//! **Fixed point.** Consider a network with conversion at every node, and assume that links are
//! independent. Each route r has the offered load a_r. The load A_j of link j is the sum over all
//! routes r through j of the part of a_r that passes the earlier links of r: A_j = sum over r of
//! a_r times product over i before j on r of (1 - B_i), with B_j = B(A_j, W) (Rosberg, Vu, Zukerman
//! and White, Performance analyses of optical burst-switching networks, 2003). The iteration starts
//! without loss. The real loss is lower, because traffic that has passed a link is smoother than a
//! Poisson process.

use super::network::BurstNetwork;
use super::settings::Destinations;

/// Returns Erlang's B: the share of lost bursts on a link with `servers` wavelengths and an offered
/// load of `load` erlang.
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

/// Returns Engset's call congestion: the share of lost calls of `sources` sources on `servers`
/// wavelengths. Each source offers `load` erlang during its pauses.
pub fn engset(sources: u32, load: f64, servers: u32) -> f64 {
    let mut loss = 1.0;
    for server in 1..=servers {
        let offered = f64::from(sources.saturating_sub(server)) * load * loss;
        loss = offered / (f64::from(server) + offered);
    }
    loss
}

/// Fixed point of the losses in a network.
#[derive(Debug, Clone, PartialEq)]
pub struct FixedPoint {
    /// Share of lost bursts among all bursts, including bursts between hosts of the same node.
    pub loss: f64,
    /// Share of lost bursts among the bursts between different nodes.
    pub loss_between_nodes: f64,
    /// Load of each link in erlang after the loss on earlier links, indexed by link.
    pub offered: Vec<f64>,
}

/// Computes the fixed point of a network with conversion at every node and fixed routes. Each host
/// is a Poisson source with an offered load of `offered_load` erlang.
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
            // Damping: in one iteration, a lower loss on one link raises the load of the next link.
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
