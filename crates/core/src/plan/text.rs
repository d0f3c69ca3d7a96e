//! The text form of a plan: written compactly, read back exactly (see `docs/plan-format.md`).
//!
//! ```
//! use opticoll::{algorithm, collective::*, fabric::Fabric, plan::text, route, wavelength};
//! let fabric = Fabric::parse("wdm_ring:ranks=4,wavelengths=1")?;
//! let collective = Collective::new(CollectiveKind::AllGather, 4)?;
//! let schedule = algorithm::build(&"ring".parse()?, collective, &fabric)?;
//! let ring = fabric.needed_ring("this example")?;
//! let directions = route::shortest_arcs(&schedule, ring);
//! let assignment = wavelength::Assignment::AUTO;
//! let plan = wavelength::assign(schedule, directions, &fabric, assignment, "ring".into())?;
//! let written = text::write(&plan);
//! assert!(written.contains("copy 0 0>1 cw 0.0 x4 chunk+1 rank+1"));
//! assert_eq!(text::write(&text::read(&written)?), written);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod compress;
mod folded;
mod read;
mod statement;
mod words;

use std::fmt::Write;

use thiserror::Error;

use super::{CONVERTED, FoldedPlan, Lightpath, Plan, PlanRef, Relay};
use crate::fabric::{Fabric, Plane};
use crate::interrupt;
use crate::schedule::{Action, Claims, Transfer};
use compress::{Block, Modulus};
pub use read::{read, read_any};

/// Where and why a plan file was refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("line {line}, column {column}: {problem}")]
pub struct PlanTextError {
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// What is wrong, with a hint.
    pub problem: String,
}

/// The first line of every plan file.
const MAGIC: &str = "opticoll plan 1";

/// The plan as text. Lightpaths that are shifted copies of one another are written once, with
/// their repetition; those of an orbit of a folded plan in as many statements as it has fibres.
pub fn write<'a>(plan: impl Into<PlanRef<'a>>) -> String {
    let plan = plan.into();
    let mut text = String::new();
    write_head(plan.kept(), &mut text);
    match plan {
        PlanRef::Full(plan) => write_slots(plan, &mut text),
        PlanRef::Folded(plan) => write_orbits(plan, &mut text),
    }
    let _ = writeln!(text, "end {}", plan.transfers());
    text
}

fn write_slots(plan: &Plan, text: &mut String) {
    let light = Light::of(&plan.fabric);
    let modulus = Modulus {
        ranks: plan.fabric.ranks(),
        chunks: plan.schedule.collective.chunks(),
        fibres_count: light == Light::Ring,
        wavelengths_count: matches!(light, Light::Ring | Light::Grid),
    };
    for (slot, indices) in by_slot(plan) {
        let _ = writeln!(text, "slot {slot}");
        let (straight, relayed): (Vec<usize>, Vec<usize>) = indices
            .into_iter()
            .partition(|&index| plan.relays_of(index).is_empty());
        let lightpaths = straight.iter().map(|&index| plan.lightpath(index));
        for block in compress::compress(lightpaths.collect(), modulus) {
            write_block(&block, light, text);
        }
        let mut relayed: Vec<(Lightpath, &[Relay])> = relayed
            .into_iter()
            .map(|index| (plan.lightpath(index), plan.relays_of(index)))
            .collect();
        relayed.sort_by_key(|(lightpath, relays)| {
            let key = |relay: &Relay| (relay.rank, relay.fibre, relay.wavelength, relay.slot);
            (*lightpath, relays.iter().map(key).collect::<Vec<_>>())
        });
        for (lightpath, relays) in relayed {
            interrupt::check();
            write_relayed(&lightpath, relays, text);
        }
    }
}

/// How the light of a statement is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Light {
    /// `cw 0.12`: a way around the ring, a fibre and a wavelength.
    Ring,
    /// `row.12`: the plane and a wavelength.
    Grid,
    /// `0.1`: the port of the source and that of the destination.
    Ports,
    /// Not at all.
    None,
}

impl Light {
    fn of(fabric: &Fabric) -> Light {
        match fabric {
            Fabric::WdmRing(_) => Light::Ring,
            Fabric::WssGrid(_) => Light::Grid,
            Fabric::LightPathGrid(_) => Light::Ports,
            _ => Light::None,
        }
    }
}

