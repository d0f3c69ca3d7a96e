//! What a simulation found: columns per slot, link and rank, and totals.

use crate::units::Time;

/// One entry per slot.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SlotColumns {
    /// When the slot's first lightpath began to be set up or to send.
    pub start: Vec<Time>,
    /// When the slot's last lightpath had delivered.
    pub end: Vec<Time>,
    /// The reconfiguration charged to the slot.
    pub reconfiguration: Vec<Time>,
    /// The number of lightpaths.
    pub lightpaths: Vec<u64>,
}

/// One entry per link: `direction * ranks + link`, where clockwise link i leads from rank i to
/// i + 1 and counter-clockwise link i from rank i to i - 1.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LinkColumns {
    /// The time that lightpaths held channels of the link, summed over channels.
    pub busy: Vec<Time>,
    /// Bytes that crossed the link.
    pub bytes: Vec<u64>,
}

/// One entry per rank.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RankColumns {
    /// Bytes sent, relayed ones included.
    pub sent: Vec<u64>,
    /// Bytes received.
    pub received: Vec<u64>,
    /// When the rank's last transfer ended.
    pub finish: Vec<Time>,
}

/// A transfer on the critical path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Critical {
    /// The transfer's index in the plan.
    pub transfer: usize,
    /// When it (or the reconfiguration before it) began.
    pub start: Time,
    /// When it had delivered.
    pub end: Time,
}

/// The result of a simulation.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The simulator.
    pub simulator: &'static str,
    /// The policy.
    pub policy: &'static str,
    /// From the start to the last delivery.
    pub time: Time,
    /// Slots to which a reconfiguration was charged.
    pub reconfigurations: u64,
    /// The share of link-wavelength-slots in use, 0 to 1.
    pub utilisation: f64,
    /// Per slot. Empty for a closed form.
    pub slots: SlotColumns,
    /// Per link. Empty for a closed form.
    pub links: LinkColumns,
    /// Per rank. Empty for a closed form.
    pub ranks: RankColumns,
    /// A chain of transfers, each waiting for the one before, that takes the whole time.
    pub critical_path: Vec<Critical>,
}
