//! What a simulation found: columns per slot, link and rank, and totals.

pub mod packets;

use std::sync::Arc;

use crate::units::Time;
use packets::PacketOutcome;

/// One entry per slot.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SlotColumns {
    /// When the slot's first lightpath began to be set up or to send.
    pub start: Vec<Time>,
    /// When the slot's last lightpath had delivered.
    pub end: Vec<Time>,
    /// The reconfiguration charged to the slot.
    pub reconfiguration: Vec<Time>,
    /// The number of lightpaths; of messages on an electrical fabric.
    pub lightpaths: Vec<u64>,
}

/// One entry per link: `direction * ranks + link`, where clockwise link i leads from rank i to
/// i + 1 and counter-clockwise link i from rank i to i - 1. On a grid of tunable circuits one per
/// transmitter: `fibre * ranks + rank`; on a grid of light paths one per port, likewise.
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
    /// The policy; none on an electrical fabric, which has no circuits.
    pub policy: Option<&'static str>,
    /// From the start to the last delivery.
    pub time: Time,
    /// Slots to which a reconfiguration was charged.
    pub reconfigurations: u64,
    /// The share of link-wavelength-slots in use, 0 to 1; on an electrical fabric that of the capacity
    /// of all links.
    pub utilisation: f64,
    /// Per slot. Empty for a closed form, and where flows were not recorded.
    pub slots: SlotColumns,
    /// Per link; on an electrical fabric by the numbers that its network has. Empty for a closed form.
    pub links: LinkColumns,
    /// Per rank. Empty for a closed form.
    pub ranks: RankColumns,
    /// A chain of transfers, each waiting for the one before, that takes the whole time.
    pub critical_path: Vec<Critical>,
    /// What else flows and packets say; none for circuits.
    pub flowing: Option<Flowing>,
    /// What packets say beyond all that; none for other simulators.
    pub packets: Option<Arc<PacketOutcome>>,
    /// What else tunable circuits say; none elsewhere.
    pub tuned: Option<Tuned>,
}

/// What tuning and control cost on a grid of tunable circuits. The times along the critical path add up
/// to the whole time; they and the messages are those of the control simulator.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tuned {
    /// Control messages that each rank sent. Empty without control.
    pub messages: Vec<u32>,
    /// How many of them took a kept circuit back.
    pub revocations: u64,
    /// To set the slow switches, once for a task, before its first collective: not part of the time.
    pub slow_switch: Time,
    /// Along the critical path: data being sent.
    pub path_transmission: Time,
    /// Along the critical path: lasers being tuned and receivers locking.
    pub path_tuning: Time,
    /// Along the critical path: requests and grants under way.
    pub path_control: Time,
    /// Along the critical path: data under way.
    pub path_latency: Time,
    /// Along the critical path: requests in the queue of a receiver.
    pub path_waiting: Time,
    /// Every flow. Empty without control.
    pub flows: TunedFlows,
}

/// One entry per flow of a transmitter to a receiver, in the order of the plan.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TunedFlows {
    /// The rank that sends.
    pub source: Vec<u32>,
    /// The rank that receives.
    pub destination: Vec<u32>,
    /// The plane: 0 row, 1 column.
    pub fibre: Vec<u8>,
    /// The wavelength.
    pub wavelength: Vec<u16>,
    /// When it was asked for; on a kept circuit, when it began to be sent.
    pub begin: Vec<Time>,
    /// When its first bit was sent.
    pub start: Vec<Time>,
    /// When its last bit was sent.
    pub sent: Vec<Time>,
    /// When its last bit was there.
    pub end: Vec<Time>,
}

/// What bounds a plan whose transfers flow over links that they share.
#[derive(Debug, Clone, PartialEq)]
pub struct Flowing {
    /// The start rule.
    pub start_rule: &'static str,
    /// The link that bounds the flows of the critical path for the longest time.
    pub bottleneck: Option<u32>,
    /// The link that bounds each flow of the critical path; none where its own cap did, or nothing.
    pub path_bottlenecks: Vec<Option<u32>>,
    /// The link with the highest utilisation; none where no byte moved.
    pub most_loaded_link: Option<u32>,
    /// Per link: bytes over what its rate would have carried in the whole time.
    pub link_utilisation: Vec<f64>,
    /// Every setting that differs from the plain model.
    pub settings: Vec<Setting>,
    /// Use of the links over time.
    pub profile: Profile,
    /// Use of each link over time, where it was asked for.
    pub link_use: Option<LinkUse>,
}

/// No link, or no flow, in a column of [`FlowColumns`].
pub const NONE: u32 = u32::MAX;

/// One entry per flow. Empty where flows were not recorded.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FlowColumns {
    /// When the flow might start: its start rule and its release allowed it.
    pub start: Vec<Time>,
    /// When its last byte had arrived (and had been received, where that takes time).
    pub end: Vec<Time>,
    /// The link that bounded it when it was slowest; [`NONE`] where its own cap did, or nothing.
    pub bottleneck: Vec<u32>,
    /// The flow whose end let it start; [`NONE`] where there was none.
    pub waited_for: Vec<u32>,
}

/// The share of all links' capacity in use over time.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Profile {
    /// The length of a bin.
    pub bin: Time,
    /// The mean share in each bin, 0 to 1. The last bin ends at or after the end of the run.
    pub share: Vec<f64>,
}

/// The use of each link over time.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LinkUse {
    /// The length of a bin.
    pub bin: Time,
    /// Bins of each link. The last one ends at or after the end of the run.
    pub bins: usize,
    /// Bytes carried, at `link * bins + bin`; over the length of a bin, the mean rate in it.
    pub bytes: Vec<f64>,
}

/// A setting that differs from the plain model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// The setting.
    pub name: &'static str,
    /// Its value, with its unit.
    pub value: String,
    /// Its value in the plain model.
    pub plain: &'static str,
}

/// The result of a flow-level simulation.
#[derive(Debug, Clone, PartialEq)]
pub struct FluidOutcome {
    /// The start rule, or `dependencies`.
    pub start_rule: &'static str,
    /// From the start to the last delivery.
    pub time: Time,
    /// The number of flows.
    pub flow_count: u64,
    /// Per flow. Empty where flows were not recorded.
    pub flows: FlowColumns,
    /// Per link of the network: time with a flow on it, and bytes.
    pub links: LinkColumns,
    /// Use of each link over time, where it was asked for.
    pub link_use: Option<LinkUse>,
    /// Per link: bytes over what its rate would have carried in the whole time, 0 to 1. On a link
    /// of which each flow has the whole rate it may be more.
    pub utilisation: Vec<f64>,
    /// The link with the highest utilisation (the first of several); none where no byte moved.
    pub most_loaded_link: Option<u32>,
    /// Per rank.
    pub ranks: RankColumns,
    /// Use of the links over time.
    pub profile: Profile,
    /// A chain of flows, each waiting for the one before, up to the last delivery. Empty where
    /// flows were not recorded.
    pub critical_path: Vec<Critical>,
    /// Every setting that differs from the plain model.
    pub settings: Vec<Setting>,
    /// Steps that were replayed from an equal one.
    pub replayed_steps: u64,
    /// Whether no two flows could meet on a link, so that each time follows from earlier ones.
    pub disjoint: bool,
}
