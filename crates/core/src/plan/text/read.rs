//! Reading a plan file, with the line and column of whatever is wrong in it.

use std::ops::Range;

use super::{MAGIC, PlanTextError};
use crate::collective::Collective;
use crate::fabric::{Direction, Fabric};
use crate::plan::{CONVERTED, Circuit, Lightpath, Plan};
use crate::schedule::{Action, Claims, Schedule, Transfer};
use crate::units::Bytes;

/// Reads a plan file.
///
/// # Errors
/// Whatever is not of the documented form, with its line, column and a hint. Whether the
/// lightpaths make sense together is the verifier's business.
pub fn read(text: &str) -> Result<Plan, PlanTextError> {
    let mut lines = Lines::new(text);
    let (mut plan, slots) = read_head(&mut lines)?;
    let most = declared_lightpaths(text, &lines)?;
    let mut step_of_slot = 0;
    let mut slot = None;
    loop {
        let Some(line) = lines.next() else {
            return Err(lines.missing("end COUNT; is the file cut short?"));
        };
        let mut words = Words::new(line);
        match words.next("slot, copy, reduce or end")? {
            Word { text: "slot", .. } => {
                let word = words.next("a slot number")?;
                let number: u32 = word.number()?;
                if number >= slots {
                    return Err(word.wrong(format!("the steps take {slots} slots, counted from 0")));
                }
                if slot.is_some_and(|slot| number <= slot) {
                    return Err(word.wrong("slots must stand in increasing order"));
                }
                while number >= plan.step_slots[step_of_slot].end {
                    step_of_slot += 1;
                    plan.schedule.begin_step();
                }
                slot = Some(number);
                words.end()?;
            }
            Word { text: "end", .. } => {
                let word = words.next("the number of lightpaths")?;
                let count: usize = word.number()?;
                if count != plan.len() {
                    let found = plan.len();
                    return Err(
                        word.wrong(format!("the file holds {found} lightpaths, not {count}"))
                    );
                }
                words.end()?;
                break;
            }
            word => {
                let Some(slot) = slot else {
                    return Err(word.wrong("a lightpath needs a line `slot NUMBER` before it"));
                };
                read_lightpath(slot, word, &mut words, most, &mut plan)?;
            }
        }
    }
    if let Some(line) = lines.next() {
        return Err(Words::new(line)
            .next("")?
            .wrong("nothing may follow the `end` line"));
    }
    while plan.schedule.steps() < plan.step_slots.len() {
        plan.schedule.begin_step();
    }
    Ok(plan)
}

/// The most lightpaths that a plan file may hold: some 7 GB.
const MOST_LIGHTPATHS: u64 = 1 << 27;

/// The most repetitions of a lightpath: more than 2^27 lightpaths can use.
const MOST_REPETITIONS: usize = 32;

/// The most time slots of a plan: simulations keep columns of them.
const MOST_SLOTS: u32 = 1 << 24;

/// The number on the `end` line, looked up beforehand: repetitions that stand for more are refused
/// before they fill the memory.
fn declared_lightpaths(text: &str, lines: &Lines<'_>) -> Result<u64, PlanTextError> {
    let end = lines
        .clone()
        .all()
        .find(|line| line.text.trim_start().starts_with("end"));
    let Some(end) = end else {
        let line = text.lines().count() + 1;
        let problem = "the file has no line `end COUNT`; is it cut short?".into();
        return Err(PlanTextError {
            line,
            column: 1,
            problem,
        });
    };
    let mut words = Words::new(end);
    words.keyword("end")?;
    let word = words.next("the number of lightpaths")?;
    let count: u64 = word.number()?;
    if count > MOST_LIGHTPATHS {
        return Err(word.wrong(format!(
            "a plan file holds at most {MOST_LIGHTPATHS} lightpaths"
        )));
    }
    Ok(count)
}

