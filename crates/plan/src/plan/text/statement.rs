//! Statement of a plan file: `copy|reduce CHUNKS SOURCE>DESTINATION LIGHT`, with repetitions. On an
//! electrical fabric there is no light, but `via LINK.LINK` if the plan names a route. The fabric's
//! kind of light defines the text of light
//! ([`LightKind::form`](opticoll_fabric::fabric::LightKind)). If ranks may relay transfers, the
//! statement has the form `SOURCE>RELAY>DESTINATION`, with a second light `LIGHT@SLOT`, and so on.

use std::fmt;

use super::PlanTextError;
use super::compress::{CopyShift, RepeatedLightpath, Repetition};
use super::words::{Word, Words};
use crate::collective::Collective;
use crate::plan::repetition::rotated_chunk;
use crate::plan::{Lightpath, Plan, Relay};
use crate::schedule::{Action, Transfer};
use opticoll_base::interrupt;
use opticoll_fabric::fabric::light::{Light, LightField, LightKind, MAX_FIELDS};

/// Maximum number of repetitions of a statement. 2^27 lightpaths never need more.
const MAX_REPETITIONS: usize = 32;

/// Maximum number of times that a repetition may repeat the same lightpath. Each time is a
/// violation, so a verifier needs no more of them to refuse a plan.
const MAX_EQUAL: u64 = 1 << 16;

/// Names of the shifts of a repetition, without those of fields of light. `rank` shifts both ends.
const SHIFTED: [&str; 6] = ["chunk", "rank", "source", "destination", "slot", "turn"];

pub(super) struct Statement<'a> {
    pub(super) block: RepeatedLightpath,
    /// Last word of the light. On an electrical fabric: the word with the ranks.
    light: Word<'a>,
    relays: Vec<Relay>,
    route: Option<Vec<u32>>,
}

impl<'a> Statement<'a> {
    /// Reads a statement that begins with the word `action`. The statement may represent at most
    /// `room` lightpaths; `limit` is the number that the `end` line states.
    pub(super) fn read(
        plan: &Plan,
        slot: u32,
        action: Word<'a>,
        words: &mut Words<'a>,
        (room, limit): (u64, u64),
    ) -> Result<Statement<'a>, PlanTextError> {
        let (base, light, relays) = read_lightpath(plan, slot, action, words)?;
        // Packets within servers take no route of light.
        let side = plan
            .fabric
            .circuits()
            .and_then(|circuits| circuits.side_network());
        let is_packet = side.is_some_and(|(packet, _)| packet == base.light);
        let route = match plan.fabric.routed_links() {
            Some(_) if !is_packet => read_route(words)?,
            _ => None,
        };
        let repetitions = read_repetitions(plan, slot, words, (room, limit))?;
        if !(relays.is_empty() || repetitions.is_empty()) {
            return Err(light.wrong("a relayed transfer is not repeated: write a line for each"));
        }
        let block = RepeatedLightpath { base, repetitions };
        Ok(Statement {
            block,
            light,
            relays,
            route,
        })
    }

    /// Returns whether the copies are in several slots.
    pub(super) fn is_over_slots(&self) -> bool {
        let shifts = self.block.repetitions.iter();
        shifts
            .clone()
            .any(|one| one.shift.slot > 0 && one.count > 1)
    }

    /// Adds the lightpath and its shifted copies to `plan`.
    pub(super) fn expand(&self, plan: &mut Plan) -> Result<(), PlanTextError> {
        let transfer = plan.len() as u32;
        let relays = self.relays.iter();
        plan.relays
            .extend(relays.map(|relay| Relay { transfer, ..*relay }));
        expand(self.block.base, &self.block.repetitions, &self.light, plan)?;
        if let Some(route) = &self.route {
            for own in transfer as usize..plan.len() {
                interrupt::check();
                plan.routes.assign(own, route);
            }
        }
        Ok(())
    }
}

