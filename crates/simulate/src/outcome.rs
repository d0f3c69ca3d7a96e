//! Result of a simulation: columns per slot, link and rank, and totals.

pub(crate) mod meter;
pub mod packets;

use crate::table::{Column, Description, Details, Field, Part, Table, Values};
use opticoll_base::units::Time;

crate::columns! {
    /// One row per slot; on an electrical fabric per step.
    #[derive(Debug, Clone, PartialEq, Eq, Default)]
    pub struct SlotColumns {
        /// When the slot's first circuit began to be set up or to send.
        pub start: Time,
        /// When the slot's last circuit had delivered.
        pub end: Time,
        /// The reconfiguration charged to the slot.
        pub reconfiguration: Time,
        /// Number of circuits; of messages on an electrical fabric.
        pub lightpaths: u64,
    }
}

crate::columns! {
    /// One row per link. On a ring clockwise link i leads from rank i to i + 1, counter-clockwise
    /// link i from rank i to i - 1. On a grid of tunable circuits one per transmitter, on a grid of
    /// lightpaths one per port.
    #[derive(Debug, Clone, PartialEq, Eq, Default)]
    pub struct LinkColumns shaped {
        /// Time for which the link's channels were held, summed over channels.
        pub busy: Time,
        /// Bytes that crossed the link.
        pub bytes: u64 as "B",
    }
}

crate::columns! {
    /// One row per rank.
    #[derive(Debug, Clone, PartialEq, Eq, Default)]
    pub struct RankColumns {
        /// Bytes sent, relayed ones included.
        pub sent: u64 as "B",
        /// Bytes received.
        pub received: u64 as "B",
        /// When the rank's last transfer ended.
        pub finish: Time,
    }
}

crate::rows! {
    /// One row per transfer of a chain, each waiting for the one before, that takes the whole time.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Critical {
        /// Index of the transfer in the plan.
        pub transfer: usize,
        /// When it (or the reconfiguration before it) began.
        pub start: Time,
        /// When it had delivered.
        pub end: Time,
    }
}

crate::rows! {
    /// One row per setting that differs from the plain model.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct ChangedSetting {
        /// Name of the setting.
        pub name: &'static str,
        /// Its value, with its unit.
        pub value: String,
        /// Its value in the plain model.
        pub plain: &'static str,
    }
}

crate::totals! {
    /// The result of a simulation.
    #[derive(Debug, Clone, PartialEq, Default)]
    pub struct Outcome {
        /// The simulator.
        pub simulator: &'static str,
        /// The policy; none on an electrical fabric, which has no circuits.
        pub policy: Option<&'static str>,
        /// The start rule; none for circuits.
        pub start: Option<&'static str>,
        /// From the start to the last delivery.
        pub time: Time,
        /// Number of reconfigurations charged.
        pub reconfigurations: u64,
        /// Share of link-wavelength-slots in use, 0 to 1; on an electrical fabric that of the
        /// capacity of all links.
        pub utilisation: f64,
        /// Settings that differ from the plain model.
        pub settings: Vec<ChangedSetting>,
        /// Per slot. Empty where flows were not recorded.
        pub slots: SlotColumns,
        /// Per link; on an electrical fabric by the numbers that its network has.
        pub links: LinkColumns,
        /// Per rank.
        pub ranks: RankColumns,
        /// A chain of transfers that takes the whole time.
        pub critical_path: Vec<Critical>,
        /// What the engine says beyond all that.
        pub details: Details,
    }
}

crate::columns! {
    /// One row per rank.
    #[derive(Debug, Clone, PartialEq, Eq, Default)]
    pub struct ControlColumns {
        /// Control messages that the rank sent.
        pub control_messages: u32,
    }
}

crate::columns! {
    /// One row per flow of a transmitter to a receiver, in the order of the plan.
    #[derive(Debug, Clone, PartialEq, Eq, Default)]
    pub struct TunedFlows {
        /// The rank that sends.
        pub source: u32,
        /// The rank that receives.
        pub destination: u32,
        /// The plane: 0 row, 1 column.
        pub plane: u8,
        /// The wavelength.
        pub wavelength: u16,
        /// When it was asked for; on a cached circuit, when it began to be sent.
        pub begin: Time,
        /// When its first bit was sent.
        pub start: Time,
        /// When its last bit was sent.
        pub sent: Time,
        /// When its last bit was there.
        pub end: Time,
    }
}

crate::totals! {
    /// What tuning and control cost on a grid of tunable circuits. The times along the critical
    /// path add up to the whole time; they and the messages are those of the control simulator.
    #[derive(Debug, Clone, PartialEq, Eq, Default)]
    pub struct Tuned {
        /// Number of control messages, those of a central controller included.
        pub control_messages: u64,
        /// Number of control messages that a central controller sent.
        pub controller_messages: u64,
        /// The most control messages of a rank.
        pub control_messages_per_rank: u32,
        /// Number of control messages that took a cached circuit back.
        pub revocations: u64,
        /// To set the slow switches, once for a task, before its first collective: not part of the
        /// time.
        pub slow_switch: Time,
        /// Along the critical path: data being sent.
        pub path_transmission: Time,
        /// Along the critical path: lasers being tuned and receivers locking.
        pub path_tuning: Time,
        /// Along the critical path: requests and grants in flight, and requests handled by a
        /// central controller.
        pub path_control: Time,
        /// Along the critical path: data in flight.
        pub path_latency: Time,
        /// Along the critical path: requests in the queue of a receiver or of a central controller.
        pub path_waiting: Time,
        /// Per rank. Empty without control.
        pub ranks: ControlColumns,
        /// Per flow. Empty without control.
        pub flows: TunedFlows,
    }
}

