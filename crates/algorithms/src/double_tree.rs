//! Double binary tree (Sanders, Speck and Träff): each of two trees carries half of the vector, cut
//! into pieces. A rank with children in one tree is a leaf of the other tree.
//!
//! A single pipelined binary tree uses half of the ranks' bandwidth, because leaves send nothing
//! and inner ranks send every piece twice. With two trees every rank sends as many pieces as it
//! receives. The header of `double_tree/trees.rs` defines the trees and proves that no rank sends
//! twice or receives twice in a step.
//!
//! **broadcast**: a vector of M bytes in K pieces takes at most K + 2 floor(log2(N - 1)) steps of M
//! / K bytes. Every rank receives M bytes and sends at most M bytes (for odd K, one more piece).
//!
//! **all_reduce**: the edges in reverse order combine the vector at rank 0. Each piece of the
//! result travels down as soon as the piece is complete. Both pipelines run concurrently, so in a
//! step a rank may send one piece up and another piece down. The all_reduce takes at most K + 4
//! floor(log2(N - 1)) + 2 steps. Every rank sends and receives at most 2 M bytes, the minimum of
//! any all_reduce for large N.
//!
//! In k **channels**, as in NCCL, the vector is cut into k parts, each with two trees of its own.
//! The trees of channel c connect the ranks with index c of all groups (such as servers). From such
//! a rank, a chain visits the other ranks of its group. So data leave a group at k ranks, through k
//! network interfaces.
//!
//! **nvls_tree**, as NCCL's NVLS Tree (`connectNvls` and `ncclGetDtree` of `src/graph`): every rank
//! of a group is a channel. In place of the chains, the switch of the group adds the pieces of its
//! ranks on the way up and multicasts the sums on the way down, one step each. Between B groups of
//! g ranks, the trees carry 1/g of the vector per channel. The all_reduce takes at most K + 4
//! floor(log2(B - 1)) + 4 steps: those of the trees on B ranks, one step before and one after. As
//! by `nvls`, the cable of a rank to its switch carries M (1 + 1/g) bytes per direction.

mod trees;

use super::{
    Algorithm, AlgorithmError, CHANNELS, CostFormulas, Request, SEGMENTS, all_pairs, channels,
    group_size, make_room_for, segments, size_of_several_groups,
};
use opticoll_base::spec::OptionRecord;
use opticoll_fabric::network::InNetwork;
use opticoll_plan::collective::CollectiveKind;
use opticoll_plan::schedule::{Action, Claims, Schedule, Transfer};
use trees::{DoubleTreeEdge, Within};

const CITATION: &str = "Sanders, Speck and Träff, Two-tree Algorithms for Full Bandwidth \
    Broadcast, Reduction and Scan, Parallel Computing 2009";

