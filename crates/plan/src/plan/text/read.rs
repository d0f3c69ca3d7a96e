//! Reader of plan files, which reports errors with line and column.

use std::ops::Range;

use super::repeated::RowReader;
use super::statement::Statement;
use super::words::{Line, TextLines, Word, Words, check_characters};
use super::{MAGIC, PlanTextError};
use crate::collective::{Collective, CollectiveError, DemandMatrix};
use crate::plan::{NamedRoutes, Plan, Repetition};
use crate::schedule::{Claims, Schedule};
use opticoll_base::interrupt;
use opticoll_base::memory;
use opticoll_base::units::Bytes;
use opticoll_fabric::fabric::Fabric;

/// Reads a plan file. The plan has a row for every lightpath. Fails, with line, column and a hint,
/// if the text does not have the documented form. Does not check whether the lightpaths are valid
/// together; this is the task of the verifier.
pub fn read(text: &str) -> Result<Plan, PlanTextError> {
    let (plan, mut lines, limit) = open(text, MAX_LIGHTPATHS)?;
    let mut consumer = PlanReader {
        plan,
        is_over_slots: false,
    };
    read_slots(&mut lines, limit, &mut consumer)?;
    Ok(consumer.finish())
}

/// Reads a plan file. If the file has the form that [`write`](super::write) gives to a plan with
/// repetition, the plan has the same rows and the same repetition. Otherwise the plan has a row for
/// every lightpath, as from [`read`]. Fails as [`read`] does.
pub fn read_any(text: &str) -> Result<Plan, PlanTextError> {
    let (head, lines, limit) = open(text, u64::MAX)?;
    let readers = [
        RowReader::for_rotations(head.clone()),
        RowReader::for_pieces(head),
    ];
    for mut consumer in readers.into_iter().flatten() {
        if read_slots(&mut lines.clone(), limit, &mut consumer)?
            && let Some(plan) = consumer.finish()
        {
            return Ok(plan);
        }
    }
    read(text)
}

/// Consumer of the statements of a plan file.
trait StatementConsumer {
    /// Returns the plan to which the rows are added. It has the head of the file from the start.
    fn rows(&mut self) -> &mut Plan;

    /// Adds the lightpaths of a statement. Returns false if this consumer cannot represent them.
    fn add_statement(&mut self, statement: &Statement<'_>) -> Result<bool, PlanTextError>;

    /// Returns whether the present slot is complete.
    fn may_end_slot(&self) -> bool;

    fn lightpaths(&self) -> u64;
}

/// Consumer that adds a row for every lightpath of the file.
struct PlanReader {
    plan: Plan,
    /// True if some copies are in other slots than the slot of their statement.
    is_over_slots: bool,
}

impl PlanReader {
    /// Returns the plan, with the lightpaths sorted by slot.
    fn finish(self) -> Plan {
        let PlanReader {
            mut plan,
            is_over_slots,
        } = self;
        if !is_over_slots {
            return plan;
        }
        let mut order: Vec<usize> = (0..plan.len()).collect();
        order.sort_by_key(|&index| plan.slot[index]);
        let mut in_order = plan.without_lightpaths();
        let mut order = order.into_iter().peekable();
        for slots in std::mem::take(&mut plan.step_slots) {
            in_order.schedule.begin_step();
            while let Some(index) = order.next_if(|&index| plan.slot[index] < slots.end) {
                in_order.push(plan.lightpath(index));
            }
        }
        in_order
    }
}

impl StatementConsumer for PlanReader {
    fn rows(&mut self) -> &mut Plan {
        &mut self.plan
    }

    fn add_statement(&mut self, statement: &Statement<'_>) -> Result<bool, PlanTextError> {
        self.is_over_slots |= statement.is_over_slots();
        let lightpaths = self.plan.len() as u64 + statement.block.lightpaths();
        let plans = 1 + u64::from(self.is_over_slots);
        memory::check_forecast(
            "reading this plan",
            lightpaths * plans * BYTES_PER_LIGHTPATH,
        );
        statement.expand(&mut self.plan)?;
        Ok(true)
    }

