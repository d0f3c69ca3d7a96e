//! Plans as GOAL text, and the schedules that GOAL text describes.
//!
//! ```text
//! // all_gather ranks=2 root=0 pieces=1 size=10
//! num_ranks 2
//! rank 0 {
//! // step 0 copy 0
//! l0: send 10b to 1 tag 0
//! l1: recv 10b from 1 tag 0
//! }
//! rank 1 {
//! // step 0 copy 1
//! l0: send 10b to 0 tag 0
//! l1: recv 10b from 0 tag 0
//! }
//! ```
//!
//! Each message of a step requires all messages of its rank's previous step. If both steps have
//! many messages, a `calc 0` stands between them: the `calc 0` requires the messages of the first
//! step, and the messages of the second step require the `calc 0`. A reduction has no statement and
//! takes no time.
//!
//! The first comment names the collective and its size in bytes. The comment above each `send`
//! states the step, the action and the chunks as in plan files: `4+2` stands for chunks 4 and 5.
//! GOAL without these comments is the trace of a program and describes no schedule.

use std::io::{self, Write};

use super::error::TraceError;
use super::goal_text;
use super::plan_messages::{Operation, PlanMessage, PlanMessages};
use super::program::{FOLLOWS, Node, NodeKind, Program};
use opticoll_base::interrupt;
use opticoll_base::names::terminal_text;
use opticoll_base::units::Bytes;
use opticoll_plan::collective::{Collective, CollectiveKind};
use opticoll_plan::schedule::{Action, Schedule, Transfer};

/// Messages of one step of a rank, as nodes with consecutive indices.
struct NodeGroup<'a> {
    operations: Vec<Operation<'a>>,
    first: u32,
    /// True if a joining node follows. The joining node requires all nodes of this step, and all
    /// nodes of the next step require the joining node.
    joins: bool,
}

impl NodeGroup<'_> {
    fn end(&self) -> u32 {
        self.first + self.operations.len() as u32
    }

    fn nodes(&self) -> std::ops::Range<u32> {
        self.first..self.end()
    }

    /// Returns the indices of the nodes that the messages of the next step require.
    fn awaited(&self) -> std::ops::Range<u32> {
        match self.joins {
            true => self.end()..self.end() + 1,
            false => self.nodes(),
        }
    }
}

/// Returns the nodes of a rank, grouped by step. A joining node is added between two steps if this
/// lowers the number of dependencies.
fn node_groups(plan: &PlanMessages, rank: u32) -> Vec<NodeGroup<'_>> {
    let mut groups: Vec<NodeGroup<'_>> = Vec::new();
    for operations in plan.rank_steps(rank) {
        let first = groups.last_mut().map_or(0, |last| {
            let (current, next) = (last.operations.len(), operations.len());
            last.joins = current * next > current + next;
            last.awaited().end
        });
        groups.push(NodeGroup {
            operations,
            first,
            joins: false,
        });
    }
    groups
}

/// Writes the messages of a plan as GOAL text, with comments that describe the schedule.
pub fn write_text(plan: &PlanMessages, to: &mut impl Write) -> io::Result<()> {
    let collective = &plan.collective;
    let (kind, ranks, root, pieces) = (
        collective.kind(),
        collective.ranks(),
        collective.root(),
        collective.pieces(),
    );
    let size = plan.size.get();
    writeln!(
        to,
        "// {kind} ranks={ranks} root={root} pieces={pieces} size={size}"
    )?;
    writeln!(to, "num_ranks {ranks}")?;
    for rank in 0..ranks {
        writeln!(to, "rank {rank} {{")?;
        let mut awaited = 0..0;
        for group in node_groups(plan, rank) {
            for (label, (message, sends)) in group.nodes().zip(&group.operations) {
                interrupt::check();
                write_message(plan, message, *sends, label, to)?;
                for earlier in awaited.clone() {
                    writeln!(to, "l{label} requires l{earlier}")?;
                }
            }
            awaited = group.awaited();
            if group.joins {
                let label = awaited.start;
                writeln!(to, "l{label}: calc 0")?;
                for earlier in group.nodes() {
                    writeln!(to, "l{label} requires l{earlier}")?;
                }
            }
        }
        writeln!(to, "}}")?;
    }
    Ok(())
}