/// Reads a lightpath. Returns the lightpath, the last word of its light, and its relays.
fn read_lightpath<'a>(
    plan: &Plan,
    slot: u32,
    action: Word<'a>,
    words: &mut Words<'a>,
) -> Result<(Lightpath, Word<'a>, Vec<Relay>), PlanTextError> {
    let known = Action::WORDS.iter().find(|(word, _)| *word == action.text);
    let unknown = || action.wrong("expected slot, copy, reduce, multicast, aggregate or end");
    let action = known.ok_or_else(unknown)?.1;
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
    let kind = plan.fabric.light();
    let (relay_ranks, destination) = match destination.rsplit_once('>') {
        Some((relay_ranks, destination)) if kind.is_some_and(|kind| kind.relays) => {
            (relay_ranks, destination)
        }
        _ => ("", destination),
    };
    let destination = ranks.part(destination)?;
    let mut relays = Vec::new();
    let (light, word) = match kind {
        None => (Light::NONE, ranks),
        Some(kind) => {
            let (light, _, word) = read_light(kind, words, false)?;
            for rank in relay_ranks.split('>').filter(|_| !relay_ranks.is_empty()) {
                let rank = ranks.part(rank)?;
                let (light, slot, _) = read_light(kind, words, true)?;
                relays.push(Relay {
                    transfer: 0,
                    rank,
                    light,
                    slot,
                });
            }
            (light, word)
        }
    };
    let transfer = Transfer {
        chunk,
        count,
        source,
        destination,
        action,
    };
    let base = Lightpath {
        slot,
        light,
        transfer,
    };
    check_range(&base, plan.schedule.collective, &chunks, &ranks)?;
    Ok((base, word, relays))
}

/// Reads the links of `via 3.7.12` if `via` is the next word.
fn read_route(words: &mut Words<'_>) -> Result<Option<Vec<u32>>, PlanTextError> {
    if words.optional_if(|text| text == "via").is_none() {
        return Ok(None);
    }
    let word = words.next("the links of a route, such as 3.7.12")?;
    let links = word.text.split('.').map(|link| word.part(link));
    links.collect::<Result<_, _>>().map(Some)
}

/// Reads light in the form that `kind` defines, followed by `@SLOT` if `relayed` is true. Returns
/// the light, the slot (0 without `@SLOT`) and the last word.
fn read_light<'a>(
    kind: &'static LightKind,
    words: &mut Words<'a>,
    relayed: bool,
) -> Result<(Light, u32, Word<'a>), PlanTextError> {
    let (mut light, mut slot) = (Light::NONE, 0);
    let mut fields = 0..kind.fields.len();
    let mut forms = kind.form.split(' ').zip(kind.example.split(' '));
    loop {
        let (form, example) = forms.next().unwrap_or_default();
        let last = form.matches('{').count() == fields.len();
        let expected = ExpectedLight {
            form,
            example,
            names: kind.fields[fields.start].names,
            slot: relayed && last,
        };
        let word = words.next(&expected)?;
        let wrong = || word.wrong(format_args!("expected {expected}"));
        let mut text = word.text;
        if expected.slot {
            let (before, after) = text.split_once('@').ok_or_else(wrong)?;
            (text, slot) = (before, word.part(after)?);
        }
        if let Some((_, light)) = kind.words.iter().find(|(word, _)| *word == text) {
            return Ok((*light, slot, word));
        }
        let count = form.split('.').count();
        let mut parts = text.splitn(count, '.');
        for field in fields.by_ref().take(count) {
            let part = parts.next().ok_or_else(wrong)?;
            let value = read_field(&kind.fields[field], part, &word)?.ok_or_else(wrong)?;
            light = kind.with(light, field, value);
        }
        if last {
            return Ok((light, slot, word));
        }
    }
}

/// Light that a statement must name next. Prints as `FIBRE.WAVELENGTH, such as 0.12`.
struct ExpectedLight {
    form: &'static str,
    example: &'static str,
    /// Names that stand for values of the first field of the expected word.
    names: &'static [&'static str],
    /// True if `@SLOT` must follow.
    slot: bool,
}

impl fmt::Display for ExpectedLight {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.form.contains('.') && !self.names.is_empty() {
            return formatter.write_str(&self.names.join(" or "));
        }
        let form = self.form.replace(['{', '}'], "").to_uppercase();
        match self.slot {
            true => write!(
                formatter,
                "{form}@SLOT, such as {}@7, for each rank that relays",
                self.example
            ),
            false => write!(formatter, "{form}, such as {}", self.example),
        }
    }
}

