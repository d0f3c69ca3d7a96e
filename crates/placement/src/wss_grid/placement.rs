//! Placement of schedules on a switch grid: hops, slots and wavelengths.
//!
//! **Slots.** The transfers of a step from one rank to another form one message. Each hop of a
//! message is a burst, which uses the transmitter of its sender and the receiver of its receiver
//! for one slot. Messages are placed in the order of (destination - source) modulo N. Each hop is
//! assigned the first slot after the previous hop in which transmitter and receiver are free:
//! greedy scheduling of an open shop. If two routes exist, over different corners, the message uses
//! the route that ends earlier. A step in which every rank sends once and receives once in each
//! plane needs one slot.
//!
//! **Wavelengths.** The switches are configured once, for all slots. With the formulas `xor` and
//! `cyclic`, the two ports determine the wavelength. Otherwise, the wavelengths are an edge
//! colouring. In the bipartite graph of the input and output ports of a switch, each circuit that
//! the plan uses is one edge. In a proper colouring, each input port has at most one output per
//! wavelength, and each output port has at most one input per wavelength. The number of colours is
//! the maximum degree (Koenig 1916). For each edge, the algorithm selects a colour that is free at
//! the input. If this colour is not free at the output, the algorithm exchanges two colours along
//! an alternating path.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::wss_grid::route::{Leg, shortest_paths};
use crate::{PlacementError, PlacementProblem};
use opticoll_base::interrupt;
use opticoll_base::memory;
use opticoll_fabric::fabric::{Fabric, Light, Plane};
use opticoll_fabric::family::wss_grid::WavelengthPlan;
use opticoll_fabric::family::wss_grid::{TunedLight, WssGrid};
use opticoll_plan::plan::{Plan, Relay};
use opticoll_plan::schedule::Schedule;

fn unfit(sentence: String) -> PlacementError {
    PlacementError::new(PlacementProblem::Unfit, sentence)
}

/// Burst with a slot of its step, but without a wavelength yet.
#[derive(Clone, Copy)]
struct SlottedBurst {
    from: u32,
    to: u32,
    plane: Plane,
    slot: u32,
}

/// Memory in bytes per transfer that the placement needs for bursts, ports and circuits.
const BYTES_PER_TRANSFER: u64 = 215;

/// Assigns hops, slots and wavelengths to every transfer of a schedule.
///
/// # Errors
/// No working route joins two ranks, or the wavelength plan or the laser has too few wavelengths.
pub fn assign_on_grid(
    schedule: Schedule,
    fabric: &Fabric,
    grid: &WssGrid,
    algorithm: String,
) -> Result<Plan, PlacementError> {
    let bytes = schedule.len() as u64 * BYTES_PER_TRANSFER;
    memory::check_forecast("placing this plan on a grid", bytes);
    let (bursts, bursts_of, step_slots) = place(&schedule, grid)?;
    let wavelengths = Wavelengths::assign(grid, &bursts)?;
    let mut plan = Plan::without_light(fabric, schedule, algorithm);
    plan.step_slots = step_slots;
    for (transfer, &(first, hops)) in bursts_of.iter().enumerate() {
        interrupt::check();
        for (place, burst) in bursts[first..first + hops].iter().enumerate() {
            let light = Light::from(TunedLight {
                plane: burst.plane as u8,
                wavelength: wavelengths.burst_wavelength(grid, burst) as u16,
            });
            if place == 0 {
                plan.slot[transfer] = burst.slot;
                plan.light.push(light);
            } else {
                plan.relays.push(Relay {
                    transfer: transfer as u32,
                    rank: burst.from,
                    light,
                    slot: burst.slot,
                });
            }
        }
    }
    Ok(plan)
}

/// Tuple of three lists: all bursts, (index of the first burst, number of bursts) of each transfer,
/// and the range of slots of each step.
type PlacedBursts = (
    Vec<SlottedBurst>,
    Vec<(usize, usize)>,
    Vec<std::ops::Range<u32>>,
);