/// Algorithms of this module.
pub const RECORDS: &[Algorithm] = &[
    Algorithm {
        summary: "Reduce each half of the vector up its own tree, then broadcast it down the same \
            tree",
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
        summary: "Two trees between the ranks of the same number in all groups, as \
            double_binary_tree; within groups, switches add and multicast",
        citation: "NVIDIA, NCCL 2.18 (NVLS Tree); Sanders, Speck and Träff, Parallel Computing \
            2009",
        // As `nvls_rails`. At 1 GiB on 16 servers of 8 H100, 256 pieces would gain 6 %.
        options: &[OptionRecord {
            tries: &["2", "4", "16", "32", "64"],
            ..SEGMENTS[0]
        }],
        families: &["gpu_servers", "fat_tree"],
        in_network: InNetwork::Both,
        transfers: all_pairs,
        ..Algorithm::new(
            "nvls_tree",
            "NVLS tree",
            CollectiveKind::AllReduce,
            nvls_tree,
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

/// The pipelines of a schedule: two trees for each channel. A channel is a separate part of the
/// vector (option `channels`). Within a channel, piece 2 i + t is the i-th piece of tree t.
struct Pipelines {
    /// Edges of all channels: (index of the channel, edge). The ranks of an edge are counted from
    /// the collective's root.
    edges: Vec<(u32, DoubleTreeEdge)>,
    ranks: u32,
    root: u32,
    /// Number of pieces per channel.
    pieces: u32,
    channels: u32,
}

impl Pipelines {
    /// Returns the pipelines of `channels` channels through groups of `size` ranks.
    fn new(
        request: &Request<'_>,
        channels: u32,
        (size, within): (u32, Within),
    ) -> Result<Pipelines, AlgorithmError> {
        let ranks = request.ranks();
        let edges = (0..channels).flat_map(|channel| {
            let edges = trees::through_groups(ranks, size, channel, within);
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

    /// Returns the number of pieces per channel that travel along the tree with index `tree` (0 or
    /// 1).
    fn tree_pieces(&self, tree: usize) -> u32 {
        (self.pieces + 1 - tree as u32) / 2
    }

    fn used_edges(&self) -> impl Iterator<Item = &DoubleTreeEdge> {
        let edges = self.edges.iter().map(|(_, edge)| edge);
        edges.filter(|edge| self.tree_pieces(edge.tree) > 0)
    }

    /// Returns the maximum, over all edges, of the step in which the edge is used for the first
    /// time.
    fn max_first_step(&self) -> u32 {
        self.used_edges().map(|edge| edge.step).max().unwrap_or(0)
    }

    /// Returns the number of steps until the last piece has arrived at the last rank.
    fn end(&self) -> u32 {
        let last = |edge: &DoubleTreeEdge| edge.step + 2 * (self.tree_pieces(edge.tree) - 1) + 1;
        self.used_edges().map(last).max().unwrap_or(0)
    }

    /// Returns the maximum number of pieces that a rank sends. Every rank sends pieces to its
    /// children. If `goes_up`, every rank also sends pieces to its parents.
    fn max_sent(&self, goes_up: bool) -> u64 {
        let mut sent = vec![0u64; self.ranks as usize];
        for edge in self.used_edges() {
            let pieces = u64::from(self.tree_pieces(edge.tree));
            sent[edge.parent as usize] += pieces;
            sent[edge.child as usize] += if goes_up { pieces } else { 0 };
        }
        sent.into_iter().max().unwrap_or(0)
    }

    /// Returns the transfers from parents to children as (step, transfer), edge by edge.
    fn down(&self) -> impl Iterator<Item = (u32, Transfer)> + '_ {
        self.edges.iter().flat_map(move |(channel, edge)| {
            let rank = |from_root| (self.root + from_root) % self.ranks;
            let (parent, child) = (rank(edge.parent), rank(edge.child));
            let action = match edge.is_of_switch {
                true => Action::Multicast,
                false => Action::Copy,
            };
            (0..self.tree_pieces(edge.tree)).map(move |index| {
                let piece = channel * self.pieces + 2 * index + edge.tree as u32;
                let copy = Transfer::copy(piece, parent, child);
                (edge.step + 2 * index, Transfer { action, ..copy })
            })
        })
    }

    /// Returns the transfers from children to parents as (step, transfer): the transfers of `down`,
    /// reversed.
    fn up(&self) -> impl Iterator<Item = (u32, Transfer)> + '_ {
        let max_first_step = self.max_first_step();
        self.down().map(move |(step, copy)| {
            // In both directions, a tree's i-th piece starts two steps after the tree's previous
            // piece.
            let delay = 2 * (copy.chunk % self.pieces / 2);
            let transfer = Transfer {
                source: copy.destination,
                destination: copy.source,
                action: match copy.action.is_in_network() {
                    true => Action::Aggregate,
                    false => Action::Reduce,
                },
                ..copy
            };
            (max_first_step - (step - delay) + delay, transfer)
        })
    }

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

    /// Fails if the schedule would be too large. `times` is the number of transfers of each piece
    /// over each edge.
    fn check_size(&self, request: &Request<'_>, times: u64) -> Result<(), AlgorithmError> {
        let pieces = u64::from(self.pieces) * u64::from(self.channels);
        let transfers = times * u64::from(self.ranks - 1) * pieces;
        make_room_for(&mut Schedule::new(request.collective), transfers)
    }
}

fn broadcast(request: &Request<'_>) -> Result<Schedule, AlgorithmError> {
    let pipelines = Pipelines::new(request, 1, (1, Within::Chain))?;
    pipelines.check_size(request, 1)?;
    let claims = Claims {
        schedule_steps: Some(pipelines.end()),
        chunks_sent_per_rank: Some(pipelines.max_sent(false)),
        ..Claims::default()
    };
    pipelines.schedule(request, pipelines.down().collect(), claims)
}

fn all_reduce(request: &Request<'_>) -> Result<Schedule, AlgorithmError> {
    let channels = channels(request)?;
    let size = match channels {
        1 => 1,
        _ => group_size(request.fabric),
    };
    up_and_down(
        request,
        &Pipelines::new(request, channels, (size, Within::Chain))?,
    )
}

fn nvls_tree(request: &Request<'_>) -> Result<Schedule, AlgorithmError> {
    let size = size_of_several_groups(request)?;
    up_and_down(
        request,
        &Pipelines::new(request, size, (size, Within::Switch))?,
    )
}

/// Returns the all_reduce that combines the vector up the pipelines and sends the result down.
fn up_and_down(request: &Request<'_>, pipelines: &Pipelines) -> Result<Schedule, AlgorithmError> {
    pipelines.check_size(request, 2)?;
    // At the latest after this step, the first piece of each tree is complete at the root.
    let turn = match pipelines.ranks {
        1 => 0,
        _ => pipelines.max_first_step() + 1,
    };
    let mut timed: Vec<(u32, Transfer)> = pipelines.up().collect();
    timed.extend(pipelines.down().map(|(step, copy)| (turn + step, copy)));
    let claims = Claims {
        schedule_steps: Some(turn + pipelines.end()),
        chunks_sent_per_rank: Some(pipelines.max_sent(true)),
        ..Claims::default()
    };
    pipelines.schedule(request, timed, claims)
}