/// Everything up to and including `steps`; also the number of slots.
fn read_head(lines: &mut Lines<'_>) -> Result<(Plan, u32), PlanTextError> {
    let magic = lines.line(MAGIC)?;
    if magic.text.trim_end() != MAGIC {
        let problem = format!("a plan file begins with `{MAGIC}`");
        return Err(PlanTextError {
            line: magic.number,
            column: 1,
            problem,
        });
    }
    let collective = read_collective(lines.line("collective")?)?;
    let mut words = Words::new(lines.line("fabric")?);
    words.keyword("fabric")?;
    let word = words.next("a fabric")?;
    let fabric = Fabric::parse(word.text).map_err(|error| word.wrong(error))?;
    words.end()?;
    if fabric.ranks() != collective.ranks() {
        let (have, need) = (fabric.ranks(), collective.ranks());
        return Err(word.wrong(format!(
            "the fabric has {have} ranks, the collective {need}"
        )));
    }
    let mut words = Words::new(lines.line("algorithm")?);
    words.keyword("algorithm")?;
    let algorithm = words.rest().to_owned();
    let (mut size, mut claims) = (None, Claims::default());
    let mut claimed: Vec<&str> = Vec::new();
    let step_slots = loop {
        let mut words = Words::new(lines.line("size, claim or steps")?);
        match words.next("size, claim or steps")? {
            Word { text: "size", .. } => {
                let word = words.next("a size")?;
                if size.is_some() || !claimed.is_empty() {
                    return Err(word.wrong("one size, before the claims"));
                }
                size = Some(
                    word.text
                        .parse::<Bytes>()
                        .map_err(|error| word.wrong(error))?,
                );
            }
            Word { text: "claim", .. } => {
                let name = read_claim(&mut words, &mut claims)?;
                if claimed.contains(&name.text) {
                    return Err(name.wrong("claimed twice"));
                }
                claimed.push(name.text);
            }
            Word { text: "steps", .. } => break read_steps(&mut words)?,
            word => return Err(word.wrong("expected size, claim or steps")),
        }
        words.end()?;
    };
    let slots = step_slots.last().map_or(0, |slots| slots.end);
    let mut schedule = Schedule::new(collective);
    schedule.claims = claims;
    if !step_slots.is_empty() {
        schedule.begin_step();
    }
    let plan = Plan {
        fabric,
        schedule,
        algorithm,
        size,
        direction: Vec::new(),
        fibre: Vec::new(),
        wavelength: Vec::new(),
        slot: Vec::new(),
        step_slots,
    };
    Ok((plan, slots))
}

fn read_collective(line: Line<'_>) -> Result<Collective, PlanTextError> {
    let mut words = Words::new(line);
    words.keyword("collective")?;
    let name = words.next("the name of a collective")?;
    let kind = name.text.parse().map_err(|error| name.wrong(error))?;
    let ranks = words.assigned("ranks")?;
    let root = words.assigned("root")?;
    let pieces = words.assigned("pieces")?;
    words.end()?;
    Collective::new(kind, ranks.0)
        .map_err(|error| ranks.1.wrong(error))?
        .with_root(root.0)
        .map_err(|error| root.1.wrong(error))?
        .with_pieces(pieces.0)
        .map_err(|error| pieces.1.wrong(error))
}

/// Reads a claim into `claims`; returns its name.
fn read_claim<'a>(words: &mut Words<'a>, claims: &mut Claims) -> Result<Word<'a>, PlanTextError> {
    const KNOWN: &str = "paper_steps, paper_step_share, neighbours_only, schedule_steps or \
                         chunks_sent_per_rank";
    let name = words.next(KNOWN)?;
    match name.text {
        "paper_steps" => claims.paper_steps = Some(words.next("a number of steps")?.number()?),
        "paper_step_share" => {
            let word = words.next("a fraction")?;
            let (part, whole) = word
                .text
                .split_once('/')
                .and_then(|(part, whole)| Some((part.parse().ok()?, whole.parse().ok()?)))
                .filter(|(_, whole)| *whole > 0)
                .ok_or_else(|| word.wrong("expected a fraction such as 1/16"))?;
            claims.paper_step_share = Some((part, whole));
        }
        "neighbours_only" => claims.neighbours_only = true,
        "schedule_steps" => {
            claims.schedule_steps = Some(words.next("a number of steps")?.number()?)
        }
        "chunks_sent_per_rank" => {
            claims.chunks_sent_per_rank = Some(words.next("a number of chunks")?.number()?);
        }
        _ => return Err(name.wrong(format!("known claims are {KNOWN}"))),
    }
    Ok(name)
}

fn read_steps(words: &mut Words<'_>) -> Result<Vec<Range<u32>>, PlanTextError> {
    let mut steps = Vec::new();
    let mut next = 0u32;
    while let Some(word) = words.optional() {
        let slots: u32 = word.number()?;
        let end = next
            .checked_add(slots)
            .filter(|end| *end <= MOST_SLOTS)
            .ok_or_else(|| word.wrong(format!("a plan has at most {MOST_SLOTS} slots")))?;
        steps.push(next..end);
        next = end;
    }
    Ok(steps)
}

