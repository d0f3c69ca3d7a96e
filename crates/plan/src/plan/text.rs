//! Text form of a plan: written compactly, and read without loss (see `docs/plan-format.md`).
//!
//! ```
//! use opticoll_plan::plan::text;
//! // Two ranks exchange their blocks.
//! let written = "\
//! opticoll plan 1
//! collective all_gather ranks=2 root=0 pieces=1
//! fabric wdm_ring:ranks=2,wavelengths=1,fibres=1,rate=40Gb/s,reconfiguration=25us
//! algorithm ring
//! steps 1
//! slot 0
//! copy 0 0>1 cw 0.0
//! copy 1 1>0 cw 0.0
//! end 2
//! ";
//! let plan = text::read(written)?;
//! assert_eq!((plan.len(), plan.slots()), (2, 1));
//! assert_eq!(text::read(&text::write(&plan))?, plan);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod compress;
mod read;
mod repeated;
mod statement;
mod words;

use std::collections::BTreeMap;
use std::fmt::Write;

use thiserror::Error;

use super::Repetition;
use super::{Lightpath, Plan, Relay};
use crate::collective::Collective;
use crate::schedule::{Claims, Transfer};
use compress::{Modulus, RepeatedLightpath};
use opticoll_base::interrupt;
use opticoll_fabric::fabric::LightKind;
pub use read::{read, read_any};

/// Position of an error in a plan file, and its reason.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("line {line}, column {column}: {problem}")]
pub struct PlanTextError {
    /// Line number, counted from 1.
    pub line: usize,
    /// Column number in characters, counted from 1.
    pub column: usize,
    /// Description of the problem, with a hint.
    pub problem: String,
}

/// First line of every plan file.
const MAGIC: &str = "opticoll plan 1";

/// Returns the text of `plan`. Lightpaths that are shifted copies of each other become one
/// statement with repetitions. A row of the plan with all its rotations becomes one statement per
/// fibre that the rotations use. A row of the plan with its stripes and pieces becomes one
/// statement.
pub fn write(plan: &Plan) -> String {
    let mut text = String::new();
    write_head(plan, &mut text);
    match plan.repetition {
        Repetition::NONE => write_slots(plan, &mut text),
        _ => write_rows(plan, &mut text),
    }
    let _ = writeln!(text, "end {}", plan.transfers());
    text
}

fn write_slots(plan: &Plan, text: &mut String) {
    let (kind, modulus) = (plan.fabric.light(), Modulus::of(plan));
    for (slot, indices) in slots_with_lightpaths(plan) {
        let _ = writeln!(text, "slot {slot}");
        let (straight, relayed): (Vec<usize>, Vec<usize>) = indices
            .into_iter()
            .partition(|&index| plan.relays_of(index).is_empty());
        for (route, indices) in group_by_route(plan, straight) {
            let lightpaths = indices.into_iter().map(|index| plan.lightpath(index));
            for block in compress::compress(lightpaths.collect(), modulus) {
                write_block(&block, kind, route, text);
            }
        }
        let mut relayed: Vec<(Lightpath, &[Relay])> = relayed
            .into_iter()
            .map(|index| (plan.lightpath(index), plan.relays_of(index)))
            .collect();
        relayed.sort_by_key(|(lightpath, relays)| {
            let key = |relay: &Relay| (relay.rank, relay.light, relay.slot);
            (*lightpath, relays.iter().map(key).collect::<Vec<_>>())
        });
        for (lightpath, relays) in relayed {
            interrupt::check();
            write_relayed(&lightpath, relays, kind, text);
        }
    }
}

/// Writes a transfer with relays, such as `copy 5 0>4>7 row.3 column.0@2`.
fn write_relayed(
    lightpath: &Lightpath,
    relays: &[Relay],
    kind: Option<&LightKind>,
    text: &mut String,
) {
    write_data(&lightpath.transfer, text);
    for relay in relays {
        let _ = write!(text, ">{}", relay.rank);
    }
    let _ = write!(text, ">{}", lightpath.transfer.destination);
    if let Some(kind) = kind {
        text.push(' ');
        kind.write(lightpath.light, text);
        for relay in relays {
            text.push(' ');
            kind.write(relay.light, text);
            let _ = write!(text, "@{}", relay.slot);
        }
    }
    text.push('\n');
}

fn write_data(transfer: &Transfer, text: &mut String) {
    let _ = write!(text, "{} {}", transfer.action, transfer.chunk);
    if transfer.count > 1 {
        let _ = write!(text, "+{}", transfer.count);
    }
    let _ = write!(text, " {}", transfer.source);
}

/// Groups transfers by named route. Transfers on the fabric's route come first.
fn group_by_route(plan: &Plan, transfers: Vec<usize>) -> BTreeMap<Option<&[u32]>, Vec<usize>> {
    if plan.routes.is_empty() {
        return BTreeMap::from([(None, transfers)]);
    }
    let mut by_route: BTreeMap<_, Vec<usize>> = BTreeMap::new();
    for transfer in transfers {
        let route = plan.routes.of(transfer);
        by_route.entry(route).or_default().push(transfer);
    }
    by_route
}

