//! Switch grid of the ODDL paper: tunable circuits through wavelength-selective switches.
//!
//! Nodes are the positions of a grid of n rows and m columns; node (r, c) has the number r * m + c.
//! Each node has two optical transceivers. One is connected to the switch of its row (port c of row
//! switch r), the other to the switch of its column (port r of column switch c). There are n
//! switches of m ports and m switches of n ports. Switches are set slowly, once per task. The
//! [`Configuration`] of a task names one output port for each input port i and wavelength l: light
//! of wavelength l that enters at port i leaves at this output port. For each flow, a node selects
//! its partner by tuning its laser, which takes nanoseconds. A receiver accepts any wavelength, one
//! burst at a time.
//!
//! The [`WavelengthPlan`] determines the wavelength between two ports. The ranks of a task are the
//! nodes that are allocated to the task, in increasing order. A node that leaves is no longer
//! allocated.

mod circuits;
mod components;
mod configuration;
mod failures;
mod light;

use crate::bill::{Bill, PartKind, TUNABLE};
use crate::fabric::loss::{FIXED, LossBudget, LossOptions, PassedLoss, Place, SWITCH};
use crate::fabric::options;
use crate::fabric::options::DefaultRule::*;
use crate::fabric::options::{Options, declare};
use crate::fabric::part::joined;
use crate::fabric::wiring::{CHOSEN, MAX_RANKS};
use crate::fabric::{Circuits, Fabric, FabricError, FamilyRecord, Machine, Named, Plane, Planes};
pub use components::{SwitchPort, Transceiver};
pub use configuration::{Configuration, SwitchConfiguration};
pub use light::{LIGHT, TunedLight};
use opticoll_base::names::plural;
use opticoll_base::spec::{OptionRecord, Role, Spec, SpecError};
use opticoll_base::units::{Rate, Time, UnitError};

opticoll_base::named_enum! {
    /// Rule that determines the wavelength between two ports of a switch.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum WavelengthPlan {
        /// Wavelength b joins port i to port i XOR 2^b. The number of wavelengths is the number of
        /// bits of a port number.
        Xor = "xor",
        /// Wavelength d of a switch with p ports leads from port i to port (i + d + 1) mod p. There
        /// are p - 1 wavelengths, which join all pairs of ports.
        Cyclic = "cyclic",
        /// The wavelengths are the colours of an edge colouring of the task's circuits. The number
        /// of wavelengths is the maximum number of partners of a port (Koenig's theorem).
        EdgeColouring = "edge_colouring",
    }
}

impl WavelengthPlan {
    /// Returns the wavelength from port `input` to port `output` of a switch with `ports` ports.
    /// Returns `None` if no wavelength joins the two ports, or if the plan is
    /// [`WavelengthPlan::EdgeColouring`], which has no formula.
    pub fn wavelength(self, ports: u32, input: u32, output: u32) -> Option<u32> {
        match self {
            WavelengthPlan::Xor => {
                let apart = input ^ output;
                apart.is_power_of_two().then(|| apart.ilog2())
            }
            WavelengthPlan::Cyclic if input != output => Some((output + ports - input) % ports - 1),
            WavelengthPlan::Cyclic | WavelengthPlan::EdgeColouring => None,
        }
    }

    /// Returns the number of wavelengths that join all ports of a switch with `ports` ports. For
    /// [`WavelengthPlan::EdgeColouring`], returns the maximum number.
    pub fn wavelengths(self, ports: u32) -> u32 {
        match self {
            WavelengthPlan::Xor => ports.next_power_of_two().ilog2(),
            WavelengthPlan::Cyclic | WavelengthPlan::EdgeColouring => ports.saturating_sub(1),
        }
    }
}