/// One statement `copy|reduce CHUNKS SOURCE>DESTINATION WAY FIBRE.WAVELENGTH` with repetitions.
fn read_lightpath(
    slot: u32,
    action: Word<'_>,
    words: &mut Words<'_>,
    most: u64,
    plan: &mut Plan,
) -> Result<(), PlanTextError> {
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
    let (source, destination) = (ranks.part(source)?, ranks.part(destination)?);
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
    check_range(&base, plan, &chunks, &ranks)?;
    let mut repetitions = Vec::new();
    let mut total = 1u64;
    while let Some(word) = words.optional() {
        let repetition = match word.text.strip_prefix('x') {
            Some(count) => Repetition {
                count: word.part(count)?,
                shift: [0; SHIFTED.len()],
            },
            None => return Err(word.wrong("expected a repetition, such as x4 chunk+1 rank+1")),
        };
        total = total.saturating_mul(u64::from(repetition.count));
        if total == 0 {
            return Err(word.wrong("a repetition stands for one lightpath at the least"));
        }
        if total + plan.len() as u64 > most {
            return Err(word.wrong(format!(
                "the `end` line says {most} lightpaths, this makes more"
            )));
        }
        if repetitions.len() == MOST_REPETITIONS {
            return Err(word.wrong(format!(
                "at most {MOST_REPETITIONS} repetitions to a lightpath"
            )));
        }
        repetitions.push(repetition);
        let repetition = repetitions.last_mut().expect("one was pushed just now");
        while let Some(word) = words.optional_if(|text| !text.starts_with('x')) {
            let (name, by) = word
                .text
                .split_once('+')
                .ok_or_else(|| word.wrong("expected a shift, such as rank+1"))?;
            let index = SHIFTED
                .iter()
                .position(|known| *known == name)
                .ok_or_else(|| {
                    word.wrong(format!("what shifts is one of {}", SHIFTED.join(", ")))
                })?;
            repetition.shift[index] = word.part(by)?;
        }
    }
    expand(base, &repetitions, &channel, plan)
}

/// What a repetition may shift, in the order of [`Repetition::shift`]; `rank` is both ends.
const SHIFTED: [&str; 6] = [
    "chunk",
    "rank",
    "source",
    "destination",
    "fibre",
    "wavelength",
];

struct Repetition {
    count: u32,
    shift: [u32; SHIFTED.len()],
}

/// Refuses numbers that a rotation could not be counted modulo.
fn check_range(
    base: &Lightpath,
    plan: &Plan,
    chunks_word: &Word<'_>,
    ranks_word: &Word<'_>,
) -> Result<(), PlanTextError> {
    let collective = plan.schedule.collective;
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

/// Adds the lightpath and its shifted copies to the plan.
fn expand(
    base: Lightpath,
    repetitions: &[Repetition],
    channel: &Word<'_>,
    plan: &mut Plan,
) -> Result<(), PlanTextError> {
    let Some((outermost, inner)) = repetitions.split_last() else {
        plan.schedule.push(base.transfer);
        plan.direction.push(base.circuit.direction);
        plan.fibre.push(base.circuit.fibre);
        plan.wavelength.push(base.circuit.wavelength);
        plan.slot.push(base.slot);
        return Ok(());
    };
    let collective = plan.schedule.collective;
    let turned = |number: u32, copy: u32, by: u32, modulus: u32| {
        ((u64::from(number) + u64::from(copy) * u64::from(by)) % u64::from(modulus)) as u32
    };
    let added = |number: u32, copy: u32, by: u32| {
        u32::try_from(u64::from(number) + u64::from(copy) * u64::from(by)).ok()
    };
    let [
        chunk_by,
        rank_by,
        source_by,
        destination_by,
        fibre_by,
        wavelength_by,
    ] = outermost.shift;
    for copy in 0..outermost.count {
        let mut shifted = base;
        let transfer = &mut shifted.transfer;
        transfer.chunk = turned(transfer.chunk, copy, chunk_by, collective.chunks());
        for (rank, by) in [
            (&mut transfer.source, source_by),
            (&mut transfer.destination, destination_by),
        ] {
            *rank = turned(*rank, copy, rank_by, collective.ranks());
            *rank = turned(*rank, copy, by, collective.ranks());
        }
        shifted.circuit.fibre = added(base.circuit.fibre.into(), copy, fibre_by)
            .and_then(|fibre| fibre.try_into().ok())
            .ok_or_else(|| channel.wrong("the repetition leaves the range of fibres"))?;
        if wavelength_by > 0 {
            shifted.circuit.wavelength = added(base.circuit.wavelength.into(), copy, wavelength_by)
                .and_then(|wavelength| wavelength.try_into().ok())
                .filter(|wavelength| *wavelength != CONVERTED)
                .ok_or_else(|| channel.wrong("the repetition leaves the range of wavelengths"))?;
        }
        expand(shifted, inner, channel, plan)?;
    }
    Ok(())
}

/// A line that says something: comments and surrounding blanks removed.
#[derive(Clone, Copy)]
struct Line<'a> {
    number: usize,
    text: &'a str,
}