    fn may_end_slot(&self) -> bool {
        true
    }

    fn lightpaths(&self) -> u64 {
        self.plan.len() as u64
    }
}

impl StatementConsumer for RowReader {
    fn rows(&mut self) -> &mut Plan {
        &mut self.plan
    }

    fn add_statement(&mut self, statement: &Statement<'_>) -> Result<bool, PlanTextError> {
        Ok(self.add_block(&statement.block))
    }

    fn may_end_slot(&self) -> bool {
        self.is_complete()
    }

    fn lightpaths(&self) -> u64 {
        self.lightpaths
    }
}

/// Reads the head of a file. Returns the plan, the lines after the head, and the number of
/// lightpaths that the `end` line states.
fn open(text: &str, limit: u64) -> Result<(Plan, TextLines<'_>, u64), PlanTextError> {
    check_characters(text)?;
    let mut lines = TextLines::new(text);
    let plan = read_head(&mut lines)?;
    let declared = declared_lightpaths(text, &lines, limit)?;
    Ok((plan, lines, declared))
}

/// Reads everything after the head. Returns false if the consumer cannot represent the plan.
fn read_slots(
    lines: &mut TextLines<'_>,
    limit: u64,
    consumer: &mut impl StatementConsumer,
) -> Result<bool, PlanTextError> {
    let mut step_of_slot = 0;
    let mut slot = None;
    loop {
        interrupt::check();
        let Some(line) = lines.next() else {
            return Err(lines.missing("end COUNT; is the file cut short?"));
        };
        let mut words = Words::new(line);
        let first = words.next("slot, copy, reduce or end")?;
        if matches!(first.text, "slot" | "end") && !consumer.may_end_slot() {
            return Ok(false);
        }
        match first {
            Word { text: "slot", .. } => {
                let word = words.next("a slot number")?;
                let number: u32 = word.number()?;
                let slots = consumer.rows().slots();
                if number >= slots {
                    return Err(word.wrong(format!("the steps take {slots} slots, counted from 0")));
                }
                if slot.is_some_and(|slot| number <= slot) {
                    return Err(word.wrong("slots must be in increasing order"));
                }
                while number >= consumer.rows().step_slots[step_of_slot].end {
                    step_of_slot += 1;
                    consumer.rows().schedule.begin_step();
                }
                slot = Some(number);
                words.end()?;
            }
            Word { text: "end", .. } => {
                let word = words.next("the number of lightpaths")?;
                let count: u64 = word.number()?;
                let found = consumer.lightpaths();
                if count != found {
                    return Err(
                        word.wrong(format!("the file holds {found} transfers, not {count}"))
                    );
                }
                words.end()?;
                break;
            }
            word => {
                let Some(slot) = slot else {
                    return Err(word.wrong("a lightpath needs a line `slot NUMBER` before it"));
                };
                let room = limit.saturating_sub(consumer.lightpaths());
                let statement =
                    Statement::read(consumer.rows(), slot, word, &mut words, (room, limit))?;
                if !consumer.add_statement(&statement)? {
                    return Ok(false);
                }
            }
        }
    }
    if let Some(line) = lines.next() {
        return Err(Words::new(line)
            .next("")?
            .wrong("nothing may follow the `end` line"));
    }
    let plan = consumer.rows();
    while plan.schedule.steps() < plan.step_slots.len() {
        plan.schedule.begin_step();
    }
    Ok(true)
}

/// Memory of a lightpath while its file is read, in bytes. A lightpath has 29 bytes in columns,
/// which may reserve twice the memory that they use.
const BYTES_PER_LIGHTPATH: u64 = 58;

/// Maximum number of lightpaths of a plan file; they need about 7 GB of memory.
const MAX_LIGHTPATHS: u64 = 1 << 27;

/// Maximum number of slots of a plan, because simulations store columns of slots.
const MAX_SLOTS: u32 = 1 << 24;

/// Returns the number of lightpaths that the `end` line states. This line is read first, so that
/// repetitions with more lightpaths are rejected before they fill the memory.
fn declared_lightpaths(
    text: &str,
    lines: &TextLines<'_>,
    limit: u64,
) -> Result<u64, PlanTextError> {
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
    if count > limit {
        return Err(word.wrong(format!(
            "a plan file holds at most {limit} lightpaths, unless all of them are copies in a \
             rotation-symmetric or a pipelined plan"
        )));
    }
    Ok(count)
}

/// Reads all lines up to and including `steps`, and begins step 0.
fn read_head(lines: &mut TextLines<'_>) -> Result<Plan, PlanTextError> {
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
    let (collective, fabric_line) = read_demand(collective, lines)?;
    let mut words = Words::new(fabric_line);
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
                    return Err(word.wrong("a plan has one size, before the claims"));
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
                    return Err(name.wrong("this claim occurs twice"));
                }
                claimed.push(name.text);
            }
            Word { text: "steps", .. } => break read_steps(&mut words)?,
            word => return Err(word.wrong("expected size, claim or steps")),
        }
        words.end()?;
    };
    let mut schedule = Schedule::new(collective);
    schedule.claims = claims;
    if !step_slots.is_empty() {
        schedule.begin_step();
    }
    Ok(Plan {
        fabric,
        schedule,
        algorithm,
        size,
        light: Vec::new(),
        slot: Vec::new(),
        step_slots,
        relays: Vec::new(),
        routes: NamedRoutes::default(),
        repetition: Repetition::NONE,
    })
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