/// Returns the value of `field` that `text` states; `None` if `text` is an unknown name.
fn read_field(
    field: &LightField,
    text: &str,
    word: &Word<'_>,
) -> Result<Option<u32>, PlanTextError> {
    if !field.names.is_empty() {
        let value = field.names.iter().position(|name| *name == text);
        return Ok(value.map(|value| value as u32));
    }
    if field.star && text == "*" {
        return Ok(Some(field.max_value()));
    }
    let value: u32 = word.part(text)?;
    if value > field.max_number() {
        let (name, max_value) = (field.name, field.max_number());
        return Err(word.wrong(format!("{name} must be at most {max_value}")));
    }
    Ok(Some(value))
}

/// Reads the repetitions of a statement in slot `slot`. The statement may represent at most `room`
/// lightpaths; `limit` is the number that the `end` line states.
fn read_repetitions(
    plan: &Plan,
    slot: u32,
    words: &mut Words<'_>,
    (room, limit): (u64, u64),
) -> Result<Vec<Repetition>, PlanTextError> {
    let mut repetitions = Vec::new();
    let (mut total, mut different) = (1u64, 1u64);
    let mut last = u64::from(slot);
    while let Some(word) = words.optional() {
        let count: u32 = match word.text.strip_prefix('x') {
            Some(count) => word.part(count)?,
            None => return Err(word.wrong("expected a repetition, such as x4 chunk+1 rank+1")),
        };
        total = total.saturating_mul(u64::from(count));
        if total == 0 {
            return Err(word.wrong("a repetition stands for at least one lightpath"));
        }
        if total > room {
            return Err(word.wrong(format!(
                "the `end` line says {limit} transfers, but these repetitions make more"
            )));
        }
        if repetitions.len() == MAX_REPETITIONS {
            return Err(word.wrong(format!(
                "a lightpath has at most {MAX_REPETITIONS} repetitions"
            )));
        }
        let (shift, over_slots) = read_shift(plan, words)?;
        if let Some(word) = over_slots {
            last = last_slot(plan, last, (count, shift.slot), &word)?;
        }
        different = different.saturating_mul(different_copies(plan, &shift).min(count.into()));
        if total > MAX_EQUAL.saturating_mul(different) {
            return Err(word.wrong(format!(
                "these repetitions stand for {total} lightpaths, of which at most {different} \
                 differ; write a shift, such as chunk+1"
            )));
        }
        repetitions.push(Repetition { count, shift });
    }
    Ok(repetitions)
}

/// Returns an upper bound on the number of different lightpaths among copies with this shift.
fn different_copies(plan: &Plan, shift: &CopyShift) -> u64 {
    if shift.slot != 0 || shift.light.iter().any(|by| *by != 0) {
        return u64::MAX;
    }
    let collective = &plan.schedule.collective;
    let (chunks, ranks) = (
        u64::from(collective.chunks()),
        u64::from(collective.ranks()),
    );
    let periods = [
        (shift.chunk, chunks),
        (shift.source, ranks),
        (shift.destination, ranks),
        (shift.turn, ranks),
    ];
    let different = periods.iter().filter(|(by, _)| *by != 0);
    different.fold(1, |product, (_, period)| product.saturating_mul(*period))
}

/// Returns the slot of the last of `count` copies, each `by` slots after the previous copy. The
/// first copy is in slot `first` or earlier.
fn last_slot(
    plan: &Plan,
    first: u64,
    (count, by): (u32, u32),
    word: &Word<'_>,
) -> Result<u64, PlanTextError> {
    let slots = u64::from(plan.slots());
    let last = first + u64::from(count - 1) * u64::from(by);
    if last < slots {
        return Ok(last);
    }
    let max_copies = (slots - 1 - first) / u64::from(by) + 1;
    let greatest = slots - 1;
    Err(word.wrong(format!(
        "the last of {count} copies would be in slot {last}, but the slots of the plan are 0 to \
         {greatest}: write at most x{max_copies} instead of x{count}, or more slots in the line \
         `steps`"
    )))
}