fn write_message(
    plan: &PlanMessages,
    message: &PlanMessage,
    sends: bool,
    label: u32,
    to: &mut impl Write,
) -> io::Result<()> {
    let PlanMessage {
        bytes,
        source,
        destination,
        tag,
        step,
        ..
    } = message;
    if !sends {
        return writeln!(to, "l{label}: recv {bytes}b from {source} tag {tag}");
    }
    write!(to, "// step {step} {}", message.action)?;
    for (chunk, count) in plan.ranges(message) {
        write!(to, " {chunk}")?;
        if *count > 1 {
            write!(to, "+{count}")?;
        }
    }
    writeln!(to, "\nl{label}: send {bytes}b to {destination} tag {tag}")
}

/// Reads the schedule that GOAL text describes.
///
/// # Errors
/// Fails like [`goal_text::read`]. Also fails if:
///
/// * a comment is missing or cannot be read;
/// * the size of a message differs from the size of its chunks;
/// * local work takes time;
/// * a message does not wait for all messages of its rank's previous step, or waits for a message
///   that does not belong to an earlier step.
pub fn read(text: &str) -> Result<Schedule, TraceError> {
    let Some((collective, size)) = stated_collective(text)? else {
        return Err(TraceError::Refused(
            "the file does not begin with a comment that names a collective, such as `// \
             all_gather ranks=4 size=4096`, so it is a trace, not a schedule; use `opticoll replay`"
                .into(),
        ));
    };
    let program = goal_text::read(text)?;
    if program.ranks() != collective.ranks() {
        let (stated, ranks) = (collective.ranks(), program.ranks());
        let problem = format!("the comment states {stated} ranks, but there are {ranks} ranks");
        return Err(TraceError::Line { line: 1, problem });
    }
    let lines: Vec<&str> = text.lines().collect();
    let mut sends: Vec<(u32, StatedSend)> = Vec::new();
    for (index, node) in program.nodes.iter().enumerate() {
        interrupt::check();
        if node.kind == NodeKind::Send {
            // Line numbers start at 1. The comment is on the line before the statement.
            let above = (node.line as usize).checked_sub(2);
            let line = above.and_then(|above| lines.get(above).copied());
            let line = line.unwrap_or_default();
            let stated = StatedSend::read(line, &collective, size, node, &program);
            let stated = stated.map_err(|problem| refuse(node, problem))?;
            sends.push((index as u32, stated));
        }
    }
    let mut step_of = vec![0; program.nodes.len()];
    for (index, send) in &sends {
        step_of[*index as usize] = send.step;
        step_of[program.nodes[*index as usize].partner as usize] = send.step;
    }
    for rank in 0..program.ranks() {
        check_order(&program, rank, &step_of)?;
    }
    sends.sort_by_key(|(_, send)| send.step);
    let mut schedule = Schedule::new(collective);
    let mut last = None;
    for (index, send) in sends {
        interrupt::check();
        if last != Some(send.step) {
            schedule.begin_step();
            last = Some(send.step);
        }
        for (chunk, count) in send.ranges {
            schedule.push(Transfer {
                chunk,
                count,
                source: program.rank_of(index),
                destination: program.nodes[index as usize].peer,
                action: send.action,
            });
        }
    }
    Ok(schedule)
}

fn refuse(node: &Node, problem: impl Into<String>) -> TraceError {
    TraceError::Line {
        line: node.line,
        problem: problem.into(),
    }
}

