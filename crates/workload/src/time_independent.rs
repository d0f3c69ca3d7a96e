//! Reader and writer of SimGrid's time-independent traces (SMPI, `smpirun -trace-ti`), with all
//! ranks in one text.
//!
//! Each line contains one action: rank, name, arguments. Arguments in brackets are optional.
//!
//! | action | arguments |
//! |---|---|
//! | `init`, `finalize` | `init` with an argument makes doubles the default type, otherwise bytes |
//! | `compute` | floating point operations |
//! | `send`, `isend`, `recv`, `irecv` | partner, tag, elements, \[type\] |
//! | `sendRecv` | elements sent, destination, elements received, source, \[types\] |
//! | `wait` | source, destination and tag of the request; the oldest open request is meant |
//! | `sleep` | seconds |
//! | `waitall`, `barrier`, `comm_size`, `comm_split`, `comm_dup`, `test`, `location` | ignored |
//! | `bcast` | elements, \[root\], \[type\] |
//! | `reduce` | elements, operations, \[root\], \[type\] |
//! | `allreduce`, `scan`, `exscan` | elements, operations, \[type\] |
//! | `reducescatter` | elements of each rank's block, operations, \[type\] |
//! | `gather`, `scatter` | elements of a block sent, received, \[root\], \[types\] |
//! | `gatherv` | elements sent, elements of each block received, \[root\], \[types\] |
//! | `scatterv` | elements of each block sent, elements received, \[root\], \[types\] |
//! | `allgather`, `alltoall` | elements of a block sent, received, \[types\] |
//! | `allgatherv` | elements sent, elements of each block received, \[type\] |
//! | `alltoallv` | buffer, elements to each rank, buffer, elements from each rank, \[types\] |
//!
//! Names are in lower or upper case. A receive of 0 or fewer elements accepts a message of any
//! size. `test` does not wait. `sendRecv` has tag 0. `scan` and `exscan` become the messages of
//! recursive doubling: in step k, each rank sends to the rank 2^k above it, if there is one.
//!
//! Types are 0 double, 1 int, 2 char, 3 short, 4 long, 5 float, 6 byte. All communication is among
//! all ranks. The trace contains no times: the time of operations is their number divided by a
//! rate, rounded to a picosecond. The operations of a reduction follow the reduction.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Write};

use super::error::TraceError;
use super::plan_messages::{PlanMessage, PlanMessages};
use super::program::Call;
use super::trace::MAX_RANKS;
use super::trace::{Event, Trace};
use opticoll_base::interrupt;
use opticoll_base::names::terminal_text;

/// Reads a time-independent trace. Each rank executes `operations_per_second` floating point
/// operations per second.
///
/// # Errors
/// Fails at the first line that cannot be read; the error says what was expected.
pub fn read(text: &str, operations_per_second: u64) -> Result<Trace, TraceError> {
    let mut ranks: Vec<RankState> = Vec::new();
    let mut actions = Vec::new();
    for (index, line) in text.lines().enumerate() {
        interrupt::check();
        let number = u32::try_from(index + 1).unwrap_or(u32::MAX);
        let words: Vec<&str> = line.split_whitespace().collect();
        if words.is_empty() || words[0].starts_with('#') {
            continue;
        }
        let refuse = |problem| TraceError::Line {
            line: number,
            problem,
        };
        let rank = words[0]
            .parse::<u32>()
            .ok()
            .filter(|&rank| rank < MAX_RANKS);
        let rank = rank.ok_or_else(|| {
            refuse(format!(
                "`{}` is not a rank below {MAX_RANKS}",
                terminal_text(words[0])
            ))
        })?;
        if ranks.len() <= rank as usize {
            ranks.resize_with(rank as usize + 1, RankState::default);
        }
        actions.push((rank, number, words));
    }
    if ranks.is_empty() {
        return Err(TraceError::Line {
            line: 1,
            problem: "the text has no action".into(),
        });
    }
    let rank_count = ranks.len() as u64;
    let mut trace = Trace::new(rank_count as u32);
    for (rank, line, words) in actions {
        interrupt::check();
        let action = ActionLine {
            words: &words[1..],
            rank,
            ranks: rank_count,
            operations_per_second,
            double: ranks[rank as usize].double,
        };
        let events = action.events(&mut ranks[rank as usize], &mut trace.various);
        let events = events.map_err(|problem| TraceError::Line { line, problem })?;
        let events = events.into_iter().map(|event| Event { line, ..event });
        trace.ranks[rank as usize].extend(events);
    }
    Ok(trace)
}

