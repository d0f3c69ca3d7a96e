//! One statement of a plan file: `copy|reduce CHUNKS SOURCE>DESTINATION WAY FIBRE.WAVELENGTH`, with
//! repetitions; on an electrical fabric without way and channel. On a grid of tunable circuits the
//! channel is `PLANE.WAVELENGTH`, and a transfer may be relayed: `SOURCE>RELAY>DESTINATION`, with a second
//! channel `PLANE.WAVELENGTH@SLOT`, and so on. On a grid of light paths it is the two ports,
//! `SOURCE_PORT.DESTINATION_PORT`.

use super::PlanTextError;
use super::compress::{Block, Repetition, Shift};
use super::words::{Word, Words};
use crate::collective::Collective;
use crate::fabric::{Direction, Fabric, Plane};
use crate::interrupt;
use crate::plan::{CONVERTED, Circuit, Lightpath, Plan, Relay};
use crate::schedule::{Action, Transfer};

/// The most repetitions of a lightpath: more than 2^27 lightpaths can use.
const MOST_REPETITIONS: usize = 32;

/// What a repetition may shift; `rank` is both ends. Fibres shift on rings, wavelengths on grids of
/// tunable circuits too.
const SHIFTED: [&str; 6] = [
    "chunk",
    "rank",
    "source",
    "destination",
    "wavelength",
    "fibre",
];

/// A statement that was read.
pub(super) struct Statement<'a> {
    /// What it stands for.
    pub(super) block: Block,
    /// Where its channel is written; on an electrical fabric, its ranks.
    channel: Word<'a>,
    /// Ranks that relay it; their transfer is this one.
    relays: Vec<Relay>,
}

impl<'a> Statement<'a> {
    /// Reads a statement of a plan that begins with `action`. It may stand for `room` lightpaths more, of
    /// the `most` that the file declares.
    pub(super) fn read(
        plan: &Plan,
        slot: u32,
        action: Word<'a>,
        words: &mut Words<'a>,
        (room, most): (u64, u64),
    ) -> Result<Statement<'a>, PlanTextError> {
        let (base, channel, relays) = read_lightpath(plan, slot, action, words)?;
        let repetitions = read_repetitions(plan, words, (room, most))?;
        if !(relays.is_empty() || repetitions.is_empty()) {
            return Err(channel.wrong("a relayed transfer is not repeated: write a line for each"));
        }
        let block = Block { base, repetitions };
        Ok(Statement {
            block,
            channel,
            relays,
        })
    }

    /// Adds the lightpath and its shifted copies to a plan.
    pub(super) fn expand(&self, plan: &mut Plan) -> Result<(), PlanTextError> {
        let transfer = plan.len() as u32;
        let relays = self.relays.iter();
        plan.relays
            .extend(relays.map(|relay| Relay { transfer, ..*relay }));
        expand(
            self.block.base,
            &self.block.repetitions,
            &self.channel,
            plan,
        )
    }
}

/// The lightpath of a statement, the word that says its channel, and its relays.
fn read_lightpath<'a>(
    plan: &Plan,
    slot: u32,
    action: Word<'a>,
    words: &mut Words<'a>,
) -> Result<(Lightpath, Word<'a>, Vec<Relay>), PlanTextError> {
    let action = match action.text {
        "copy" => Action::Copy,
        "reduce" => Action::Reduce,
        _ => return Err(action.wrong("expected slot, copy, reduce or end")),
    };
    let chunks = words.next("chunks, such as 5 or 5+3")?;
    let (chunk, count) = match chunks.text.split_once('+') {
        None => (chunks.number()?, 1),
        Some((chunk, count)) => (chunks.part(chunk)?, chunks.part(count)?),
    };
    let ranks = words.next("ranks, such as 2>7")?;
    let (source, destination) = ranks
        .text
        .split_once('>')
        .ok_or_else(|| ranks.wrong("expected SOURCE>DESTINATION, such as 2>7"))?;
    let source = ranks.part(source)?;
    let grid = plan.fabric.wss_grid().is_some();
    let (over, destination) = match destination.rsplit_once('>') {
        Some((over, destination)) if grid => (over, destination),
        _ => ("", destination),
    };
    let destination = ranks.part(destination)?;
    let (circuit, channel) = if grid {
        read_tuned(words)?
    } else if plan.fabric.light_path_grid().is_some() {
        read_ports(words)?
    } else if plan.has_light() {
        read_circuit(words)?
    } else {
        (Circuit::NONE, ranks)
    };
    let mut relays = Vec::new();
    for rank in over.split('>').filter(|_| !over.is_empty()) {
        let rank = ranks.part(rank)?;
        relays.push(read_relay(rank, words)?);
    }
    let transfer = Transfer {
        chunk,
        count,
        source,
        destination,
        action,
    };
    let base = Lightpath {
        slot,
        circuit,
        transfer,
    };
    check_range(&base, plan.schedule.collective, &chunks, &ranks)?;
    Ok((base, channel, relays))
}