/// Nodes in a grid, with a switch for each row and each column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WssGrid {
    /// Number of rows, n.
    pub rows: u32,
    /// Number of columns, m.
    pub columns: u32,
    /// Rate of each transceiver, B.
    pub rate: Rate,
    /// Number of ports per switch, including unused ports.
    pub switch_ports: u32,
    /// Number of wavelengths of a tunable laser.
    pub wavelengths: u32,
    /// Time to tune a laser to another wavelength.
    pub tuning: Time,
    /// Guard time plus locking time of the receiver, after tuning.
    pub lock: Time,
    /// Delay of one control message. A request and its grant are two messages.
    pub control: Time,
    /// Time that a central controller needs per message; `None` without a controller.
    pub controller: Option<Time>,
    /// Delay from transmitter to receiver: propagation and processing of a message.
    pub latency: Time,
    /// Time to set the switches, once per task.
    pub slow_switch: Time,
    /// Rule that determines the wavelength between two ports.
    pub plan: WavelengthPlan,
    /// Node of each rank, indexed by rank, in increasing order.
    pub nodes: Vec<u32>,
    /// Transceivers that are out of order, sorted.
    pub dead_transceivers: Vec<Transceiver>,
    /// Switch ports that are out of order, sorted.
    pub dead_ports: Vec<SwitchPort>,
    /// Transceivers with a reduced rate, each as (transceiver, reduced rate), sorted.
    pub degraded: Vec<(Transceiver, Rate)>,
    /// Powers and losses of light; `None` if not given.
    pub budget: Option<LossBudget>,
}

const MAX_SIDE: u32 = 4096;
const MAX_PORTS: u32 = 1 << 16;

/// Record of the family.
pub const RECORD: FamilyRecord = FamilyRecord {
    name: "wss_grid",
    summary: "Grid of nodes with tunable lasers, a wavelength-selective switch per row and per \
        column",
    citation: "Li et al., Accelerate Distributed Deep Learning with a Fast Reconfigurable Optical \
               Network, OFC 2024",
    example: "wss_grid:rows=32,columns=32",
    options: || options::list(&RECORD, declared),
    build: |spec| options::read(spec, &RECORD, declared).map(Fabric::new),
    presets: &[],
};

const LOSS_OPTIONS: LossOptions = LossOptions {
    example: "launch_power=5dBm,sensitivity=-10dBm,switch_loss=2dB",
    launch_power: "power of a wavelength; with sensitivity it limits the losses",
    losses: &[SWITCH, FIXED],
    others: &[],
};

fn losses(budget: &LossBudget) -> Vec<PassedLoss> {
    vec![budget.fixed(), budget.at(Place::Through, "switch", 1)]
}