/// The lines that say something.
#[derive(Clone)]
struct Lines<'a> {
    lines: std::iter::Enumerate<std::str::Lines<'a>>,
    last: usize,
}

impl<'a> Lines<'a> {
    fn new(text: &'a str) -> Lines<'a> {
        Lines {
            lines: text.lines().enumerate(),
            last: 0,
        }
    }

    fn next(&mut self) -> Option<Line<'a>> {
        for (index, text) in self.lines.by_ref() {
            self.last = index + 1;
            let text = text.split('#').next().unwrap_or("").trim_end();
            if !text.trim_start().is_empty() {
                return Some(Line {
                    number: index + 1,
                    text,
                });
            }
        }
        None
    }

    fn all(mut self) -> impl Iterator<Item = Line<'a>> {
        std::iter::from_fn(move || self.next())
    }

    fn line(&mut self, expected: &str) -> Result<Line<'a>, PlanTextError> {
        self.next().ok_or_else(|| self.missing(expected))
    }

    fn missing(&self, expected: &str) -> PlanTextError {
        let problem = format!("the file ends where a line was expected: {expected}");
        PlanTextError {
            line: self.last + 1,
            column: 1,
            problem,
        }
    }
}

/// A word of a line, with its place.
#[derive(Clone, Copy)]
struct Word<'a> {
    line: Line<'a>,
    /// Bytes of the line before the word.
    start: usize,
    text: &'a str,
}

impl Word<'_> {
    fn wrong(&self, problem: impl std::fmt::Display) -> PlanTextError {
        PlanTextError {
            line: self.line.number,
            column: self.line.text[..self.start].chars().count() + 1,
            problem: format!("`{}`: {problem}", self.text),
        }
    }

    fn number<N: std::str::FromStr>(&self) -> Result<N, PlanTextError> {
        self.part(self.text)
    }

    fn part<N: std::str::FromStr>(&self, text: &str) -> Result<N, PlanTextError> {
        // A sign would be taken by the parser of integers, but is not part of the form.
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let number = text.parse().ok().filter(|_| digits);
        number.ok_or_else(|| self.wrong(format!("`{text}` is no number that fits here")))
    }
}

/// The words of a line.
struct Words<'a> {
    line: Line<'a>,
    /// Bytes passed.
    at: usize,
}

impl<'a> Words<'a> {
    fn new(line: Line<'a>) -> Words<'a> {
        Words { line, at: 0 }
    }

    fn optional(&mut self) -> Option<Word<'a>> {
        self.optional_if(|_| true)
    }

    /// The next word, if there is one and it fits.
    fn optional_if(&mut self, fits: impl Fn(&str) -> bool) -> Option<Word<'a>> {
        let rest = &self.line.text[self.at..];
        let start = self.at + (rest.len() - rest.trim_start().len());
        let word = self.line.text[start..]
            .split_whitespace()
            .next()
            .filter(|word| fits(word))?;
        self.at = start + word.len();
        Some(Word {
            line: self.line,
            start,
            text: word,
        })
    }

    fn next(&mut self, expected: &str) -> Result<Word<'a>, PlanTextError> {
        self.optional().ok_or_else(|| PlanTextError {
            line: self.line.number,
            column: self.line.text.chars().count() + 1,
            problem: format!("the line ends where {expected} was expected"),
        })
    }

    fn keyword(&mut self, keyword: &str) -> Result<(), PlanTextError> {
        let word = self.next(keyword)?;
        if word.text == keyword {
            Ok(())
        } else {
            Err(word.wrong(format!("expected `{keyword}`")))
        }
    }

    /// The number in `name=number`.
    fn assigned(&mut self, name: &str) -> Result<(u32, Word<'a>), PlanTextError> {
        let word = self.next(name)?;
        let value = word
            .text
            .strip_prefix(name)
            .and_then(|rest| rest.strip_prefix('='))
            .ok_or_else(|| word.wrong(format!("expected `{name}=NUMBER`")))?;
        Ok((word.part(value)?, word))
    }

    fn rest(&self) -> &'a str {
        self.line.text[self.at..].trim()
    }

    fn end(&mut self) -> Result<(), PlanTextError> {
        match self.optional() {
            None => Ok(()),
            Some(word) => Err(word.wrong("the line should end here")),
        }
    }
}
