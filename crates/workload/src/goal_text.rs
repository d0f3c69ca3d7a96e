//! Reader of the text form of GOAL, a language for programs of messages.
//!
//! ```text
//! num_ranks 2
//! rank 0 {
//!   l1: calc 100                 local work in ns; optional `cpu K`
//!   l2: send 10b to 1 tag 7      optional `tag T`, `cpu K`, `nic M`, in this order
//!   l2 requires l1               begins when l1 has ended
//! }
//! rank 1 {
//!   l1: recv 10b from 0 tag 7
//!   l2: calc 5
//!   l2 irequires l1              begins when l1 has begun
//! }
//! ```
//!
//! Ranks appear in order. A label is optional and local to its rank; it must be defined above its
//! uses. The dependencies of a statement may stand anywhere below the statement in the same rank.
//! `//` and `/* */` are comments. Statements of the same `cpu` run one after another. With the cost
//! model `loggp`, each `nic` has its own ports; the links of a fabric do not depend on `nic`.
//!
//! Sends and receives with the same source, destination and tag match in the order of statements. A
//! receive from any rank or with any tag (`-1`) is rejected, because the matching send would depend
//! on the times of messages.

use rustc_hash::FxHashMap;

use super::error::{Place, TraceError};
use super::program::{Call, Node, NodeKind, Program, ProgramBuilder};
use super::trace::MAX_RANKS;
use opticoll_base::interrupt;
use opticoll_base::names::terminal_text;

/// Number that stands for any rank or any tag.
pub(super) const ANY: u32 = u32::MAX;

/// Reads a program in GOAL text.
///
/// # Errors
/// Fails at the first line that cannot be read; the error says what was expected. Also fails if a
/// send or receive has no match, or for a receive from any rank or with any tag.
pub fn read(text: &str) -> Result<Program, TraceError> {
    let mut reader = GoalParser::default();
    let mut in_comment = false;
    for (index, line) in text.lines().enumerate() {
        interrupt::check();
        reader.line = u32::try_from(index + 1).unwrap_or(u32::MAX);
        let stripped;
        let line = match in_comment || line.contains('/') {
            true => {
                stripped = without_comments(line, &mut in_comment);
                &stripped
            }
            false => line,
        };
        reader.statement(line)?;
    }
    reader.finish(in_comment)
}

/// Returns `line` without comments. `inside` is true if the line starts inside a block comment, and
/// is updated for the next line.
fn without_comments(line: &str, inside: &mut bool) -> String {
    let mut remaining = line;
    let mut kept = String::new();
    loop {
        if *inside {
            let Some((_, after)) = remaining.split_once("*/") else {
                return kept;
            };
            (*inside, remaining) = (false, after);
        }
        let (block, end) = (remaining.find("/*"), remaining.find("//"));
        match (block, end) {
            (Some(block), end) if end.is_none_or(|end| block < end) => {
                kept.push_str(&remaining[..block]);
                kept.push(' ');
                (*inside, remaining) = (true, &remaining[block + 2..]);
            }
            (_, Some(end)) => return kept + &remaining[..end],
            _ => return kept + remaining,
        }
    }
}

/// Dependency within a rank: the index of the waiting statement, the index of the awaited
/// statement, and true if the start of the awaited statement is enough.
type Dependency = (u32, u32, bool);

#[derive(Default)]
struct GoalParser {
    line: u32,
    declared: Option<u32>,
    ranks: u32,
    open: bool,
    nodes: Vec<Node>,
    /// Nodes of the open rank with an interface other than 0, in ascending order.
    interfaces: Vec<(u32, u8)>,
    edges: Vec<Dependency>,
    labels: FxHashMap<Box<str>, u32>,
    builder: ProgramBuilder,
}

impl GoalParser {
    fn refuse(&self, problem: impl Into<String>) -> TraceError {
        TraceError::Line {
            line: self.line,
            problem: problem.into(),
        }
    }