fn declared(options: &mut Options<'_, WssGrid>) -> Result<WssGrid, FabricError> {
    declare! { options of WssGrid;
        rows "rows" count(MAX_SIDE, Required) "rows of nodes";
        columns "columns" count(MAX_SIDE, Required) "columns of nodes";
    }
    let node_count = rows * columns;
    if node_count > MAX_RANKS {
        return Err(FabricError::TooLarge {
            family: RECORD.name,
            what: "ranks",
            count: node_count.into(),
            most: MAX_RANKS.into(),
        });
    }
    let longer = rows.max(columns);
    let wavelength_count = |spec: &Spec| {
        let needed = wavelength_plan(spec)?.wavelengths(longer).max(1);
        Ok(spec.count("wavelengths", 1, MAX_SIDE)?.unwrap_or(needed))
    };
    declare! { options of WssGrid;
        rate "rate" value(Printed(Rate::gigabits(100)))
            "rate of each of the two transceivers of a node" source CHOSEN;
        switch_ports "ports" option(
            |spec| Ok(spec.count("ports", longer, MAX_PORTS)?.unwrap_or(longer)),
            |ports| (*ports != longer).then(|| ports.to_string()))
            "ports of a switch" range "the longer side or more" default "the longer side";
        wavelengths "wavelengths" option(wavelength_count, |count| Some(count.to_string()))
            "channels of the tunable source"
            range "as many as the wavelength plan needs, or more"
            default "the maximum that the wavelength plan needs";
        tuning "tuning" value(Printed(Time::from_ps(10_500))) Reconfiguration
            "time to tune a laser" source "Li et al., OFC 2024: measured";
        lock "lock" value(Silent(Time::ZERO)) Reconfiguration
            "guard time and locking of the receiver";
        control "control" value(Silent(Time::ZERO)) Control
            "delay of one control message";
        controller "controller" option(
            |spec| Ok(spec.value("controller")?), |time| time.map(|time| time.to_string()))
            "time that a central controller needs for each request and release; none: \
            receivers answer requests"
            unit "s" range "0s or more" default "none";
        latency "latency" value(Silent(Time::ZERO)) "delay from transmitter to receiver";
        slow_switch "slow_switch" value(Printed(Time::from_ps(100_000_000_000)))
            "time to set the switches, once for a task";
        plan "plan" option(wavelength_plan, |plan| Some(plan.name().into()))
            "rule for the wavelength between two switch ports"
            range "xor, cyclic, edge_colouring" default "edge_colouring";
        nodes "nodes" option(
            |spec| Ok(components::read_nodes(spec, "nodes", node_count)?),
            |nodes| (nodes.len() as u32 != node_count).then(|| components::print_nodes(nodes)))
            "nodes allocated to the task"
            range "numbers and ranges joined by +: 0-15+32-47" default "all";
        dead_transceivers "dead_transceivers" list(
            |spec| components::read_transceivers(spec, node_count),
            |dead| joined(dead, Transceiver::to_string))
            "failed transceivers, by node and plane" range "5.row+9.column";
        dead_ports "dead_ports" list(
            |spec| components::read_ports(spec, rows, columns),
            |dead| joined(dead, SwitchPort::to_string))
            "failed switch ports, by switch and port" range "row3.2+column1.0";
        degraded "degraded" list(
            |spec| components::read_degraded(spec, node_count, rate),
            components::print_degraded)
            Broken "slower transceivers (sending and receiving) and their rates"
            range "5.row@25Gb/s+9.column@50Gb/s";
    }
    let budget = LOSS_OPTIONS.uniform(options, losses, |machine| machine.budget)?;
    Ok(WssGrid {
        rows,
        columns,
        rate,
        switch_ports,
        wavelengths,
        tuning,
        lock,
        control,
        controller,
        latency,
        slow_switch,
        plan,
        nodes,
        dead_transceivers,
        dead_ports,
        degraded,
        budget,
    })
}

fn wavelength_plan(spec: &Spec) -> Result<WavelengthPlan, FabricError> {
    let name = spec.option("plan").unwrap_or("edge_colouring");
    let mut plans = WavelengthPlan::ALL.into_iter();
    let plan = plans.find(|plan| plan.name() == name);
    plan.ok_or_else(|| {
        let problem = "must be `xor`, `cyclic` or `edge_colouring`";
        spec.refuse("plan", problem).into()
    })
}

impl WssGrid {
    /// Returns the minimum time from a request to the first bit: control messages, processing by a
    /// controller, tuning and locking.
    pub fn setup_time(&self) -> Result<Time, UnitError> {
        self.request_time()?.plus(self.tuning)?.plus(self.lock)
    }

    /// Returns the minimum time from a request to its grant.
    pub fn request_time(&self) -> Result<Time, UnitError> {
        let handling = self.controller.unwrap_or(Time::ZERO);
        self.control.times(2)?.plus(handling)
    }

    /// Returns the number of ranks, which is the number of allocated nodes.
    pub fn ranks(&self) -> u32 {
        self.nodes.len() as u32
    }

    /// Returns the rank at a row and a column, or `None` if this node is not allocated.
    pub fn rank_at(&self, row: u32, column: u32) -> Option<u32> {
        let node = row * self.columns + column;
        let rank = self.nodes.binary_search(&node).ok()?;
        Some(rank as u32)
    }

    /// Returns the row and the column of `rank`.
    pub fn place(&self, rank: u32) -> (u32, u32) {
        let node = self.nodes[rank as usize];
        (node / self.columns, node % self.columns)
    }

