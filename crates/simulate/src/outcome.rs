//! Result of a simulation: columns per slot, link and rank, and totals.

pub(crate) mod meter;
pub mod packets;

use crate::table::{Column, Description, Details, Field, Part, Table, Values};
use opticoll_base::units::Time;

crate::columns! {
    /// A row per slot, or per step on an electrical fabric.
    #[derive(Debug, Clone, PartialEq, Eq, Default)]
    pub struct SlotColumns {
        /// Time at which the slot's first circuit starts its setup or, without setup, its
        /// transmission.
        pub start: Time,
        /// Time of the last delivery of the slot.
        pub end: Time,
        /// Reconfiguration time charged to the slot.
        pub reconfiguration: Time,
        /// Number of circuits, or of messages on an electrical fabric.
        pub lightpaths: u64,
    }
}

crate::columns! {
    /// A row per link. On a ring, clockwise link i connects rank i to rank i + 1, and
    /// counter-clockwise link i connects rank i to rank i - 1. On a grid of tunable circuits, a row
    /// per transmitter. On a grid of lightpaths, a row per port.
    #[derive(Debug, Clone, PartialEq, Eq, Default)]
    pub struct LinkColumns shaped {
        /// Time for which the link's channels were occupied, summed over channels.
        pub busy: Time,
        /// Bytes that crossed the link.
        pub bytes: u64 as "B",
    }
}

crate::columns! {
    /// A row per rank.
    #[derive(Debug, Clone, PartialEq, Eq, Default)]
    pub struct RankColumns {
        /// Number of bytes sent, including relayed bytes.
        pub sent: u64 as "B",
        /// Bytes that the rank received.
        pub received: u64 as "B",
        /// Time at which the rank's last transfer ended.
        pub finish: Time,
    }
}

crate::rows! {
    /// A row per transfer of the critical path. Each transfer waits for the transfer before it, and
    /// the last transfer ends last.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Critical {
        /// Index of the transfer in the plan.
        pub transfer: usize,
        /// Time at which the transfer, or the reconfiguration before the transfer, started.
        pub start: Time,
        /// Time of the transfer's last delivery.
        pub end: Time,
    }
}

crate::rows! {
    /// A row per setting that differs from the plain model, in which every setting has its default.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct ChangedSetting {
        /// Name of the setting.
        pub name: &'static str,
        /// Value of the setting, with its unit.
        pub value: String,
        /// Value that the setting has in the plain model.
        pub plain: &'static str,
    }
}

crate::totals! {
    /// Result of a simulation.
    #[derive(Debug, Clone, PartialEq, Default)]
    pub struct Outcome {
        /// Name of the simulator.
        pub simulator: &'static str,
        /// Name of the policy; empty on an electrical fabric, which has no circuits.
        pub policy: Option<&'static str>,
        /// Name of the start rule; empty for circuits.
        pub start: Option<&'static str>,
        /// Time from the start to the last delivery.
        pub time: Time,
        /// Number of reconfigurations that the policy charged.
        pub reconfigurations: u64,
        /// Share of the network's capacity that was used, from 0 to 1. On a ring, the capacity is
        /// all channels in all slots; on an electrical fabric, the rates of all links over the
        /// whole time.
        pub utilisation: f64,
        /// Settings that differ from the plain model.
        pub settings: Vec<ChangedSetting>,
        /// Results per slot; empty if flows were not recorded.
        pub slots: SlotColumns,
        /// Results per link. On an electrical fabric, the rows are in the order of the network's
        /// link numbers.
        pub links: LinkColumns,
        /// Results per rank.
        pub ranks: RankColumns,
        /// Chain of transfers, each of which waits for the transfer before it; the last transfer
        /// ends last.
        pub critical_path: Vec<Critical>,
        /// Further results of the simulator.
        pub details: Details,
    }
}

crate::columns! {
    /// A row per rank.
    #[derive(Debug, Clone, PartialEq, Eq, Default)]
    pub struct ControlColumns {
        /// Number of control messages that the rank sent.
        pub control_messages: u32,
    }
}