/// Reads the shift of a repetition. Also returns the word `slot+T` if there is one.
fn read_shift<'a>(
    plan: &Plan,
    words: &mut Words<'a>,
) -> Result<(CopyShift, Option<Word<'a>>), PlanTextError> {
    let collective = plan.schedule.collective;
    let fields = plan.fabric.light().map_or(&[][..], |kind| kind.fields);
    let mut data = [0u32; SHIFTED.len()];
    let mut light = [0u32; MAX_FIELDS];
    let mut over_slots = None;
    while let Some(word) = words.optional_if(|text| !text.starts_with('x')) {
        let (name, by) = word
            .text
            .split_once('+')
            .ok_or_else(|| word.wrong("expected a shift, such as rank+1"))?;
        let of_light = |field: &LightField| field.shifts && field.name == name;
        let shift = match SHIFTED.iter().position(|shift_name| *shift_name == name) {
            Some(index) => &mut data[index],
            None => match fields.iter().position(of_light) {
                Some(field) => &mut light[field],
                None => {
                    let of_light = fields.iter().rev().filter(|field| field.shifts);
                    let names = SHIFTED.into_iter().chain(of_light.map(|field| field.name));
                    let names: Vec<&str> = names.collect();
                    return Err(
                        word.wrong(format!("expected a shift of one of {}", names.join(", ")))
                    );
                }
            },
        };
        *shift = word.part(by)?;
        match name {
            "slot" => over_slots = Some(word),
            "turn" if *shift >= collective.ranks() => {
                return Err(whole_turn(*shift, &collective, &word));
            }
            _ => {}
        }
    }
    let [chunk, rank, source, destination, slot, turn] = data;
    let with_rank = |own: u32| add_modulo(rank, 1, own, collective.ranks());
    let shift = CopyShift {
        chunk: chunk % collective.chunks(),
        source: with_rank(source),
        destination: with_rank(destination),
        slot,
        turn,
        light,
    };
    Ok((shift, over_slots))
}

/// Returns the error for a `turn` that is not less than the number of ranks.
fn whole_turn(turn: u32, collective: &Collective, word: &Word<'_>) -> PlanTextError {
    let ranks = collective.ranks();
    let same = turn % ranks;
    word.wrong(format!(
        "a turn on {ranks} ranks is 0 to {}; turn+{same} leads to the same ranks",
        ranks - 1
    ))
}

/// Returns (`number` + `copies` * `by`) mod `modulus`.
fn add_modulo(number: u32, copies: u32, by: u32, modulus: u32) -> u32 {
    ((u64::from(number) + u64::from(copies) * u64::from(by)) % u64::from(modulus)) as u32
}

/// Rejects ranks and chunks that do not exist, because shifts are modulo the numbers of ranks and
/// chunks.
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
            "rank {rank} does not exist: there are {ranks} ranks, counted from 0"
        )));
    }
    if transfer.chunk >= chunks {
        let chunk = transfer.chunk;
        return Err(chunks_word.wrong(format!(
            "chunk {chunk} does not exist: there are {chunks} chunks, counted from 0"
        )));
    }
    Ok(())
}

/// Adds a lightpath and its shifted copies to `plan`.
fn expand(
    base: Lightpath,
    repetitions: &[Repetition],
    word: &Word<'_>,
    plan: &mut Plan,
) -> Result<(), PlanTextError> {
    let Some((outermost, inner)) = repetitions.split_last() else {
        plan.push(base);
        return Ok(());
    };
    let collective = plan.schedule.collective;
    let shift = outermost.shift;
    for copy in 0..outermost.count {
        interrupt::check();
        let mut shifted = base;
        // The slots were checked when the statement was read.
        shifted.slot = base.slot + copy * shift.slot;
        let transfer = &mut shifted.transfer;
        let turns = add_modulo(0, copy, shift.turn, collective.ranks());
        if turns > 0 {
            transfer.chunk = rotated_chunk(&collective, transfer.chunk, turns);
        }
        transfer.chunk = add_modulo(transfer.chunk, copy, shift.chunk, collective.chunks());
        for (rank, by) in [
            (&mut transfer.source, shift.source),
            (&mut transfer.destination, shift.destination),
        ] {
            *rank = add_modulo(*rank, copy, by, collective.ranks());
            *rank = add_modulo(*rank, 1, turns, collective.ranks());
        }
        if let Some(kind) = plan.fabric.light() {
            for (index, field) in kind
                .fields
                .iter()
                .enumerate()
                .filter(|(_, field)| field.shifts)
            {
                let by = u64::from(copy) * u64::from(shift.light[index]);
                let value = u64::from(kind.value(base.light, index)) + by;
                if shift.light[index] > 0 && value > field.max_number().into() {
                    let problem = format!("the repetition leaves the range of its {}", field.name);
                    return Err(word.wrong(problem));
                }
                shifted.light = kind.with(shifted.light, index, value as u32);
            }
        }
        expand(shifted, inner, word, plan)?;
    }
    Ok(())
}