    /// Returns the switch in `plane` to which `rank` is connected, and the port of this switch.
    pub fn port(&self, rank: u32, plane: Plane) -> (u32, u32) {
        let (row, column) = self.place(rank);
        match plane {
            Plane::Row => (row, column),
            Plane::Column => (column, row),
        }
    }

    /// Returns the number of used ports per switch of `plane`.
    pub fn ports_in_use(&self, plane: Plane) -> u32 {
        match plane {
            Plane::Row => self.columns,
            Plane::Column => self.rows,
        }
    }

    /// Returns the number of switches: one per row and one per column.
    pub fn switches(&self) -> u32 {
        self.rows + self.columns
    }

    /// Returns whether the rank's transceiver in `plane` and its switch port both work.
    pub fn works(&self, rank: u32, plane: Plane) -> bool {
        if self.dead_transceivers.is_empty() && self.dead_ports.is_empty() {
            return true;
        }
        let node = self.nodes[rank as usize];
        let (switch, port) = self.port(rank, plane);
        let transceiver = Transceiver { node, plane };
        let dead_port = SwitchPort {
            plane,
            switch,
            port,
        };
        !self.dead_transceivers.contains(&transceiver) && !self.dead_ports.contains(&dead_port)
    }

    /// Returns the plane in which two different ranks share a switch, if any.
    pub fn shared_plane(&self, first: u32, second: u32) -> Option<Plane> {
        let ((row, column), (other_row, other_column)) = (self.place(first), self.place(second));
        if row == other_row {
            Some(Plane::Row)
        } else {
            (column == other_column).then_some(Plane::Column)
        }
    }

    /// Returns the rate of the transceiver of `rank` in `plane`.
    pub fn rate_of(&self, rank: u32, plane: Plane) -> Rate {
        let node = self.nodes[rank as usize];
        let transceiver = Transceiver { node, plane };
        let slower = self
            .degraded
            .binary_search_by_key(&transceiver, |(transceiver, _)| *transceiver);
        slower.map_or(self.rate, |index| self.degraded[index].1)
    }

    /// Returns the rate of light between two ranks: the lower rate of their transceivers.
    pub fn rate_between(&self, ends: [u32; 2], light: TunedLight) -> Rate {
        let Some(&plane) = Plane::BOTH.get(usize::from(light.plane)) else {
            return self.rate;
        };
        let ends = ends.into_iter().filter(|rank| *rank < self.ranks());
        let rates = ends.map(|rank| self.rate_of(rank, plane));
        rates.min().unwrap_or(self.rate)
    }

    /// Returns the grid with all transceivers at full rate, and the grid without the degraded
    /// transceivers. Returns an empty list if no transceiver is degraded.
    fn undegraded_grids(&self) -> Vec<WssGrid> {
        if self.degraded.is_empty() {
            return Vec::new();
        }
        let mut at_full_rate = self.clone();
        let slower = std::mem::take(&mut at_full_rate.degraded);
        let mut without_slower = at_full_rate.clone();
        let slower = slower.into_iter().map(|(transceiver, _)| transceiver);
        without_slower.dead_transceivers.extend(slower);
        without_slower.dead_transceivers.sort_unstable();
        without_slower.dead_transceivers.dedup();
        vec![at_full_rate, without_slower]
    }

    /// Returns whether every node is allocated, and no component is dead or degraded.
    pub fn is_whole(&self) -> bool {
        self.ranks() == self.rows * self.columns
            && self.degraded.is_empty()
            && self.dead_transceivers.is_empty()
            && self.dead_ports.is_empty()
    }

    /// Returns whether two grids are the same machine, possibly with different tasks. They may
    /// differ in the allocated nodes, the wavelength plan and the number of wavelengths.
    pub fn is_same_machine(&self, other: &WssGrid) -> bool {
        let like = WssGrid {
            nodes: self.nodes.clone(),
            plan: self.plan,
            wavelengths: self.wavelengths,
            ..other.clone()
        };
        *self == like
    }

    /// Returns the same grid with another wavelength plan.
    pub fn with_plan(&self, plan: WavelengthPlan) -> WssGrid {
        WssGrid {
            plan,
            ..self.clone()
        }
    }
}