/// `row`, `column`, or the number of a fibre that no rank has.
fn plane(fibre: u8) -> String {
    Plane::of_fibre(fibre).map_or(fibre.to_string(), |plane| plane.name().into())
}

/// `copy 5 0>4>7 row.3 column.0@2`: a transfer with the ranks that relay it, and for each of these its
/// light and slot.
fn write_relayed(lightpath: &Lightpath, relays: &[Relay], text: &mut String) {
    let Lightpath {
        circuit, transfer, ..
    } = lightpath;
    write_data(transfer, text);
    for relay in relays {
        let _ = write!(text, ">{}", relay.rank);
    }
    let _ = write!(text, ">{}", transfer.destination);
    let _ = write!(text, " {}.{}", plane(circuit.fibre), circuit.wavelength);
    for relay in relays {
        let Relay {
            fibre,
            wavelength,
            slot,
            ..
        } = relay;
        let _ = write!(text, " {}.{wavelength}@{slot}", plane(*fibre));
    }
    text.push('\n');
}

/// What is sent, and the rank that sends it.
fn write_data(transfer: &Transfer, text: &mut String) {
    let action = match transfer.action {
        Action::Copy => "copy",
        Action::Reduce => "reduce",
    };
    let _ = write!(text, "{action} {}", transfer.chunk);
    if transfer.count > 1 {
        let _ = write!(text, "+{}", transfer.count);
    }
    let _ = write!(text, " {}", transfer.source);
}

fn write_orbits(plan: &FoldedPlan, text: &mut String) {
    for (slot, orbits) in by_slot(&plan.orbits) {
        let _ = writeln!(text, "slot {slot}");
        for orbit in orbits {
            interrupt::check();
            for block in folded::statements(plan, orbit) {
                write_block(&block, Light::Ring, text);
            }
        }
    }
}

/// The lightpaths of each slot that has any, as indices.
fn by_slot(plan: &Plan) -> impl Iterator<Item = (u32, Vec<usize>)> + '_ {
    let mut indices: Vec<u32> = (0..plan.len() as u32).collect();
    indices.sort_by_key(|&index| plan.slot[index as usize]);
    let mut rest = 0;
    std::iter::from_fn(move || {
        let slot = plan.slot[*indices.get(rest)? as usize];
        let tail = &indices[rest..];
        let count = tail.partition_point(|&index| plan.slot[index as usize] == slot);
        rest += count;
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
    let _ = writeln!(text, "fabric {}", plan.fabric);
    // What would end the line early, or be taken for a comment, is written as a blank.
    let unprintable = |letter: char| letter.is_control() || letter == '#';
    let algorithm = plan.algorithm.replace(unprintable, " ");
    let _ = writeln!(text, "algorithm {}", algorithm.trim());
    if let Some(size) = plan.size {
        let _ = writeln!(text, "size {size}");
    }
    let Claims {
        paper_steps,
        paper_step_share,
        neighbours_only,
        schedule_steps,
        chunks_sent_per_rank,
    } = plan.schedule.claims;
    if let Some(steps) = paper_steps {
        let _ = writeln!(text, "claim paper_steps {steps}");
    }
    if let Some((part, whole)) = paper_step_share {
        let _ = writeln!(text, "claim paper_step_share {part}/{whole}");
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

fn write_block(block: &Block, light: Light, text: &mut String) {
    let Lightpath {
        circuit, transfer, ..
    } = block.base;
    write_data(&transfer, text);
    let _ = write!(text, ">{}", transfer.destination);
    if light == Light::Grid {
        let _ = write!(text, " {}.{}", plane(circuit.fibre), circuit.wavelength);
    }
    if light == Light::Ports {
        let _ = write!(text, " {}.{}", circuit.fibre, circuit.wavelength);
    }
    if light == Light::Ring {
        let _ = write!(text, " {} {}.", circuit.direction.name(), circuit.fibre);
        match circuit.wavelength {
            CONVERTED => text.push('*'),
            wavelength => {
                let _ = write!(text, "{wavelength}");
            }
        }
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
        for (name, by) in [
            ("chunk", shift.chunk),
            ("rank", rank),
            ("source", source),
            ("destination", destination),
            ("fibre", shift.fibre),
            ("wavelength", shift.wavelength),
        ] {
            if by > 0 {
                let _ = write!(text, " {name}+{by}");
            }
        }
    }
    text.push('\n');
}