/// The circuit of a lightpath on a grid, `PLANE.WAVELENGTH`, and the word that says it.
fn read_tuned<'a>(words: &mut Words<'a>) -> Result<(Circuit, Word<'a>), PlanTextError> {
    let channel = words.next("PLANE.WAVELENGTH")?;
    let (fibre, wavelength) = read_plane(&channel, channel.text)?;
    let circuit = Circuit {
        fibre,
        wavelength,
        ..Circuit::NONE
    };
    Ok((circuit, channel))
}

/// The ports of a light path, `SOURCE_PORT.DESTINATION_PORT`, and the word that says them.
fn read_ports<'a>(words: &mut Words<'a>) -> Result<(Circuit, Word<'a>), PlanTextError> {
    let ports = words.next("SOURCE_PORT.DESTINATION_PORT")?;
    let (own, other) = ports
        .text
        .split_once('.')
        .ok_or_else(|| ports.wrong("expected the ports of source and destination, such as 0.1"))?;
    let circuit = Circuit {
        fibre: ports.part(own)?,
        wavelength: ports.part(other)?,
        ..Circuit::NONE
    };
    Ok((circuit, ports))
}

/// The light and slot with which a rank sends on what it relays.
fn read_relay(rank: u32, words: &mut Words<'_>) -> Result<Relay, PlanTextError> {
    let channel = words.next("PLANE.WAVELENGTH@SLOT for each rank that relays")?;
    let (light, slot) = channel
        .text
        .split_once('@')
        .ok_or_else(|| channel.wrong("expected PLANE.WAVELENGTH@SLOT, such as column.3@7"))?;
    let (fibre, wavelength) = read_plane(&channel, light)?;
    Ok(Relay {
        transfer: 0,
        rank,
        fibre,
        wavelength,
        slot: channel.part(slot)?,
    })
}

/// The fibre and wavelength of `PLANE.WAVELENGTH`.
fn read_plane(word: &Word<'_>, text: &str) -> Result<(u8, u16), PlanTextError> {
    let expected = || word.wrong("expected PLANE.WAVELENGTH, such as row.3 or column.0");
    let (plane, wavelength) = text.split_once('.').ok_or_else(expected)?;
    let plane = Plane::BOTH.into_iter().find(|one| one.name() == plane);
    let wavelength = Some(word.part(wavelength)?)
        .filter(|wavelength| *wavelength != CONVERTED)
        .ok_or_else(|| word.wrong("no laser has so many wavelengths"))?;
    Ok((plane.ok_or_else(expected)? as u8, wavelength))
}

/// The circuit of a lightpath and the word that says its channel.
fn read_circuit<'a>(words: &mut Words<'a>) -> Result<(Circuit, Word<'a>), PlanTextError> {
    let way = words.next("cw or ccw")?;
    let direction = Direction::BOTH
        .into_iter()
        .find(|direction| direction.name() == way.text)
        .ok_or_else(|| way.wrong("expected cw or ccw"))?;
    let channel = words.next("FIBRE.WAVELENGTH")?;
    let (fibre, wavelength) = channel
        .text
        .split_once('.')
        .ok_or_else(|| channel.wrong("expected FIBRE.WAVELENGTH, such as 0.12 or 0.*"))?;
    let wavelength = match wavelength {
        "*" => CONVERTED,
        number => Some(channel.part(number)?)
            .filter(|wavelength| *wavelength != CONVERTED)
            .ok_or_else(|| channel.wrong("no fabric has so many wavelengths"))?,
    };
    let circuit = Circuit {
        direction,
        fibre: channel.part(fibre)?,
        wavelength,
    };
    Ok((circuit, channel))
}