impl Named for WssGrid {
    const NAME: &'static str = RECORD.name;
}

impl Machine for WssGrid {
    fn record(&self) -> &'static FamilyRecord {
        &RECORD
    }

    fn spec(&self) -> Spec {
        options::print(self, &RECORD, declared)
    }

    fn nature(&self) -> &'static str {
        "a grid of tunable circuits, not a ring of lightpaths"
    }

    /// Returns the parts: two tunable transceivers at each node, a cable from each transceiver to a
    /// switch, and the switches of rows and columns.
    fn bill(&self) -> Bill {
        let ports = 2 * u64::from(self.rows) * u64::from(self.columns);
        Bill::default()
            .with_lights(TUNABLE, [ports, ports], self.rate)
            .with(ports, PartKind::new("fibre_cable"))
            .with(
                self.switches(),
                PartKind::new("wss").ports(self.switch_ports),
            )
    }

    fn node(&self, rank: u32) -> u32 {
        self.nodes[rank as usize]
    }

    fn after_failures(&self, failures: &str) -> Option<Result<Fabric, SpecError>> {
        Some(self.after_failures(failures).map(Fabric::new))
    }

    fn ranks(&self) -> u32 {
        self.ranks()
    }

    /// Returns a grid of one column if all members are in one column. Otherwise returns a grid of
    /// one row or of several whole rows.
    fn part(&self, members: &[u32]) -> Result<Fabric, FabricError> {
        if self.controller.is_some() {
            let problem =
                "serves all groups of ranks together, but groups are timed separately; remove it";
            return Err(self.spec().refuse("controller", problem).into());
        }
        let (ranks, columns) = (members.len() as u32, self.columns);
        let below = ranks > 1 && members[1] - members[0] == columns;
        let (rows, columns) = match () {
            () if below => (ranks, 1),
            () if ranks <= columns => (1, ranks),
            () if ranks % columns == 0 => (ranks / columns, columns),
            () => {
                let problem = format!("a part of {ranks} ranks is not a whole number of rows");
                return Err(self.spec().refuse("columns", problem).into());
            }
        };
        let spec = self.spec().without("rows").without("columns");
        (RECORD.build)(&spec.with("rows", rows).with("columns", columns))
    }

    fn description(&self) -> String {
        format!(
            "{} on {} x {} nodes, {} per laser, {} per transceiver, {} to tune",
            plural(self.nodes.len(), "rank"),
            self.rows,
            self.columns,
            plural(self.wavelengths as usize, "wavelength"),
            self.rate.words(),
            self.tuning
        )
    }

    /// Returns the total rate of a rank's working transceivers; the minimum over all ranks. A
    /// transceiver counts only if its switch has other ports in use.
    fn injection_bandwidth(&self) -> u128 {
        let sent = |rank: u32| {
            let planes = Plane::BOTH.into_iter();
            let leads =
                planes.filter(|&plane| self.ports_in_use(plane) > 1 && self.works(rank, plane));
            let rates = leads.map(|plane| self.rate_of(rank, plane).bits_per_second());
            rates.map(u128::from).sum::<u128>()
        };
        (0..self.ranks()).map(sent).min().unwrap_or(0)
    }

    fn planning_alternatives(&self) -> Vec<Fabric> {
        self.undegraded_grids()
            .into_iter()
            .map(Fabric::new)
            .collect()
    }

    fn circuits(&self) -> Option<&dyn Circuits> {
        Some(self)
    }

    fn planes(&self) -> Option<&dyn Planes> {
        Some(self)
    }
}

impl Planes for WssGrid {
    fn rows(&self) -> u32 {
        self.rows
    }

    fn columns(&self) -> u32 {
        self.columns
    }

    fn rank_at(&self, row: u32, column: u32) -> Option<u32> {
        self.rank_at(row, column)
    }

    fn works(&self, rank: u32, plane: Plane) -> bool {
        self.works(rank, plane)
    }
}