/// Returns the collective and the size in the comment before the first statement. Returns `None` if
/// there is no such comment.
fn stated_collective(text: &str) -> Result<Option<(Collective, Bytes)>, TraceError> {
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        let Some(comment) = line.strip_prefix("//") else {
            match line.is_empty() {
                true => continue,
                false => return Ok(None),
            }
        };
        let words: Vec<&str> = comment.split_whitespace().collect();
        let value = |name: &str| {
            let mut values = words.iter().filter_map(|word| word.strip_prefix(name));
            values.find_map(|rest| rest.strip_prefix('='))
        };
        if value("ranks").is_none() {
            continue;
        }
        let number = index as u32 + 1;
        let wrong = |problem: String| TraceError::Line {
            line: number,
            problem,
        };
        let whole = |name: &str, otherwise: Option<u64>| match value(name) {
            None => otherwise.ok_or_else(|| wrong(format!("the comment has no `{name}=`"))),
            Some(text) => text
                .parse()
                .map_err(|_| wrong(format!("`{name}={}` is not a number", terminal_text(text)))),
        };
        let small = |name, otherwise| {
            let number = whole(name, otherwise)?;
            u32::try_from(number).map_err(|_| wrong(format!("`{name}={number}` is too large")))
        };
        let kind = words[0].parse::<CollectiveKind>();
        let kind = kind.map_err(|error| wrong(error.to_string()))?;
        let ranks = small("ranks", None)?;
        let (root, pieces) = (small("root", Some(0))?, small("pieces", Some(1))?);
        let collective = Collective::new(kind, ranks)
            .and_then(|collective| collective.with_root(root))
            .and_then(|collective| collective.with_pieces(pieces));
        let collective = collective.map_err(|error| wrong(error.to_string()))?;
        return Ok(Some((collective, Bytes::new(whole("size", None)?))));
    }
    Ok(None)
}

struct StatedSend {
    step: u32,
    action: Action,
    ranges: Vec<(u32, u32)>,
}

impl StatedSend {
    fn read(
        line: &str,
        collective: &Collective,
        size: Bytes,
        node: &Node,
        program: &Program,
    ) -> Result<StatedSend, String> {
        let lacking = "no comment above it states the step, the action and the chunks, as in `// \
                       step 0 copy 4+2`";
        let comment = line.trim_start().strip_prefix("//").ok_or(lacking)?;
        let mut words = comment.split_whitespace();
        let step = (words.next() == Some("step")).then(|| words.next()?.parse().ok());
        let step: u32 = step.flatten().ok_or(lacking)?;
        let action = match words.next() {
            Some("copy") => Action::Copy,
            Some("reduce") => Action::Reduce,
            _ => return Err(lacking.into()),
        };
        let chunks = u64::from(collective.chunks());
        let ranges = words.map(|word| {
            let (first, count) = word.split_once('+').unwrap_or((word, "1"));
            let range = first.parse().ok().zip(count.parse().ok());
            let fits = |(first, count): &(u32, u32)| {
                *count > 0 && u64::from(*first) + u64::from(*count) <= chunks
            };
            range.filter(fits).ok_or_else(|| {
                format!(
                    "`{}` is not a range of the {chunks} chunks",
                    terminal_text(word)
                )
            })
        });
        let ranges: Vec<(u32, u32)> = ranges.collect::<Result<_, _>>()?;
        let mut bytes = 0u64;
        for &(chunk, count) in &ranges {
            let range = collective
                .range_bytes(size, chunk, count)
                .map_err(|error| error.to_string())?;
            bytes = bytes
                .checked_add(range.get())
                .ok_or("the bytes of the chunks exceed 64 bits")?;
        }
        if ranges.is_empty() {
            return Err(lacking.into());
        }
        let received = program.nodes[node.partner as usize].amount;
        if node.amount != bytes || received != bytes {
            let sent = node.amount;
            return Err(format!(
                "the chunks have {bytes} bytes; {sent} are sent and {received} received"
            ));
        }
        Ok(StatedSend {
            step,
            action,
            ranges,
        })
    }
}

