//! Channels: parallel parts of the data, each of which leaves a group of ranks at a different rank.

use super::Request;
use opticoll_base::spec::{OptionRecord, Role, SpecError};
use opticoll_fabric::fabric::{Fabric, WrongFamily};

/// Option `channels` of the parallel rings and trees of NCCL. [`channels`] reads the option.
pub(crate) const CHANNELS: OptionRecord = OptionRecord {
    role: Role::Channels,
    tries: &["all"],
    ..OptionRecord::new(
        "channels",
        "number of parallel parts of the data; each part leaves a group, such as a server, at \
        a different rank",
    )
    .range("1 to the number of ranks of a group; all for this number")
    .default("1, which ignores the groups")
};

/// Returns the number of channels that option `channels` requests, 1 by default.
pub(crate) fn channels(request: &Request<'_>) -> Result<u32, SpecError> {
    let (spec, max_channels) = (request.spec, group_size(request.fabric));
    let requested = match spec.option(CHANNELS.name) {
        Some("all") => Some(max_channels),
        _ => spec.count(CHANNELS.name, 1, u32::MAX)?,
    };
    let requested = requested.unwrap_or(1);
    match (requested > max_channels, max_channels) {
        (false, _) => Ok(requested),
        (true, 1) => {
            let problem = "this fabric has no groups of ranks, such as servers: leave it out";
            Err(spec.refuse(CHANNELS.name, problem))
        }
        (true, _) => {
            let problem = format!(
                "a group has {max_channels} ranks here: give at most {max_channels}, or all"
            );
            Err(spec.refuse(CHANNELS.name, problem))
        }
    }
}

/// Returns the number of ranks per group, or 1 if the ranks form no groups.
pub(crate) fn group_size(fabric: &Fabric) -> u32 {
    fabric.group_size().unwrap_or(1)
}

/// Returns the number of ranks per group of a fabric that has several groups of several ranks.
///
/// # Errors
/// The fabric has no such groups.
pub(crate) fn size_of_several_groups(request: &Request<'_>) -> Result<u32, WrongFamily> {
    let size = group_size(request.fabric);
    if size > 1 && size < request.ranks() {
        return Ok(size);
    }
    Err(WrongFamily {
        what: request.name,
        needed: "gpu_servers with several boxes",
        family: request.fabric.family(),
        nature: request.fabric.nature(),
    })
}

/// Returns whether each rank has its own links out of its group, besides its links within the
/// group. This is assumed if there are several groups and rank 0 has several links.
pub(crate) fn ranks_leave_groups_by_own_links(fabric: &Fabric) -> bool {
    let Some(network) = fabric.network() else {
        return false;
    };
    let is_at_first = |&(from, to, both_ways): &(u32, u32, bool)| from == 0 || both_ways && to == 0;
    let leaving = network.wiring().ends().filter(is_at_first).count();
    (2..fabric.ranks()).contains(&group_size(fabric)) && leaving > 1
}