crate::columns! {
    /// A row per flow from a transmitter to a receiver, in the order of the plan.
    #[derive(Debug, Clone, PartialEq, Eq, Default)]
    pub struct TunedFlows {
        /// Sending rank.
        pub source: u32,
        /// Receiving rank.
        pub destination: u32,
        /// Plane of the flow: 0 for the row, 1 for the column.
        pub plane: u8,
        /// Index of the flow's wavelength.
        pub wavelength: u16,
        /// Time of the request for the circuit. If the circuit was cached: time at which the
        /// transmission started.
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
    /// add up to the whole time. Only the `control` simulator computes these times and the numbers
    /// of messages.
    #[derive(Debug, Clone, PartialEq, Eq, Default)]
    pub struct Tuned {
        /// Number of control messages, including messages of a central controller.
        pub control_messages: u64,
        /// Number of control messages that a central controller sent.
        pub controller_messages: u64,
        /// Maximum over ranks of the number of control messages that a rank sent.
        pub control_messages_per_rank: u32,
        /// Number of control messages that revoked a cached circuit.
        pub revocations: u64,
        /// Time to set the slow switches once for a task, which is not part of the simulated time.
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
        /// Results per rank; empty for other simulators than `control`.
        pub ranks: ControlColumns,
        /// Results per flow; empty for other simulators than `control`.
        pub flows: TunedFlows,
    }
}

crate::columns! {
    /// A row per link.
    #[derive(Debug, Clone, PartialEq, Default)]
    pub struct LinkShares {
        /// Bytes that the link carried, divided by the bytes that its rate carries in the whole
        /// time.
        pub utilisation: f64,
    }
}

crate::columns! {
    /// A row per transfer of the critical path. Each transfer waits for the transfer before it, and
    /// the last transfer ends last.
    #[derive(Debug, Clone, PartialEq, Eq, Default)]
    pub struct PathColumns {
        /// Link that limits the rate of the transfer; empty if no link limits the rate.
        pub bottleneck: Option<u32>,
    }
}

crate::totals! {
    /// Bottlenecks of a plan whose transfers share links.
    #[derive(Debug, Clone, PartialEq, Default)]
    pub struct Flowing {
        /// Link that limits the flows of the critical path for the longest total time. In the
        /// packet simulator: link that was sending for the longest time.
        pub bottleneck: Option<u32>,
        /// Link with the highest utilisation; empty if no bytes were sent.
        pub most_loaded_link: Option<u32>,
        /// Results per link.
        pub links: LinkShares,
        /// Results per transfer of the critical path.
        pub critical_path: PathColumns,
        /// Bytes that each link carried over time, if they were requested.
        pub link_use: Option<LinkUse>,
        ;
        /// Share of the capacity of all links that was used over time.
        pub profile: Profile,
    }
}

/// Value that stands for no link, or for no flow, in the columns of [`FlowColumns`].
pub const NONE: u32 = u32::MAX;

/// Results per flow; each column is indexed by flow. The columns are empty if flows were not
/// recorded.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FlowColumns {
    /// Time from which the flow's start rule and release time allowed the flow to start.
    pub start: Vec<Time>,
    /// Time at which the flow's last byte had arrived. If endpoints cost time, the time at which
    /// the receiver had processed this byte.
    pub end: Vec<Time>,
    /// Index of the link that limited the flow when the flow's rate was lowest; [`NONE`] if no link
    /// limited the flow.
    pub bottleneck: Vec<u32>,
    /// Index of the flow whose end allowed this flow to start; [`NONE`] if there is no such flow.
    pub waited_for: Vec<u32>,
}

/// Share of the capacity of all links that was used over time.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Profile {
    /// Length of a time bin.
    pub bin: Time,
    /// Mean share in each time bin, from 0 to 1. The last bin ends at or after the end of the
    /// simulation.
    pub share: Vec<f64>,
}

/// Bytes that each link carried over time.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LinkUse {
    /// Length of a time bin.
    pub bin: Time,
    /// Number of time bins of each link. The last bin ends at or after the end of the simulation.
    pub bins: usize,
    /// Bytes that a link carried in a time bin, at index `link * bins + bin`. These bytes divided
    /// by the length of a bin are the link's mean rate in the bin.
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

/// Result of the `fluid` simulator.
#[derive(Debug, Clone, PartialEq)]
pub struct FluidOutcome {
    /// Name of the start rule, or `dependencies` if a program defines the order of the flows.
    pub start_rule: &'static str,
    /// Time from the start to the last delivery.
    pub time: Time,
    /// Number of flows.
    pub flow_count: u64,
    /// Results per flow; empty if flows were not recorded.
    pub flows: FlowColumns,
    /// Results per link of the network: the time in which the link carried at least one flow, and
    /// the bytes that crossed the link.
    pub links: LinkColumns,
    /// Bytes that each link carried over time, if they were requested.
    pub link_use: Option<LinkUse>,
    /// Utilisation of each link, indexed by link: the bytes that crossed the link, divided by the
    /// bytes that its rate carries in the whole time. A link that gives every flow its whole rate
    /// can exceed 1.
    pub utilisation: Vec<f64>,
    /// Index of the link with the highest utilisation, or of the first of several such links;
    /// `None` if no bytes were sent.
    pub most_loaded_link: Option<u32>,
    /// Results per rank.
    pub ranks: RankColumns,
    /// Share of the capacity of all links that was used over time.
    pub profile: Profile,
    /// Chain of flows, each of which waited for the flow before it; the last flow ends last. Empty
    /// if flows were not recorded.
    pub critical_path: Vec<Critical>,
    /// Settings that differ from the plain model.
    pub settings: Vec<ChangedSetting>,
    /// Number of steps whose times were copied from an equal step instead of being simulated.
    pub replayed_steps: u64,
    /// True if no two flows could share a link at the same time, so that every time followed
    /// directly from earlier times.
    pub disjoint: bool,
}
