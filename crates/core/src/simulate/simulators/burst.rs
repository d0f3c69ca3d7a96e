//! The record of `burst`.

use super::{Simulator, Unfit};

pub(super) const RECORD: Simulator = Simulator {
    name: "burst",
    summary: "Bursts and lightpaths that reserve wavelengths on the links of a network, and may be blocked",
    citation: "Qiao and Yoo, Optical Burst Switching, 1999; Matsuoka et al., MPI Collective \
               Communication over OBS Grid",
    applies: |_, _| {
        Err(Unfit::Fabric(
            "it carries bursts of light and single messages, no plans; use traffic, congestion or replay",
        ))
    },
    run: None,
    live: None,
};
