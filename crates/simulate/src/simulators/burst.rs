//! The record of `burst`. It times no plans, and has messages of its own way: light on request, refused and asked for
//! again, over a network whose links have wavelengths and whose ranks have hosts, which no [`Fabric`] is. It stands
//! here to be listed, and to be refused by name with what would do.
//!
//! [`Fabric`]: opticoll_fabric::fabric::Fabric

use crate::method::{Simulator, Unfit};

pub(super) const RECORD: Simulator = Simulator::new(
    "burst",
    "Bursts and lightpaths that reserve wavelengths on links, and may be blocked",
    "Qiao and Yoo, Optical Burst Switching, 1999; Matsuoka et al., MPI Collective \
               Communication over OBS Grid",
    |_, _| {
        Err(Unfit::Fabric(
            "it carries bursts of light and single messages, no plans; use traffic, congestion or replay",
        ))
    },
);