    fn statement(&mut self, line: &str) -> Result<(), TraceError> {
        let mut words = line.split_whitespace();
        let Some(first) = words.next() else {
            return Ok(());
        };
        match first {
            "num_ranks" => self.declare(words),
            "rank" => self.begin_rank(words),
            "}" => self.end_rank(words),
            _ if self.declared.is_none() => Err(self.refuse("GOAL begins with `num_ranks N`")),
            _ if !self.open => Err(self.refuse("expected `rank R {`")),
            _ => match first.strip_suffix(':') {
                Some(label) => {
                    let index = self.nodes.len() as u32;
                    let is_valid = label.starts_with(|first: char| first.is_ascii_alphabetic())
                        && label.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
                    if !is_valid {
                        return Err(self.refuse(format!(
                            "`{}` is not a label: a letter, then letters, digits and _",
                            terminal_text(label)
                        )));
                    }
                    if self.labels.insert(label.into(), index).is_some() {
                        return Err(self
                            .refuse(format!("label `{}` is defined twice", terminal_text(label))));
                    }
                    let operation = words
                        .next()
                        .ok_or_else(|| self.refuse("no statement follows the label"))?;
                    self.operation(operation, words)
                }
                None if matches!(first, "calc" | "send" | "recv") => self.operation(first, words),
                None => self.dependency(first, words),
            },
        }
    }

    fn declare(&mut self, mut words: GoalWords<'_>) -> Result<(), TraceError> {
        let ranks: u32 = self.number(words.next(), "a number of ranks")?;
        if self.declared.is_some() || !(1..=MAX_RANKS).contains(&ranks) {
            return Err(self.refuse(format!(
                "`num_ranks` occurs once, with 1 to {MAX_RANKS} ranks"
            )));
        }
        self.declared = Some(ranks);
        self.ended(words)
    }

    fn begin_rank(&mut self, mut words: GoalWords<'_>) -> Result<(), TraceError> {
        let rank: u32 = self.number(words.next(), "a rank")?;
        let expected = self
            .declared
            .filter(|&ranks| self.ranks < ranks && !self.open);
        if expected.is_none() || rank != self.ranks || words.next() != Some("{") {
            return Err(self.refuse(format!(
                "ranks must be in order, each as `rank R {{ ... }}`, after `num_ranks N`; the next \
                 rank is {}",
                self.ranks
            )));
        }
        (self.open, self.ranks) = (true, self.ranks + 1);
        self.ended(words)
    }

    fn end_rank(&mut self, words: GoalWords<'_>) -> Result<(), TraceError> {
        if !self.open {
            return Err(self.refuse("`}` without `rank R {`"));
        }
        self.open = false;
        self.builder.begin_rank();
        let first = self.builder.next();
        // The dependencies are mostly sorted already, so a stable sort is cheap.
        self.edges.sort_by_key(|edge| edge.0);
        let mut edges = self.edges.drain(..).peekable();
        let mut interfaces = self.interfaces.drain(..).peekable();
        for (index, node) in self.nodes.drain(..).enumerate() {
            interrupt::check();
            self.builder.push(node)?;
            if let Some((_, nic)) = interfaces.next_if(|(node, _)| *node == index as u32) {
                self.builder.take_interface(nic);
            }
            while let Some((_, earlier, follows)) = edges.next_if(|edge| edge.0 == index as u32) {
                match follows {
                    false => self.builder.require(first + earlier),
                    true => self.builder.follow(first + earlier),
                }
            }
        }
        drop((edges, interfaces));
        self.labels.clear();
        self.ended(words)
    }