fn read_repetitions(
    plan: &Plan,
    words: &mut Words<'_>,
    (room, most): (u64, u64),
) -> Result<Vec<Repetition>, PlanTextError> {
    let mut repetitions = Vec::new();
    let mut total = 1u64;
    while let Some(word) = words.optional() {
        let count: u32 = match word.text.strip_prefix('x') {
            Some(count) => word.part(count)?,
            None => return Err(word.wrong("expected a repetition, such as x4 chunk+1 rank+1")),
        };
        total = total.saturating_mul(u64::from(count));
        if total == 0 {
            return Err(word.wrong("a repetition stands for one lightpath at the least"));
        }
        if total > room {
            return Err(word.wrong(format!(
                "the `end` line says {most} lightpaths, this makes more"
            )));
        }
        if repetitions.len() == MOST_REPETITIONS {
            return Err(word.wrong(format!(
                "at most {MOST_REPETITIONS} repetitions to a lightpath"
            )));
        }
        let shift = read_shift(plan, words)?;
        repetitions.push(Repetition { count, shift });
    }
    Ok(repetitions)
}

fn read_shift(plan: &Plan, words: &mut Words<'_>) -> Result<Shift, PlanTextError> {
    let collective = plan.schedule.collective;
    let known = match plan.fabric {
        Fabric::WdmRing(_) => &SHIFTED[..],
        Fabric::WssGrid(_) => &SHIFTED[..5],
        _ => &SHIFTED[..4],
    };
    let mut shifts = [0u32; SHIFTED.len()];
    while let Some(word) = words.optional_if(|text| !text.starts_with('x')) {
        let (name, by) = word
            .text
            .split_once('+')
            .ok_or_else(|| word.wrong("expected a shift, such as rank+1"))?;
        let index = known
            .iter()
            .position(|known| *known == name)
            .ok_or_else(|| word.wrong(format!("what shifts is one of {}", known.join(", "))))?;
        shifts[index] = word.part(by)?;
    }
    let [chunk, rank, source, destination, wavelength, fibre] = shifts;
    let both = |own: u32| turned(rank, 1, own, collective.ranks());
    Ok(Shift {
        chunk: chunk % collective.chunks(),
        source: both(source),
        destination: both(destination),
        fibre,
        wavelength,
    })
}

/// `number + copies * by` modulo another.
fn turned(number: u32, copies: u32, by: u32, modulus: u32) -> u32 {
    ((u64::from(number) + u64::from(copies) * u64::from(by)) % u64::from(modulus)) as u32
}

/// Refuses numbers that a rotation could not be counted modulo.
fn check_range(
    base: &Lightpath,
    collective: Collective,
    chunks_word: &Word<'_>,
    ranks_word: &Word<'_>,
) -> Result<(), PlanTextError> {
    let (ranks, chunks) = (collective.ranks(), collective.chunks());
    let transfer = base.transfer;
    if let Some(rank) = [transfer.source, transfer.destination]
        .into_iter()
        .find(|&r| r >= ranks)
    {
        return Err(ranks_word.wrong(format!(
            "there are {ranks} ranks, counted from 0: none is {rank}"
        )));
    }
    if transfer.chunk >= chunks {
        let chunk = transfer.chunk;
        return Err(chunks_word.wrong(format!(
            "there are {chunks} chunks, counted from 0: none is {chunk}"
        )));
    }
    Ok(())
}

/// Adds a lightpath and its shifted copies to a plan.
fn expand(
    base: Lightpath,
    repetitions: &[Repetition],
    channel: &Word<'_>,
    plan: &mut Plan,
) -> Result<(), PlanTextError> {
    let Some((outermost, inner)) = repetitions.split_last() else {
        plan.push(base);
        return Ok(());
    };
    let collective = plan.schedule.collective;
    let added = |number: u32, copy: u32, by: u32| {
        u32::try_from(u64::from(number) + u64::from(copy) * u64::from(by)).ok()
    };
    let shift = outermost.shift;
    for copy in 0..outermost.count {
        interrupt::check();
        let mut shifted = base;
        let transfer = &mut shifted.transfer;
        transfer.chunk = turned(transfer.chunk, copy, shift.chunk, collective.chunks());
        for (rank, by) in [
            (&mut transfer.source, shift.source),
            (&mut transfer.destination, shift.destination),
        ] {
            *rank = turned(*rank, copy, by, collective.ranks());
        }
        shifted.circuit.fibre = added(base.circuit.fibre.into(), copy, shift.fibre)
            .and_then(|fibre| fibre.try_into().ok())
            .ok_or_else(|| channel.wrong("the repetition leaves the range of fibres"))?;
        if shift.wavelength > 0 {
            shifted.circuit.wavelength =
                added(base.circuit.wavelength.into(), copy, shift.wavelength)
                    .and_then(|wavelength| wavelength.try_into().ok())
                    .filter(|wavelength| *wavelength != CONVERTED)
                    .ok_or_else(|| {
                        channel.wrong("the repetition leaves the range of wavelengths")
                    })?;
        }
        expand(shifted, inner, channel, plan)?;
    }
    Ok(())
}