fn write_rows(plan: &Plan, text: &mut String) {
    for (slot, rows) in slots_with_lightpaths(plan) {
        let _ = writeln!(text, "slot {slot}");
        for row in rows {
            interrupt::check();
            for block in repeated::statements(plan, row) {
                write_block(&block, plan.fabric.light(), None, text);
            }
        }
    }
}

/// Returns (slot, indices of its lightpaths) for each slot that has lightpaths.
fn slots_with_lightpaths(plan: &Plan) -> impl Iterator<Item = (u32, Vec<usize>)> + '_ {
    let mut indices: Vec<u32> = (0..plan.len() as u32).collect();
    indices.sort_by_key(|&index| plan.slot[index as usize]);
    let mut start = 0;
    std::iter::from_fn(move || {
        let slot = plan.slot[*indices.get(start)? as usize];
        let tail = &indices[start..];
        let count = tail.partition_point(|&index| plan.slot[index as usize] == slot);
        start += count;
        Some((
            slot,
            tail[..count].iter().map(|&index| index as usize).collect(),
        ))
    })
}

fn write_head(plan: &Plan, text: &mut String) {
    let collective = plan.schedule.collective;
    let _ = writeln!(text, "{MAGIC}");
    let _ = writeln!(
        text,
        "collective {} ranks={} root={} pieces={}",
        collective.kind(),
        collective.ranks(),
        collective.root(),
        collective.pieces()
    );
    write_demand(&collective, text);
    let _ = writeln!(text, "fabric {}", plan.fabric);
    // Characters that would end the line or begin a comment become blanks.
    let unprintable = |letter: char| letter.is_control() || letter == '#';
    let algorithm = plan.algorithm.replace(unprintable, " ");
    let _ = writeln!(text, "algorithm {}", algorithm.trim());
    if let Some(size) = plan.size {
        let _ = writeln!(text, "size {size}");
    }
    let Claims {
        paper_steps,
        neighbours_only,
        schedule_steps,
        chunks_sent_per_rank,
    } = plan.schedule.claims;
    if let Some(steps) = paper_steps {
        let _ = writeln!(text, "claim paper_steps {steps}");
    }
    if neighbours_only {
        let _ = writeln!(text, "claim neighbours_only");
    }
    if let Some(steps) = schedule_steps {
        let _ = writeln!(text, "claim schedule_steps {steps}");
    }
    if let Some(chunks) = chunks_sent_per_rank {
        let _ = writeln!(text, "claim chunks_sent_per_rank {chunks}");
    }
    text.push_str("steps");
    for slots in &plan.step_slots {
        let _ = write!(text, " {}", slots.end - slots.start);
    }
    text.push('\n');
}

/// Writes a line for each sending rank, such as `demand 0 1=4096+1024 2=100`.
fn write_demand(collective: &Collective, text: &mut String) {
    let Some(demand) = collective.demand() else {
        return;
    };
    let mut last = None;
    for (source, destination, chunks) in demand.pairs() {
        interrupt::check();
        if last != Some(source) {
            text.push_str(if last.is_some() {
                "\ndemand "
            } else {
                "demand "
            });
            let _ = write!(text, "{source}");
            last = Some(source);
        }
        for (position, chunk) in chunks.enumerate() {
            let amount = demand.amount(chunk);
            let _ = match position {
                0 => write!(text, " {destination}={amount}"),
                _ => write!(text, "+{amount}"),
            };
        }
    }
    text.push('\n');
}

/// Writes a transfer with its light or its named route, such as `copy 5 0>4 via 3.7.12 x4 chunk+1`.
fn write_block(
    block: &RepeatedLightpath,
    kind: Option<&LightKind>,
    route: Option<&[u32]>,
    text: &mut String,
) {
    let Lightpath {
        light, transfer, ..
    } = block.base;
    write_data(&transfer, text);
    let _ = write!(text, ">{}", transfer.destination);
    if let Some(kind) = kind {
        text.push(' ');
        kind.write(light, text);
    }
    for (position, link) in route.into_iter().flatten().enumerate() {
        let before = if position == 0 { " via " } else { "." };
        let _ = write!(text, "{before}{link}");
    }
    for repetition in &block.repetitions {
        interrupt::check();
        let _ = write!(text, " x{}", repetition.count);
        let shift = repetition.shift;
        let (rank, source, destination) = if shift.source == shift.destination {
            (shift.source, 0, 0)
        } else {
            (0, shift.source, shift.destination)
        };
        let data = [
            ("chunk", shift.chunk),
            ("rank", rank),
            ("source", source),
            ("destination", destination),
            ("slot", shift.slot),
            ("turn", shift.turn),
        ];
        let fields = kind.iter().flat_map(|kind| kind.fields);
        let light = fields.map(|field| field.name).zip(shift.light);
        for (name, by) in data.into_iter().chain(light) {
            if by > 0 {
                let _ = write!(text, " {name}+{by}");
            }
        }
    }
    text.push('\n');
}