/// Assigns the hops of all messages to slots.
fn place(schedule: &Schedule, grid: &WssGrid) -> Result<PlacedBursts, PlacementError> {
    let ranks = grid.ranks();
    let mut bursts: Vec<SlottedBurst> = Vec::with_capacity(schedule.len());
    let mut bursts_of_transfer = vec![(0, 0); schedule.len()];
    let mut step_slots = Vec::with_capacity(schedule.steps());
    let mut ports = TransceiverUse::new(ranks);
    let mut start = 0;
    for step in 0..schedule.steps() {
        let transfers = schedule.step(step).map(|transfer| {
            let (source, destination) = schedule.ends(transfer);
            let ahead = (destination + ranks - source) % ranks;
            (ahead, source, transfer)
        });
        let mut transfers: Vec<(u32, u32, usize)> = transfers.collect();
        transfers.sort_unstable();
        for message in transfers.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
            interrupt::check();
            let (ahead, source, _) = message[0];
            let destination = (source + ahead) % ranks;
            let first = bursts.len();
            let earliest_path = shortest_paths(grid, source, destination)
                .into_iter()
                .map(|path| ports.slots_for(source, &path))
                .min_by_key(|placed| placed.last().map(|burst| burst.slot));
            let path = earliest_path.ok_or_else(|| {
                unfit(format!(
                    "no route leads from rank {source} to rank {destination}: all routes have dead \
                     transceivers or switch ports; leave one of the two nodes out"
                ))
            })?;
            for burst in path {
                ports.take(&burst);
                let slot = start + burst.slot;
                bursts.push(SlottedBurst { slot, ..burst });
            }
            for &(_, _, transfer) in message {
                bursts_of_transfer[transfer] = (first, bursts.len() - first);
            }
        }
        // An empty step needs a slot, as on electrical fabrics.
        let end = start + ports.clear().max(1);
        step_slots.push(start..end);
        start = end;
    }
    Ok((bursts, bursts_of_transfer, step_slots))
}

/// Slots of a step in which the transmitters and receivers are busy.
struct TransceiverUse {
    /// Words whose bits mark the busy slots, `[rank][transceiver]`. The transceivers are the row
    /// transmitter, the column transmitter, the row receiver and the column receiver.
    busy: Vec<[Vec<u64>; 4]>,
    busy_ranks: Vec<u32>,
    slots: u32,
}

impl TransceiverUse {
    fn new(ranks: u32) -> TransceiverUse {
        TransceiverUse {
            busy: vec![Default::default(); ranks as usize],
            busy_ranks: Vec::new(),
            slots: 0,
        }
    }

    /// Returns the hops of a route from `source`, each in the earliest possible slot.
    fn slots_for(&self, source: u32, path: &[Leg]) -> Vec<SlottedBurst> {
        let mut from = source;
        let mut first_slot = 0;
        let mut placed = Vec::with_capacity(path.len());
        for &Leg { plane, to } in path {
            let sends = &self.busy[from as usize][plane as usize];
            let receives = &self.busy[to as usize][2 + plane as usize];
            let word = |words: &[u64], index: usize| words.get(index).copied().unwrap_or(0);
            let mut index = first_slot as usize / 64;
            let mut free_slots =
                !(word(sends, index) | word(receives, index)) & (!0 << (first_slot % 64));
            while free_slots == 0 {
                interrupt::check();
                index += 1;
                free_slots = !(word(sends, index) | word(receives, index));
            }
            let slot = index as u32 * 64 + free_slots.trailing_zeros();
            placed.push(SlottedBurst {
                from,
                to,
                plane,
                slot,
            });
            (from, first_slot) = (to, slot + 1);
        }
        placed
    }

    fn take(&mut self, burst: &SlottedBurst) {
        let plane = burst.plane as usize;
        for (rank, port) in [(burst.from, plane), (burst.to, 2 + plane)] {
            let words = &mut self.busy[rank as usize][port];
            let index = burst.slot as usize / 64;
            if words.len() <= index {
                words.resize(index + 1, 0);
            }
            words[index] |= 1 << (burst.slot % 64);
            self.busy_ranks.push(rank);
        }
        self.slots = self.slots.max(burst.slot + 1);
    }

    /// Frees all transmitters and receivers. Returns the number of slots that were in use.
    fn clear(&mut self) -> u32 {
        for rank in self.busy_ranks.drain(..) {
            self.busy[rank as usize].iter_mut().for_each(Vec::clear);
        }
        std::mem::take(&mut self.slots)
    }
}

enum Wavelengths {
    /// A formula of the grid determines the wavelength of each circuit.
    Formula,
    /// Wavelength of each circuit (plane, switch, input, output), by edge colouring.
    Coloured(FxHashMap<(Plane, u32, u32, u32), u32>),
}

impl Wavelengths {
    fn assign(grid: &WssGrid, bursts: &[SlottedBurst]) -> Result<Wavelengths, PlacementError> {
        let mut needed = 0;
        let wavelengths = if grid.plan == WavelengthPlan::EdgeColouring {
            let coloured = colour(grid, bursts);
            needed = coloured
                .values()
                .map(|colour| colour + 1)
                .max()
                .unwrap_or(0);
            Wavelengths::Coloured(coloured)
        } else {
            for burst in bursts {
                interrupt::check();
                let (_, input) = grid.port(burst.from, burst.plane);
                let (_, output) = grid.port(burst.to, burst.plane);
                let found = grid
                    .plan
                    .wavelength(grid.ports_in_use(burst.plane), input, output);
                let wavelength = found.ok_or_else(|| {
                    let SlottedBurst {
                        from, to, plane, ..
                    } = burst;
                    unfit(format!(
                        "the wavelength plan {} has no wavelength from port {input} to port \
                         {output} of a {plane} switch (rank {from} to {to}); use plan=cyclic or \
                         plan=edge_colouring",
                        grid.plan.name()
                    ))
                })?;
                needed = needed.max(wavelength + 1);
            }
            Wavelengths::Formula
        };
        if needed > grid.wavelengths {
            let have = grid.wavelengths;
            return Err(unfit(format!(
                "the plan needs {needed} wavelengths, but the tunable source has {have}; give \
                 wavelengths={needed}, or use an algorithm with fewer partners"
            )));
        }
        Ok(wavelengths)
    }