/// Reads the demand, if any. Returns the collective with the demand, and the line after it.
fn read_demand<'a>(
    collective: Collective,
    lines: &mut TextLines<'a>,
) -> Result<(Collective, Line<'a>), PlanTextError> {
    let mut chunks = Vec::new();
    let mut first = None;
    loop {
        let line = lines.line("fabric, or demand")?;
        let mut words = Words::new(line);
        let Some(keyword) = words.optional_if(|word| word == "demand") else {
            let Some(keyword) = first else {
                return Ok((collective, line));
            };
            let wrong = |error: CollectiveError| Word::wrong(&keyword, error);
            let demand = DemandMatrix::new(collective.ranks(), chunks);
            let demand = demand.map_err(|error| wrong(error.into()))?;
            return Ok((collective.with_demand(demand).map_err(wrong)?, line));
        };
        first.get_or_insert(keyword);
        let source: u32 = words.next("the rank that sends")?.number()?;
        let missing = "a destination with its chunks, such as 1=4096+1024";
        let mut word = words.next(missing)?;
        loop {
            interrupt::check();
            let (destination, amounts) = word
                .text
                .split_once('=')
                .ok_or_else(|| word.wrong(format!("expected {missing}")))?;
            let destination = word.part(destination)?;
            let before = chunks
                .last()
                .map(|(source, destination, _)| (*source, *destination));
            if before.is_some_and(|before| before >= (source, destination)) {
                return Err(word.wrong(
                    "sources must increase from line to line, and destinations within a line",
                ));
            }
            if source.max(destination) >= collective.ranks() {
                let ranks = collective.ranks();
                return Err(word.wrong(format!("there are {ranks} ranks, counted from 0")));
            }
            for amount in amounts.split('+') {
                let amount = word.part(amount)?;
                if amount == 0 {
                    return Err(word.wrong("a chunk has at least one byte"));
                }
                chunks.push((source, destination, amount));
            }
            match words.optional() {
                Some(next) => word = next,
                None => break,
            }
        }
    }
}

fn read_claim<'a>(words: &mut Words<'a>, claims: &mut Claims) -> Result<Word<'a>, PlanTextError> {
    const KNOWN: &str = "paper_steps, neighbours_only, schedule_steps or chunks_sent_per_rank";
    let name = words.next(KNOWN)?;
    match name.text {
        "paper_steps" => claims.paper_steps = Some(words.next("a number of steps")?.number()?),
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
            .filter(|end| *end <= MAX_SLOTS)
            .ok_or_else(|| word.wrong(format!("a plan has at most {MAX_SLOTS} slots")))?;
        steps.push(next..end);
        next = end;
    }
    Ok(steps)
}
