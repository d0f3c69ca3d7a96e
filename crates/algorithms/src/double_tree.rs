//! Two trees at once (Sanders, Speck and Träff): each carries half of the vector, cut into pieces
//! that follow one another, and who has children in one of them is a leaf of the other.
//!
//! A single pipelined binary tree uses half of what ranks can send: leaves send nothing, inner ranks
//! send every piece twice. With two trees every rank sends as much as it receives. See
//! `double_tree/trees.rs` for the trees and for why nobody sends or receives twice in a step.
//!
//! **broadcast**: K pieces of a vector M in K + 2 floor(log2(N - 1)) steps of M / K at most; every rank
//! receives M and sends M at most (for odd K, a piece more).
//!
//! **all_reduce**: the same edges upwards, later ones first, combine the vector at rank 0; the results
//! follow down as soon as they are complete. Both pipelines run side by side, so that in a step a rank
//! may send one piece up and another down. K + 4 floor(log2(N - 1)) + 2 steps at most; every rank
//! sends and receives 2 M at most, which is what any all_reduce needs for large N.
//!
//! In k **channels**, as NCCL runs it, the vector is cut into k parts, each with two trees of its own. The trees of channel c
//! join the ranks c of all groups, such as servers; from there a chain goes through the ranks of each group. So what
//! leaves a group leaves at k ranks, and by k network interfaces.

mod trees;

use super::{
    Algorithm, AlgorithmError, CHANNELS, CostFormulas, Request, SEGMENTS, channels, group_size,
    make_room_for, segments,
};
use opticoll_plan::collective::CollectiveKind;
use opticoll_plan::schedule::{Action, Claims, Schedule, Transfer};
use trees::DoubleTreeEdge;

const CITATION: &str = "Sanders, Speck and Träff, Two-tree Algorithms for Full Bandwidth Broadcast, Reduction and \
     Scan, Parallel Computing 2009";

/// The records of this file.
pub const RECORDS: &[Algorithm] = &[
    Algorithm {
        summary: "Reduce each half of the vector up its own tree, then broadcast it down the same tree",
        citation: CITATION,
        options: &[SEGMENTS[0], CHANNELS],
        costs: CostFormulas::new(
            "<= K + 4 floor(log2(N - 1)) + 2",
            "min(2, N / 2)",
            "min(2, N / 2)",
        ),
        ..Algorithm::new(
            "double_binary_tree",
            "Double binary tree",
            CollectiveKind::AllReduce,
            all_reduce,
        )
    },
    Algorithm {
        summary: "Pass each half of the vector, in pieces, down its own tree",
        citation: CITATION,
        options: SEGMENTS,
        costs: CostFormulas::new("<= K + 2 floor(log2(N - 1))", "1", "1"),
        ..Algorithm::new(
            "double_tree",
            "Double tree",
            CollectiveKind::Broadcast,
            broadcast,
        )
    },
];

/// The trees of a request, and the pieces that go along them: piece 2i + t of a channel is the i-th of its tree t.
struct Pipelines {
    /// Of all channels; ranks are counted from the root of the collective.
    edges: Vec<(u32, DoubleTreeEdge)>,
    ranks: u32,
    root: u32,
    /// Of a channel.
    pieces: u32,
    channels: u32,
}

impl Pipelines {
    fn new(request: &Request<'_>) -> Result<Pipelines, AlgorithmError> {
        let (ranks, channels) = (request.ranks(), channels(request)?);
        let size = match channels {
            1 => 1,
            _ => group_size(request.fabric),
        };
        let edges = (0..channels).flat_map(|channel| {
            let edges = trees::through_groups(ranks, size, channel);
            edges.into_iter().map(move |edge| (channel, edge))
        });
        Ok(Pipelines {
            edges: edges.collect(),
            ranks,
            root: request.collective.root(),
            pieces: segments(request.spec)?,
            channels,
        })
    }

    /// The pieces that go along a tree.
    fn pieces_of(&self, tree: usize) -> u32 {
        (self.pieces + 1 - tree as u32) / 2
    }

    /// The edges along which pieces go.
    fn used(&self) -> impl Iterator<Item = &DoubleTreeEdge> {
        let edges = self.edges.iter().map(|(_, edge)| edge);
        edges.filter(|edge| self.pieces_of(edge.tree) > 0)
    }