/// Writes the messages of a plan. A rank starts the messages of a step together and then waits for
/// all of them. A reduction takes no time.
pub fn write(plan: &PlanMessages, to: &mut impl Write) -> io::Result<()> {
    for rank in 0..plan.collective.ranks() {
        writeln!(to, "{rank} init")?;
        for operations in plan.rank_steps(rank) {
            // Receives come first, so that no message arrives before its receive.
            for (message, _) in operations.iter().filter(|(_, sends)| !sends) {
                let PlanMessage {
                    source, tag, bytes, ..
                } = message;
                writeln!(to, "{rank} irecv {source} {tag} {bytes}")?;
            }
            for (message, _) in operations.iter().filter(|(_, sends)| *sends) {
                let PlanMessage {
                    destination,
                    tag,
                    bytes,
                    ..
                } = message;
                writeln!(to, "{rank} isend {destination} {tag} {bytes}")?;
            }
            writeln!(to, "{rank} waitall {}", operations.len())?;
        }
        writeln!(to, "{rank} finalize")?;
    }
    Ok(())
}

#[derive(Default)]
struct RankState {
    /// True if elements without a type are doubles.
    double: bool,
    /// Time of a reduction's operations in picoseconds, which is added to the next action.
    deferred: u64,
    requests: u32,
    open: BTreeMap<(u32, u32, u32), VecDeque<u32>>,
}

struct ActionLine<'a> {
    words: &'a [&'a str],
    rank: u32,
    ranks: u64,
    operations_per_second: u64,
    double: bool,
}

/// Tag of the messages of `scan` and `exscan`, the largest that is no tag of collectives.
const SCAN_TAG: u32 = (1 << 31) - 1;