    fn burst_wavelength(&self, grid: &WssGrid, burst: &SlottedBurst) -> u32 {
        let (switch, input) = grid.port(burst.from, burst.plane);
        let (_, output) = grid.port(burst.to, burst.plane);
        let wavelength = match self {
            Wavelengths::Formula => {
                grid.plan
                    .wavelength(grid.ports_in_use(burst.plane), input, output)
            }
            Wavelengths::Coloured(colours) => {
                colours.get(&(burst.plane, switch, input, output)).copied()
            }
        };
        wavelength.unwrap_or_default()
    }
}

/// Assigns a colour to the circuits of every switch. A circuit is (plane, switch, input, output).
fn colour(grid: &WssGrid, bursts: &[SlottedBurst]) -> FxHashMap<(Plane, u32, u32, u32), u32> {
    let circuits: FxHashSet<(Plane, u32, u32, u32)> = bursts
        .iter()
        .map(|burst| {
            let (switch, input) = grid.port(burst.from, burst.plane);
            let (_, output) = grid.port(burst.to, burst.plane);
            (burst.plane, switch, input, output)
        })
        .collect();
    let mut circuits: Vec<(Plane, u32, u32, u32)> = circuits.into_iter().collect();
    circuits.sort_unstable();
    let mut coloured = FxHashMap::default();
    for circuits_of_switch in circuits.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
        let edges = circuits_of_switch
            .iter()
            .map(|&(_, _, input, output)| (input, output));
        let edges: Vec<(u32, u32)> = edges.collect();
        let ports = grid.ports_in_use(circuits_of_switch[0].0) as usize;
        let colours = colour_edges(&edges, ports);
        coloured.extend(circuits_of_switch.iter().copied().zip(colours));
    }
    coloured
}

const NONE: u32 = u32::MAX;

/// Returns a proper colouring of the edges (input, output) of a bipartite graph: the colour of each
/// edge, indexed by edge. The number of colours is the maximum degree, which is the minimum. Inputs
/// and outputs are numbered from 0 to `ports` - 1.
pub fn colour_edges(edges: &[(u32, u32)], ports: usize) -> Vec<u32> {
    let mut degree = vec![0usize; 2 * ports];
    for &(input, output) in edges {
        degree[input as usize] += 1;
        degree[ports + output as usize] += 1;
    }
    let colours = degree.into_iter().max().unwrap_or(0);
    // Edge of each colour at each vertex. The vertices are the inputs, then the outputs.
    let mut edge_at = vec![NONE; 2 * ports * colours];
    let mut colour_of = vec![NONE; edges.len()];
    let free_at = |edge_at: &[u32], vertex: usize| {
        let row = &edge_at[vertex * colours..][..colours];
        row.iter().position(|&edge| edge == NONE).unwrap_or(0)
    };
    for (edge, &(input, output)) in edges.iter().enumerate() {
        interrupt::check();
        let (input, output) = (input as usize, ports + output as usize);
        let at_input = free_at(&edge_at, input);
        let at_output = free_at(&edge_at, output);
        if edge_at[output * colours + at_input] != NONE {
            // The exchange follows the path from the output on which the two colours alternate. The
            // path never reaches the input, where `at_input` is free. After the exchange,
            // `at_input` is free at the output too.
            let mut path = Vec::new();
            let (mut vertex, mut colour) = (output, at_input);
            loop {
                interrupt::check();
                let next = edge_at[vertex * colours + colour];
                if next == NONE {
                    break;
                }
                path.push(next as usize);
                let (input, output) = edges[next as usize];
                let (input, output) = (input as usize, ports + output as usize);
                vertex = if vertex == input { output } else { input };
                colour = at_input + at_output - colour;
            }
            let ends = |edge: usize| [edges[edge].0 as usize, ports + edges[edge].1 as usize];
            for &edge in &path {
                for vertex in ends(edge) {
                    edge_at[vertex * colours + colour_of[edge] as usize] = NONE;
                }
            }
            for &edge in &path {
                colour_of[edge] = (at_input + at_output) as u32 - colour_of[edge];
                for vertex in ends(edge) {
                    edge_at[vertex * colours + colour_of[edge] as usize] = edge as u32;
                }
            }
        }
        colour_of[edge] = at_input as u32;
        edge_at[input * colours + at_input] = edge as u32;
        edge_at[output * colours + at_input] = edge as u32;
    }
    colour_of
}