crate::columns! {
    /// One row per link.
    #[derive(Debug, Clone, PartialEq, Default)]
    pub struct LinkShares {
        /// Bytes over what the link's rate would have carried in the whole time.
        pub utilisation: f64,
    }
}

crate::columns! {
    /// One row per transfer of a chain, each waiting for the one before, that takes the whole time.
    #[derive(Debug, Clone, PartialEq, Eq, Default)]
    pub struct PathColumns {
        /// The link that bounds the flow; none where its own cap did, or nothing.
        pub bottleneck: Option<u32>,
    }
}

crate::totals! {
    /// What bounds a plan whose transfers flow over links that they share.
    #[derive(Debug, Clone, PartialEq, Default)]
    pub struct Flowing {
        /// The link that bounds the flows of the critical path for the longest time; of packets,
        /// that was sending longest.
        pub bottleneck: Option<u32>,
        /// The link with the highest utilisation; none where no byte moved.
        pub most_loaded_link: Option<u32>,
        /// Per link.
        pub links: LinkShares,
        /// Per transfer of the critical path.
        pub critical_path: PathColumns,
        /// Use of each link over time, where it was asked for.
        pub link_use: Option<LinkUse>,
        ;
        /// Use of the links over time.
        pub profile: Profile,
    }
}

/// Value of a column of [`FlowColumns`] that stands for no link or no flow.
pub const NONE: u32 = u32::MAX;

/// One entry per flow. Empty if flows were not recorded.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FlowColumns {
    /// Time at which its start rule and its release allowed the flow to start.
    pub start: Vec<Time>,
    /// Time at which its last byte had arrived, and had been received if the endpoints cost time.
    pub end: Vec<Time>,
    /// Link that bounded the flow at its lowest rate; [`NONE`] if its own rate limit did, or
    /// nothing.
    pub bottleneck: Vec<u32>,
    /// Flow whose end allowed the flow to start; [`NONE`] if there is no such flow.
    pub waited_for: Vec<u32>,
}

/// The share of all links' capacity in use over time.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Profile {
    /// Length of a bin.
    pub bin: Time,
    /// Mean share in each bin, 0 to 1. The last bin ends at or after the end of the run.
    pub share: Vec<f64>,
}

/// Bytes that each link carried over time.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LinkUse {
    /// Length of a bin.
    pub bin: Time,
    /// Number of bins of each link. The last bin ends at or after the end of the run.
    pub bins: usize,
    /// Bytes carried, at index `link * bins + bin`. Divided by the length of a bin, the mean rate
    /// in the bin.
    pub bytes: Vec<f64>,
}

impl Part for Option<LinkUse> {
    fn describe<'a>(&'a self, field: &Field, into: &mut Description<'a>) {
        let Some(used) = self else { return };
        let bin = Field {
            name: "link_use_bin",
            unit: "",
            meaning: "Length of a bin of the use of each link over time.",
        };
        used.bin.describe(&bin, into);
        into.table(Table {
            name: field.name,
            row: "One row per link and bin; the last bin ends at or after the end of the run."
                .into(),
            shape: vec![
                ("link", used.bytes.len() / used.bins.max(1)),
                ("bin", used.bins),
            ],
            columns: vec![Column::new(
                "bytes",
                "B",
                "Bytes carried; over the length of a bin, the mean rate in it.",
                Values::F64(&used.bytes),
            )],
        });
    }
}

/// Result of a flow-level simulation.
#[derive(Debug, Clone, PartialEq)]
pub struct FluidOutcome {
    /// Name of the start rule, or `dependencies`.
    pub start_rule: &'static str,
    /// Time from the start to the last delivery.
    pub time: Time,
    /// Number of flows.
    pub flow_count: u64,
    /// Columns per flow. Empty if flows were not recorded.
    pub flows: FlowColumns,
    /// Columns per link of the network: time with at least one flow, and bytes.
    pub links: LinkColumns,
    /// Use of each link over time, if it was requested.
    pub link_use: Option<LinkUse>,
    /// Bytes of each link divided by the bytes that its rate carries in the whole time, 0 to 1. A
    /// link that gives every flow its whole rate may exceed 1.
    pub utilisation: Vec<f64>,
    /// Link with the highest utilisation (the first of several); `None` if no byte moved.
    pub most_loaded_link: Option<u32>,
    /// Columns per rank.
    pub ranks: RankColumns,
    /// Use of all links together over time.
    pub profile: Profile,
    /// Chain of flows, each of which waited for the flow before it, up to the last delivery. Empty
    /// if flows were not recorded.
    pub critical_path: Vec<Critical>,
    /// Settings that differ from the plain model.
    pub settings: Vec<ChangedSetting>,
    /// Number of steps that were replayed from an equal step.
    pub replayed_steps: u64,
    /// True if no two flows could share a link, so that every time follows directly from earlier
    /// times.
    pub disjoint: bool,
}