impl ActionLine<'_> {
    /// Returns the events of the action, and updates the state of the rank. The sizes of an
    /// Alltoallv go to `various`.
    fn events(
        &self,
        state: &mut RankState,
        various: &mut Vec<Vec<u64>>,
    ) -> Result<Vec<Event>, String> {
        let name = self.words.first().ok_or("an action has a name")?;
        let name = name.to_ascii_lowercase();
        match name.as_str() {
            "sendrecv" => {
                let end = |place, size, kind| {
                    Ok::<_, String>((self.rank_at(place)?, self.bytes(size, kind)?))
                };
                let (to, from) = (end(2, 1, 5)?, end(4, 3, 6)?);
                self.exchange(state, Some(to), Some(from), 0)
            }
            "scan" | "exscan" => {
                let bytes = self.bytes(1, 3)?;
                let mut events = Vec::new();
                let mut distance = 1;
                while distance < self.ranks as u32 {
                    let above = (self.rank + distance < self.ranks as u32)
                        .then_some((self.rank + distance, bytes));
                    let below = self.rank.checked_sub(distance).map(|rank| (rank, bytes));
                    events.extend(self.exchange(state, above, below, SCAN_TAG)?);
                    distance *= 2;
                }
                state.deferred += self.operations(2)?;
                Ok(events)
            }
            "alltoallv" => {
                let ranks = self.ranks as usize;
                let kind = 3 + 2 * ranks;
                let sizes = (2..2 + ranks).map(|place| self.bytes(place, kind));
                let sizes: Vec<u64> = sizes.collect::<Result<_, _>>()?;
                let bytes = sizes
                    .iter()
                    .try_fold(0u64, |sum, &size| sum.checked_add(size));
                let event = Event {
                    compute: std::mem::take(&mut state.deferred),
                    bytes: bytes.ok_or("the size exceeds 64 bits")?,
                    request: various.len() as u32,
                    call: Call::AllToAllVarious,
                    ..Event::NOTHING
                };
                various.push(sizes);
                Ok(vec![event])
            }
            _ => Ok(vec![self.event(&name, state)?]),
        }
    }

    /// Returns the events of a message to one rank and a message from another, which go at the same
    /// time.
    fn exchange(
        &self,
        state: &mut RankState,
        to: Option<(u32, u64)>,
        from: Option<(u32, u64)>,
        tag: u32,
    ) -> Result<Vec<Event>, String> {
        let mut events = Vec::new();
        let ends = [(Call::ImmediateReceive, from), (Call::ImmediateSend, to)];
        for (call, end) in ends {
            if let Some((peer, bytes)) = end {
                let request = state.requests;
                state.requests = request.checked_add(1).ok_or("too many requests")?;
                events.push(Event {
                    compute: std::mem::take(&mut state.deferred),
                    bytes,
                    peer,
                    tag,
                    request,
                    call,
                    ..Event::NOTHING
                });
            }
        }
        for number in 0..events.len() {
            events.push(Event {
                request: events[number].request,
                call: Call::Wait,
                ..Event::NOTHING
            });
        }
        Ok(events)
    }

    /// Returns the event of an action that has one event, and updates the state of the rank.
    fn event(&self, name: &str, state: &mut RankState) -> Result<Event, String> {
        let deferred = std::mem::take(&mut state.deferred);
        let event = Event {
            compute: deferred,
            ..Event::NOTHING
        };
        Ok(match name {
            "init" => {
                state.double = self.words.len() > 1;
                event
            }
            "finalize" | "comm_size" | "comm_split" | "comm_dup" | "test" | "location" => event,
            "sleep" => Event {
                compute: deferred
                    .checked_add(self.picoseconds(1, 1.0)?)
                    .ok_or("the work is too long")?,
                ..event
            },
            "compute" => Event {
                compute: deferred
                    .checked_add(self.operations(1)?)
                    .ok_or("the work is too long")?,
                ..event
            },
            "send" => self.message(event, Call::Send)?,
            "recv" => self.message(event, Call::Receive)?,
            "isend" | "irecv" => {
                let sends = name == "isend";
                let call = if sends {
                    Call::ImmediateSend
                } else {
                    Call::ImmediateReceive
                };
                let message = self.message(event, call)?;
                let ends = if sends {
                    (self.rank, message.peer)
                } else {
                    (message.peer, self.rank)
                };
                let request = state.requests;
                state.requests = request.checked_add(1).ok_or("too many requests")?;
                state
                    .open
                    .entry((ends.0, ends.1, message.tag))
                    .or_default()
                    .push_back(request);
                Event { request, ..message }
            }
            "wait" => {
                let key = (self.rank_at(1)?, self.rank_at(2)?, self.whole(3)?);
                let oldest = state.open.get_mut(&key).and_then(VecDeque::pop_front);
                let request = oldest.ok_or_else(|| {
                    format!(
                        "no request from {} to {} with tag {} is open",
                        key.0, key.1, key.2
                    )
                })?;
                Event {
                    request,
                    call: Call::Wait,
                    ..event
                }
            }
            "waitall" => {
                state.open.clear();
                Event {
                    call: Call::Wait,
                    ..event
                }
            }
            "barrier" => Event {
                call: Call::Barrier,
                ..event
            },
            "bcast" => self.collective(event, Call::Broadcast, (1, 3), Some(2), 1)?,
            "reduce" => {
                state.deferred = self.operations(2)?;
                self.collective(event, Call::Reduce, (1, 4), Some(3), 1)?
            }
            "allreduce" => {
                state.deferred = self.operations(2)?;
                self.collective(event, Call::AllReduce, (1, 3), None, 1)?
            }
            "gather" => self.collective(event, Call::Gather, (1, 4), Some(3), 1)?,
            "scatter" => self.collective(event, Call::Scatter, (1, 4), Some(3), 1)?,
            "gatherv" => {
                let root = 2 + self.ranks as usize;
                self.collective(event, Call::GatherVarious, (1, root + 1), Some(root), 1)?
            }
            "scatterv" => {
                let root = 2 + self.ranks as usize;
                let places = (root - 1, root + 2);
                self.collective(event, Call::ScatterVarious, places, Some(root), 1)?
            }
            "allgatherv" => {
                // Displacements may stand between the blocks and the type, or without a type.
                let (blocks, words) = (2 + self.ranks as usize, self.words.len());
                let has_type = words <= blocks + 2 || words > blocks + self.ranks as usize;
                let kind = if has_type { blocks } else { usize::MAX };
                self.collective(event, Call::AllGatherVarious, (1, kind), None, 1)?
            }
            "reducescatter" => {
                let ranks = self.ranks as usize;
                let own = (1 + self.rank as usize, ranks + 2);
                state.deferred = self.operations(ranks + 1)?;
                self.collective(event, Call::ReduceScatterVarious, own, None, 1)?
            }
            "allgather" => self.collective(event, Call::AllGather, (1, 3), None, 1)?,
            "alltoall" => self.collective(event, Call::AllToAll, (1, 3), None, self.ranks)?,
            _ => return Err(format!("unknown action `{}`", terminal_text(name))),
        })
    }

    fn message(&self, event: Event, call: Call) -> Result<Event, String> {
        let receives = matches!(call, Call::Receive | Call::ImmediateReceive);
        let open = receives
            && self
                .words
                .get(3)
                .is_some_and(|word| word.starts_with('-') || *word == "0");
        let bytes = if open { u64::MAX } else { self.bytes(3, 4)? };
        Ok(Event {
            bytes,
            peer: self.rank_at(1)?,
            tag: self.whole(2)?,
            call,
            ..event
        })
    }

    /// Returns the event of a collective. `size`, `kind` and `root` are the indices of the words
    /// with the size, the type and the root. The size of the event is `blocks` times the size in
    /// the line.
    fn collective(
        &self,
        event: Event,
        call: Call,
        (size, kind): (usize, usize),
        root: Option<usize>,
        blocks: u64,
    ) -> Result<Event, String> {
        let peer = match root {
            None => Event::NOTHING.peer,
            Some(place) if self.words.len() > place => self.rank_at(place)?,
            Some(_) => 0,
        };
        let bytes = self.bytes(size, kind)?.checked_mul(blocks);
        Ok(Event {
            bytes: bytes.ok_or("the size exceeds 64 bits")?,
            peer,
            call,
            ..event
        })
    }

    fn word(&self, place: usize) -> Result<&str, String> {
        let word = self.words.get(place).copied();
        word.ok_or_else(|| {
            format!(
                "`{}` needs {place} arguments or more",
                terminal_text(self.words[0])
            )
        })
    }

    fn whole(&self, place: usize) -> Result<u32, String> {
        let word = self.word(place)?;
        word.parse().map_err(|_| {
            format!(
                "`{}` is not a whole number; any rank or tag is not supported",
                terminal_text(word)
            )
        })
    }

    fn rank_at(&self, place: usize) -> Result<u32, String> {
        let rank = self.whole(place)?;
        match u64::from(rank) < self.ranks {
            true => Ok(rank),
            false => Err(format!(
                "there is no rank {rank}; ranks are 0 to {}",
                self.ranks - 1
            )),
        }
    }

    /// Parses a number of at least 0, possibly with a decimal point or an exponent.
    fn real(&self, place: usize) -> Result<f64, String> {
        let word = self.word(place)?;
        let number = word
            .parse()
            .ok()
            .filter(|number: &f64| number.is_finite() && *number >= 0.0);
        number.ok_or_else(|| format!("`{}` is not a number of at least 0", terminal_text(word)))
    }

    fn bytes(&self, size: usize, kind: usize) -> Result<u64, String> {
        let elements = self.real(size)?;
        if elements.fract() != 0.0 || elements >= 2f64.powi(53) {
            return Err(format!(
                "`{}` is not a whole number of elements below 2^53",
                terminal_text(self.words[size])
            ));
        }
        let width = match self.words.get(kind) {
            None if self.double => 8,
            None => 1,
            Some(&"0" | &"4") => 8,
            Some(&"1" | &"5") => 4,
            Some(&"3") => 2,
            Some(&"2" | &"6") => 1,
            Some(other) => {
                return Err(format!(
                    "`{}` is not a type from 0 to 6",
                    terminal_text(other)
                ));
            }
        };
        Ok(elements as u64 * width)
    }

    /// Reads the number of operations in the word at index `place`. Returns the time of these
    /// operations in picoseconds.
    fn operations(&self, place: usize) -> Result<u64, String> {
        self.picoseconds(place, self.operations_per_second as f64)
    }

    /// Reads the number in the word at index `place`, of which `rate` go by in a second. Returns
    /// the time in picoseconds.
    fn picoseconds(&self, place: usize, rate: f64) -> Result<u64, String> {
        let picoseconds = self.real(place)? * 1e12 / rate;
        match picoseconds < 2f64.powi(63) {
            true => Ok(picoseconds.round() as u64),
            false => Err(
                "the work exceeds 64 bits of picoseconds; state the operations per second".into(),
            ),
        }
    }
}
