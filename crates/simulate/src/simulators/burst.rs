//! Record of the simulator `burst`.
//!
//! The simulator does not run plans. It simulates messages over lightpaths that are set up on
//! request, on graphs of fibres. The record exists so that the simulator is listed, and so that
//! plans are rejected with a hint.

use crate::timing_model::{Simulator, Unfit};

pub(super) const RECORD: Simulator = Simulator::new(
    "burst",
    "Bursts and lightpaths that reserve wavelengths on links, and may be blocked",
    "Qiao and Yoo, Optical Burst Switching, 1999; Matsuoka et al., MPI Collective \
               Communication over OBS Grid",
    |_, _| {
        Err(Unfit::Fabric(
            "it carries bursts of light and single messages, not plans; use traffic, congestion or \
             replay",
        ))
    },
);
