//! Result of a simulation: columns per slot, link and rank, and totals.

pub(crate) mod meter;
pub mod packets;

use crate::table::{Column, Description, Details, Field, Part, Table, Values};
use opticoll_base::units::Time;

crate::columns! {
    /// A row per slot, or per step on an electrical fabric.
    #[derive(Debug, Clone, PartialEq, Eq, Default)]
    pub struct SlotColumns {
        /// Start of the setup or of the transmission of the slot's first circuit.
        pub start: Time,
        /// Last delivery of the slot.
        pub end: Time,
        /// Reconfiguration time charged to the slot.
        pub reconfiguration: Time,
        /// Number of circuits, or of messages on an electrical fabric.
        pub lightpaths: u64,
    }
}

crate::columns! {
    /// A row per link. On a ring clockwise link i leads from rank i to i + 1, counter-clockwise
    /// link i from rank i to i - 1. On a grid of tunable circuits a row per transmitter, on a grid
    /// of lightpaths a row per port.
    #[derive(Debug, Clone, PartialEq, Eq, Default)]
    pub struct LinkColumns shaped {
        /// Time for which the link's channels were held, summed over channels.
        pub busy: Time,
        /// Bytes that crossed the link.
        pub bytes: u64 as "B",
    }
}

crate::columns! {
    /// A row per rank.
    #[derive(Debug, Clone, PartialEq, Eq, Default)]
    pub struct RankColumns {
        /// Bytes sent, relayed ones included.
        pub sent: u64 as "B",
        /// Bytes received.
        pub received: u64 as "B",
        /// End of the rank's last transfer.
        pub finish: Time,
    }
}

crate::rows! {
    /// A row per transfer of the critical path: each transfer waits for the transfer before it,
    /// from the start to the last delivery.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Critical {
        /// Index of the transfer in the plan.
        pub transfer: usize,
        /// Start of the transfer, or of the reconfiguration before it.
        pub start: Time,
        /// Last delivery of the transfer.
        pub end: Time,
    }
}

crate::rows! {
    /// A row per setting that differs from the plain model.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct ChangedSetting {
        /// Name of the setting.
        pub name: &'static str,
        /// Value of the setting, with its unit.
        pub value: String,
        /// Value of the setting in the plain model.
        pub plain: &'static str,
    }
}

crate::totals! {
    /// Result of a simulation.
    #[derive(Debug, Clone, PartialEq, Default)]
    pub struct Outcome {
        /// The simulator.
        pub simulator: &'static str,
        /// The policy; empty on an electrical fabric, which has no circuits.
        pub policy: Option<&'static str>,
        /// The start rule; empty for circuits.
        pub start: Option<&'static str>,
        /// Time from the start to the last delivery.
        pub time: Time,
        /// Number of reconfigurations charged.
        pub reconfigurations: u64,
        /// Share of link-wavelength-slots in use, 0 to 1; on an electrical fabric, share of the
        /// capacity of all links.
        pub utilisation: f64,
        /// Settings that differ from the plain model.
        pub settings: Vec<ChangedSetting>,
        /// Results per slot. Empty if flows were not recorded.
        pub slots: SlotColumns,
        /// Results per link; on an electrical fabric in the order of the network's link numbers.
        pub links: LinkColumns,
        /// Per rank.
        pub ranks: RankColumns,
        /// Chain of transfers from the start to the last delivery, each waiting for the transfer
        /// before it.
        pub critical_path: Vec<Critical>,
        /// Further results of the simulator.
        pub details: Details,
    }
}

crate::columns! {
    /// A row per rank.
    #[derive(Debug, Clone, PartialEq, Eq, Default)]
    pub struct ControlColumns {
        /// Control messages that the rank sent.
        pub control_messages: u32,
    }
}

crate::columns! {
    /// A row per flow of a transmitter to a receiver, in the order of the plan.
    #[derive(Debug, Clone, PartialEq, Eq, Default)]
    pub struct TunedFlows {
        /// Sending rank.
        pub source: u32,
        /// Receiving rank.
        pub destination: u32,
        /// The plane: 0 row, 1 column.
        pub plane: u8,
        /// The wavelength.
        pub wavelength: u16,
        /// Time of the request; on a cached circuit, start of the transmission.
        pub begin: Time,
        /// Time at which the first bit was sent.
        pub start: Time,
        /// Time at which the last bit was sent.
        pub sent: Time,
        /// Time at which the last bit arrived.
        pub end: Time,
    }
}

crate::totals! {
    /// Costs of tuning and control on a grid of tunable circuits. The times along the critical path
    /// add up to the whole time; these times and the messages are results of the control simulator.
    #[derive(Debug, Clone, PartialEq, Eq, Default)]
    pub struct Tuned {
        /// Number of control messages, including messages of a central controller.
        pub control_messages: u64,
        /// Number of control messages that a central controller sent.
        pub controller_messages: u64,
        /// Maximum number of control messages of a rank.
        pub control_messages_per_rank: u32,
        /// Number of control messages that revoked a cached circuit.
        pub revocations: u64,
        /// Time to set the slow switches once for a task, before its first collective; not part of
        /// the simulated time.
        pub slow_switch: Time,
        /// Time along the critical path in which data are sent.
        pub path_transmission: Time,
        /// Time along the critical path in which lasers are tuned and receivers lock.
        pub path_tuning: Time,
        /// Time along the critical path in which requests and grants are in flight, or a central
        /// controller handles requests.
        pub path_control: Time,
        /// Time along the critical path in which data are in flight.
        pub path_latency: Time,
        /// Time along the critical path in which requests wait in the queue of a receiver or of a
        /// central controller.
        pub path_waiting: Time,
        /// Results per rank. Empty without control.
        pub ranks: ControlColumns,
        /// Results per flow. Empty without control.
        pub flows: TunedFlows,
    }
}

crate::columns! {
    /// A row per link.
    #[derive(Debug, Clone, PartialEq, Default)]
    pub struct LinkShares {
        /// Bytes of the link divided by the bytes that its rate carries in the whole time.
        pub utilisation: f64,
    }
}

crate::columns! {
    /// A row per transfer of the critical path: each transfer waits for the transfer before it,
    /// from the start to the last delivery.
    #[derive(Debug, Clone, PartialEq, Eq, Default)]
    pub struct PathColumns {
        /// Link that bounds the flow; empty if the flow's own rate limit bounds it, or nothing
        /// does.
        pub bottleneck: Option<u32>,
    }
}

crate::totals! {
    /// Bottlenecks of a plan whose transfers share links.
    #[derive(Debug, Clone, PartialEq, Default)]
    pub struct Flowing {
        /// Link that bounds the flows of the critical path for the longest time; in the packet
        /// simulator, link that was sending longest.
        pub bottleneck: Option<u32>,
        /// Link with the highest utilisation; empty if no byte moved.
        pub most_loaded_link: Option<u32>,
        /// Per link.
        pub links: LinkShares,
        /// Per transfer of the critical path.
        pub critical_path: PathColumns,
        /// Use of each link over time, if it was requested.
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
            row: "A row per link and bin; the last bin ends at or after the end of the run.".into(),
            shape: vec![
                ("link", used.bytes.len() / used.bins.max(1)),
                ("bin", used.bins),
            ],
            columns: vec![Column::new(
                "bytes",
                "B",
                "Bytes carried. Divided by the length of a bin, the mean rate in the bin.",
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