    fn operation(&mut self, operation: &str, mut words: GoalWords<'_>) -> Result<(), TraceError> {
        let place = Place {
            rank: self.ranks - 1,
            event: self.nodes.len() as u32,
            line: self.line,
        };
        let mut node = Node {
            event: place.event,
            line: place.line,
            ..Node::work(NodeKind::Compute, 0)
        };
        let amount = words.next();
        match operation {
            "calc" => {
                let nanoseconds: u64 = self.number(amount, "a time in nanoseconds")?;
                let picoseconds = nanoseconds.checked_mul(1000);
                node.amount = picoseconds
                    .ok_or_else(|| self.refuse("the work exceeds 64 bits of picoseconds"))?;
            }
            "send" | "recv" => {
                let bytes = amount.and_then(|word| word.strip_suffix('b'));
                node.amount = self.number(bytes, "a size such as `10b`")?;
                let (joint, kind, call) = match operation {
                    "send" => ("to", NodeKind::Send, Call::Send),
                    _ => ("from", NodeKind::Receive, Call::Receive),
                };
                (node.kind, node.call) = (kind, call);
                if words.next() != Some(joint) {
                    return Err(self.refuse(format!("expected `{operation} SIZEb {joint} RANK`")));
                }
                node.peer = self.number_or_any(words.next(), "a rank")?;
            }
            _ => {
                return Err(self.refuse(format!(
                    "`{}` is not calc, send or recv",
                    terminal_text(operation)
                )));
            }
        }
        let mut any = operation != "calc" && node.peer == ANY;
        while let Some(word) = words.next() {
            match word {
                "tag" if operation != "calc" => {
                    node.tag = self.number_or_any(words.next(), "a tag")?;
                    any |= node.tag == ANY;
                }
                "cpu" => node.processor = self.number(words.next(), "a cpu from 0 to 255")?,
                "nic" if operation != "calc" => {
                    let nic = self.number(words.next(), "a nic from 0 to 255")?;
                    if nic > 0 {
                        self.interfaces.push((self.nodes.len() as u32, nic));
                    }
                }
                _ => {
                    return Err(
                        self.refuse(format!("`{}` is not tag, cpu or nic", terminal_text(word)))
                    );
                }
            }
        }
        if any {
            return Err(wildcard(place));
        }
        self.nodes.push(node);
        Ok(())
    }

    fn dependency(&mut self, later: &str, mut words: GoalWords<'_>) -> Result<(), TraceError> {
        let follows = match words.next() {
            Some("requires") => false,
            Some("irequires") => true,
            _ => return Err(self.refuse("expected a statement, or `LABEL requires LABEL`")),
        };
        let earlier = words.next().unwrap_or_default();
        let find = |label: &str| {
            let index = self.labels.get(label).copied();
            index.ok_or_else(|| {
                self.refuse(format!(
                    "label `{}` is not defined above",
                    terminal_text(label)
                ))
            })
        };
        let (later, earlier) = (find(later)?, find(earlier)?);
        if later == earlier {
            return Err(self.refuse("a statement cannot wait for itself"));
        }
        self.edges.push((later, earlier, follows));
        self.ended(words)
    }

    fn number<N: std::str::FromStr>(
        &self,
        word: Option<&str>,
        what: &str,
    ) -> Result<N, TraceError> {
        let parsed = word.and_then(|word| word.parse().ok());
        parsed.ok_or_else(|| {
            self.refuse(format!(
                "`{}` is not {what}",
                terminal_text(word.unwrap_or_default())
            ))
        })
    }

    fn number_or_any(&self, word: Option<&str>, what: &str) -> Result<u32, TraceError> {
        match word {
            Some("-1") => Ok(ANY),
            word => self.number(word, what),
        }
    }

    fn ended(&self, mut words: GoalWords<'_>) -> Result<(), TraceError> {
        match words.next() {
            None => Ok(()),
            Some(word) => Err(self.refuse(format!(
                "`{}` follows the end of the statement",
                terminal_text(word)
            ))),
        }
    }

    fn finish(self, in_comment: bool) -> Result<Program, TraceError> {
        if self.open || in_comment || self.declared != Some(self.ranks) {
            let declared = self.declared.unwrap_or(0);
            return Err(self.refuse(format!(
                "the text ends within rank {} of {declared}",
                self.ranks
            )));
        }
        self.builder.finish()
    }
}

type GoalWords<'a> = std::str::SplitWhitespace<'a>;

fn wildcard(place: Place) -> TraceError {
    TraceError::at(
        place,
        "a receive from any rank or of any tag is not supported: trace the rank and the tag that \
         it received",
    )
}
