//! Bounds of servers joined by light.
//!
//! **Merged servers.** Replace each server by one rank that has the ports of all its GPUs, on a
//! machine with the fibres or ports of all rails. Each plan of the servers is a plan of this
//! machine: transfers within a server disappear, and all others keep their slots and circuits. So
//! every bound of the merged machine holds for the servers (theorem J1). The merged collective is
//! what the servers must exchange: blocks of all GPUs of a server form one block, and of sums only
//! the contributions of one GPU of each server count. A circuit may carry merged blocks in parts,
//! so bounds on slots are those for any load.

use opticoll_base::spec::Spec;
use opticoll_base::units::{Bytes, UnitError};
use opticoll_fabric::fabric::Fabric;
use opticoll_fabric::family::gpu_servers::{Layout, ServersOnLight};
use opticoll_plan::collective::{Collective, CollectiveKind};

/// Machine with one rank for each server, and the collective among these ranks.
pub(super) struct Merged {
    pub(super) fabric: Fabric,
    pub(super) collective: Collective,
}

/// Returns the merged machine. Returns `None` in the layout `flat`, for a barrier or a demand, and
/// if opticoll does not accept the merged specification (too many fibres or ports).
pub(super) fn merged(servers: &ServersOnLight, collective: &Collective) -> Option<Merged> {
    let outside = servers.outside();
    let is_barrier = collective.kind() == CollectiveKind::Barrier;
    if outside.layout == Layout::Flat || collective.demand().is_some() || is_barrier {
        return None;
    }
    let spec = outside.fabric.spec();
    let spec = match spec.option("fibres") {
        Some(_) => multiplied(
            &spec,
            &["fibres", "ports", "transmitters", "receivers", "converters"],
            outside.per_box,
        )?,
        None => multiplied(&spec, &["ports"], outside.per_box)?.without("switch_ports"),
    };
    let fabric = Fabric::parse(&spec.to_string()).ok()?;
    let among = Collective::new(collective.kind(), fabric.ranks()).ok()?;
    let among = among.with_root(collective.root() / outside.per_box).ok()?;
    Some(Merged {
        fabric,
        collective: among,
    })
}

/// Returns `spec` with each of `options` that is a number multiplied by `factor`.
fn multiplied(spec: &Spec, options: &[&str], factor: u32) -> Option<Spec> {
    let mut product = spec.clone();
    for option in options {
        let Some(count) = spec
            .option(option)
            .and_then(|text| text.parse::<u32>().ok())
        else {
            continue;
        };
        let count = count.checked_mul(factor)?;
        product = product.without(option).with(option, count);
    }
    Some(product)
}

/// Returns the size of the merged collective.
///
/// # Errors
/// The size exceeds 64 bits.
pub(super) fn merged_size(
    servers: &ServersOnLight,
    collective: &Collective,
    size: Bytes,
) -> Result<Bytes, UnitError> {
    use CollectiveKind::{AllGather, AllToAll, Gather, Scatter};
    let block = match collective.kind() {
        AllGather | Gather | Scatter => size,
        // Blocks may differ by a byte; each block counts as the smallest.
        AllToAll => {
            let ranks = u64::from(collective.ranks());
            Bytes::new(size.get() / ranks * ranks)
        }
        _ => return Ok(size),
    };
    let mut blocks = 0..servers.outside().per_box;
    blocks.try_fold(Bytes::default(), |sum, _| sum.plus(block))
}