/// Checks that the dependencies of a rank agree with the steps of its messages. `step_of` contains
/// the index of the step, indexed by node of the program.
fn check_order(program: &Program, rank: u32, step_of: &[u32]) -> Result<(), TraceError> {
    let first = program.rank_starts[rank as usize] as usize;
    let end = program.rank_starts[rank as usize + 1] as usize;
    let is_message = |node: usize| program.nodes[node].kind != NodeKind::Compute;
    let awaited = requirements(program, first..end)?;
    // Last step that each joining node requires, and the number of required messages of this step.
    // Indexed by node of the rank.
    let mut joined: Vec<Option<(u32, usize)>> = vec![None; end - first];
    for node in (first..end).filter(|&node| !is_message(node)) {
        let joining = &program.nodes[node];
        let required = &awaited[node - first];
        if joining.amount != 0 || required.iter().any(|&other| !is_message(other)) {
            let problem =
                "a schedule has no local work; a `calc 0` may join messages that it requires";
            return Err(refuse(joining, problem));
        }
        let last = required.iter().map(|&message| step_of[message]).max();
        joined[node - first] = last.map(|last| {
            (
                last,
                required
                    .iter()
                    .filter(|&&message| step_of[message] == last)
                    .count(),
            )
        });
    }
    let mut messages: Vec<(u32, usize)> = (first..end)
        .filter(|&node| is_message(node))
        .map(|node| (step_of[node], node))
        .collect();
    messages.sort_unstable();
    let mut before: Option<(u32, usize)> = None;
    for group in messages.chunk_by(|message, other| message.0 == other.0) {
        let step = group[0].0;
        for &(_, node) in group {
            interrupt::check();
            let message = &program.nodes[node];
            let mut met = 0;
            for &required_node in &awaited[node - first] {
                let required = match is_message(required_node) {
                    true => Some((step_of[required_node], 1)),
                    false => joined[required_node - first],
                };
                if required.is_some_and(|(last, _)| last >= step) {
                    let problem = format!(
                        "the message of step {step} requires a message that does not belong to an \
                         earlier step"
                    );
                    return Err(refuse(message, problem));
                }
                let is_previous = required.map(|(step, _)| step) == before.map(|(step, _)| step);
                met += usize::from(is_message(required_node) && is_previous);
                if !is_message(required_node) && required == before {
                    met = group_size(before);
                }
            }
            if let Some((last, count)) = before.filter(|(_, count)| met < *count) {
                let problem = format!(
                    "the message of step {step} must require all {count} messages of its rank in \
                     step {last}, not {met} of them"
                );
                return Err(refuse(message, problem));
            }
        }
        before = Some((step, group.len()));
    }
    Ok(())
}

fn group_size(group: Option<(u32, usize)>) -> usize {
    group.map_or(0, |(_, count)| count)
}

/// Returns the indices of the nodes that each node of a rank requires, indexed by node of the rank.
/// `nodes` is the range of the rank's nodes.
fn requirements(
    program: &Program,
    nodes: std::ops::Range<usize>,
) -> Result<Vec<Vec<usize>>, TraceError> {
    let mut awaited = vec![Vec::new(); nodes.len()];
    for node in nodes.clone() {
        interrupt::check();
        let range =
            program.dependent_starts[node] as usize..program.dependent_starts[node + 1] as usize;
        for &dependent in &program.dependents[range] {
            let later = (dependent & !FOLLOWS) as usize;
            if dependent & FOLLOWS != 0 {
                return Err(refuse(
                    &program.nodes[later],
                    "a schedule has no `irequires`",
                ));
            }
            awaited[later - nodes.start].push(node);
        }
    }
    for required in &mut awaited {
        required.dedup();
    }
    Ok(awaited)
}