    /// The step in which the last of the edges in use is used first.
    fn deepest(&self) -> u32 {
        self.used().map(|edge| edge.step).max().unwrap_or(0)
    }

    /// The step after the last one in which something goes down.
    fn end(&self) -> u32 {
        let last = |edge: &DoubleTreeEdge| edge.step + 2 * (self.pieces_of(edge.tree) - 1) + 1;
        self.used().map(last).max().unwrap_or(0)
    }

    /// The most pieces that a rank sends: to its children, and where sums go up, to its parents.
    fn most_sent(&self, goes_up: bool) -> u64 {
        let mut sent = vec![0u64; self.ranks as usize];
        for edge in self.used() {
            let pieces = u64::from(self.pieces_of(edge.tree));
            sent[edge.parent as usize] += pieces;
            sent[edge.child as usize] += if goes_up { pieces } else { 0 };
        }
        sent.into_iter().max().unwrap_or(0)
    }

    /// The pieces on their way down: (step, transfer), in the order of edges.
    fn down(&self) -> impl Iterator<Item = (u32, Transfer)> + '_ {
        self.edges.iter().flat_map(move |(channel, edge)| {
            let rank = |from_root| (self.root + from_root) % self.ranks;
            let (parent, child) = (rank(edge.parent), rank(edge.child));
            (0..self.pieces_of(edge.tree)).map(move |index| {
                let piece = channel * self.pieces + 2 * index + edge.tree as u32;
                (edge.step + 2 * index, Transfer::copy(piece, parent, child))
            })
        })
    }

    /// The same upwards: what went down first goes up last.
    fn up(&self) -> impl Iterator<Item = (u32, Transfer)> + '_ {
        let deepest = self.deepest();
        self.down().map(move |(step, copy)| {
            // The i-th piece of a tree starts two steps after the one before, up as down.
            let waits = 2 * (copy.chunk % self.pieces / 2);
            let transfer = Transfer {
                source: copy.destination,
                destination: copy.source,
                action: Action::Reduce,
                ..copy
            };
            (deepest - (step - waits) + waits, transfer)
        })
    }

    /// A schedule of transfers with their steps.
    fn schedule(
        &self,
        request: &Request<'_>,
        mut timed: Vec<(u32, Transfer)>,
        claims: Claims,
    ) -> Result<Schedule, AlgorithmError> {
        let mut schedule = Schedule::new(
            request
                .collective
                .with_pieces(self.pieces.saturating_mul(self.channels))?,
        );
        schedule.reserve(timed.len());
        timed.sort_by_key(|(step, _)| *step);
        for (step, transfer) in timed {
            while schedule.steps() <= step as usize {
                schedule.begin_step();
            }
            schedule.push(transfer);
        }
        schedule.claims = claims;
        Ok(schedule)
    }

    /// Refuses more transfers than there is room for, `ways` for each edge and piece.
    fn limit(&self, request: &Request<'_>, times: u64) -> Result<(), AlgorithmError> {
        let pieces = u64::from(self.pieces) * u64::from(self.channels);
        let transfers = times * u64::from(self.ranks - 1) * pieces;
        make_room_for(&mut Schedule::new(request.collective), transfers)
    }
}

fn broadcast(request: &Request<'_>) -> Result<Schedule, AlgorithmError> {
    let pipelines = Pipelines::new(request)?;
    pipelines.limit(request, 1)?;
    let claims = Claims {
        schedule_steps: Some(pipelines.end()),
        chunks_sent_per_rank: Some(pipelines.most_sent(false)),
        ..Claims::default()
    };
    pipelines.schedule(request, pipelines.down().collect(), claims)
}

fn all_reduce(request: &Request<'_>) -> Result<Schedule, AlgorithmError> {
    let pipelines = Pipelines::new(request)?;
    pipelines.limit(request, 2)?;
    // The first pieces are complete at the root after step `deepest` at the latest.
    let turn = match pipelines.ranks {
        1 => 0,
        _ => pipelines.deepest() + 1,
    };
    let mut timed: Vec<(u32, Transfer)> = pipelines.up().collect();
    timed.extend(pipelines.down().map(|(step, copy)| (turn + step, copy)));
    let claims = Claims {
        schedule_steps: Some(turn + pipelines.end()),
        chunks_sent_per_rank: Some(pipelines.most_sent(true)),
        ..Claims::default()
    };
    pipelines.schedule(request, timed, claims)
}
