//! Forests of all roots on a grid whose translations move links onto links: the trees of rank 0, and all their
//! translations.
//!
//! The links that leave rank 0 stand for *classes*: their translations. If the trees of rank 0 have e(c) edges of a class
//! c, then every link of the class lies in e(c) of the trees of all N roots. So trees need not be packed: with k
//! of them for each root, and r(c) the rate of a class, the links are as busy as the optimum of the cut around a rank allows
//! where
//!
//! ```text
//! e(c) <= k (N - 1) r(c) / sum of all rates        for every class
//! ```
//!
//! rounded up. All trees are of shortest ways: a rank at distance d from rank 0 takes a link from some rank at distance
//! d - 1. Which, is a flow from ranks, k units each, to the classes that lead to them on shortest ways. If possible, each
//! distance has its share of every class, so that no class runs out of pieces before the others.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::timetable::{Timed, pieces_in_step};
use opticoll_base::interrupt;
use opticoll_base::units::Time;
use opticoll_bounds::throughput::flow::Flow;
use opticoll_fabric::network::translations::Translations;
use opticoll_plan::collective::Collective;
use opticoll_plan::schedule::{Schedule, Transfer};

/// The trees of rank 0.
pub(super) struct Translated {
    grid: Translations,
    /// By tree and rank: the class of the edge to it.
    trees: Vec<Vec<u32>>,
    /// By class: where its link leads from rank 0, and its rate.
    classes: Vec<(u32, u64)>,
    /// Edges from rank 0 to each rank.
    distances: Vec<u32>,
}

/// A piece of rank 0's block that goes over a link of a class.
struct Sent {
    chunk: u32,
    tree: u32,
    class: u32,
    from: u32,
    to: u32,
}

/// From which side ranks are reached: what is known before.
struct Choice<'a> {
    grid: &'a Translations,
    classes: &'a [(u32, u64)],
    distances: &'a [u32],
    count: u32,
}

impl Choice<'_> {
    fn is_shortest(&self, rank: u32, class: u32) -> bool {
        let before = self.grid.moved(rank, self.classes[class as usize].0, true);
        self.distances[before as usize] + 1 == self.distances[rank as usize]
    }

    /// The vertex of a class at a distance: after the ranks.
    fn vertex(&self, distance: u32, class: u32) -> u32 {
        self.distances.len() as u32 + (distance - 1) * self.classes.len() as u32 + class
    }

    /// A flow from each rank to classes at its distance, from these to the classes, and to a sink. `is_even`: each distance
    /// has its share of every class. `is_mixed`: trees take different classes to a rank, where there are several.
    fn find(&self, is_even: bool, is_mixed: bool) -> Option<Flow> {
        let ranks = self.distances.len() as u32;
        let farthest = self.distances.iter().copied().max()?;
        let rate: u128 = self.classes.iter().map(|class| u128::from(class.1)).sum();
        let last = self.vertex(farthest + 1, 0);
        let sink = last + self.classes.len() as u32;
        let all = u128::from(self.count) * u128::from(ranks - 1);
        let mut links = Vec::new();
        let mut at = vec![0u128; farthest as usize + 1];
        for rank in 1..ranks {
            at[self.distances[rank as usize] as usize] += u128::from(self.count);
            let classes = 0..self.classes.len() as u32;
            let shortest: Vec<u32> = classes
                .filter(|class| self.is_shortest(rank, *class))
                .collect();
            let most = match is_mixed {
                true => self.count.div_ceil(shortest.len() as u32),
                false => self.count,
            };
            for class in shortest {
                let vertex = self.vertex(self.distances[rank as usize], class);
                links.push((rank, vertex, most.into()));
            }
        }
        for (class, &(_, own)) in (0u32..).zip(self.classes) {
            let share = |all: u128| (all * u128::from(own)).div_ceil(rate);
            links.push((last + class, sink, share(all)));
            for distance in 1..=farthest {
                let at = at[distance as usize];
                let most = if is_even { share(at) } else { at };
                links.push((self.vertex(distance, class), last + class, most));
            }
        }
        let mut flow = Flow::new(sink as usize + 1, &links);
        (1..ranks).for_each(|rank| flow.set_supply(rank, self.count.into()));
        (flow.send(sink, all) == all).then_some(flow)
    }
}

impl Translated {
    /// So many trees of every root, over links with rates; `None` where shortest ways do not suffice for the optimum.
    pub(super) fn new(
        grid: &Translations,
        rates: &[(u32, u32, u64)],
        count: u32,
    ) -> Option<Translated> {
        let ranks = grid.ranks();
        let mut classes: Vec<(u32, u64)> = Vec::new();
        for &(_, to, rate) in rates.iter().filter(|link| link.0 == 0 && link.1 != 0) {
            match classes.iter_mut().find(|class| class.0 == to) {
                Some(class) => class.1 += rate,
                None => classes.push((to, rate)),
            }
        }
        let mut distances = vec![u32::MAX; ranks as usize];
        distances[0] = 0;
        let mut order = vec![0];
        let mut place = 0;
        while let Some(&rank) = order.get(place) {
            place += 1;
            for &(offset, _) in &classes {
                let to = grid.moved(rank, offset, false);
                if distances[to as usize] == u32::MAX {
                    distances[to as usize] = distances[rank as usize] + 1;
                    order.push(to);
                }
            }
        }
        if order.len() < ranks as usize {
            return None;
        }
        let choice = Choice {
            grid,
            classes: &classes,
            distances: &distances,
            count,
        };
        let found = [(true, true), (true, false), (false, false)].into_iter();
        let flow = found
            .map(|(even, mixed)| choice.find(even, mixed))
            .find_map(|flow| flow)?;
        let mut trees = vec![vec![0; ranks as usize]; count as usize];
        for rank in 1..ranks {
            // Trees begin with another class at each rank, so that none has all edges of one.
            let mut number = rank % count;
            for class in 0..classes.len() as u32 {
                if !choice.is_shortest(rank, class) {
                    continue;
                }
                let vertex = choice.vertex(distances[rank as usize], class);
                for _ in 0..flow.room(vertex, rank) {
                    trees[number as usize][rank as usize] = class;
                    number = (number + 1) % count;
                }
            }
        }
        Some(Translated {
            grid: grid.clone(),
            trees,
            classes,
            distances,
        })
    }

    /// The pieces of rank 0's block that are sent in each step: each link carries as many pieces as
    /// its rate is times that of the slowest, those with the longest way before them first.
    fn steps(&self, chunks: u32) -> Vec<Vec<Sent>> {
        let ranks = self.distances.len() as u32;
        let count = self.trees.len() as u32;
        let before = |rank: u32, class: u32| {
            let offset = self.classes[class as usize].0;
            self.grid.moved(rank, offset, true)
        };
        let mut order: Vec<u32> = (1..ranks).collect();
        order.sort_by_key(|rank| Reverse(self.distances[*rank as usize]));
        // By tree and rank: the ranks after it, and the edges of the longest way below it.
        let mut next = vec![vec![Vec::new(); ranks as usize]; count as usize];
        let mut below = vec![vec![0u32; ranks as usize]; count as usize];
        for (tree, classes) in self.trees.iter().enumerate() {
            for &rank in &order {
                let from = before(rank, classes[rank as usize]) as usize;
                next[tree][from].push(rank);
                below[tree][from] = below[tree][from].max(below[tree][rank as usize] + 1);
            }
        }
        // By class: pieces that could go.
        type Ready = BinaryHeap<(u32, Reverse<(u32, u32, u32)>)>;
        let mut ready: Vec<Ready> = vec![Ready::new(); self.classes.len()];
        let edges = |class: u32| {
            let all = self.trees.iter().flat_map(|tree| &tree[1..]);
            all.filter(|own| **own == class).count() as u128
        };
        let classes = (0u32..).zip(&self.classes);
        let loads: Vec<(u128, u128)> = classes
            .map(|(class, &(_, rate))| (edges(class), rate.into()))
            .collect();
        let in_step = pieces_in_step(&loads);
        let offer = |ready: &mut Vec<Ready>, tree: u32, chunk: u32, from: u32| {
            for &to in &next[tree as usize][from as usize] {
                let class = self.trees[tree as usize][to as usize];
                let below = below[tree as usize][to as usize];
                ready[class as usize].push((below, Reverse((chunk, tree, to))));
            }
        };
        for chunk in 0..chunks {
            (0..count).for_each(|tree| offer(&mut ready, tree, chunk, 0));
        }
        let mut steps = Vec::new();
        while ready.iter().any(|ready| !ready.is_empty()) {
            interrupt::check();
            let mut sent = Vec::new();
            for (class, ready) in (0u32..).zip(&mut ready) {
                for _ in 0..in_step[class as usize] {
                    let Some((_, Reverse((chunk, tree, to)))) = ready.pop() else {
                        break;
                    };
                    sent.push(Sent {
                        chunk,
                        tree,
                        class,
                        from: before(to, class),
                        to,
                    });
                }
            }
            for own in &sent {
                offer(&mut ready, own.tree, own.chunk, own.to);
            }
            steps.push(sent);
        }
        steps
    }

    /// The steps of all roots.
    pub(super) fn schedule(&self, collective: Collective, chunks: u32) -> Timed {
        let ranks = self.distances.len() as u32;
        let count = self.trees.len() as u32;
        let mut schedule = Schedule::new(collective);
        for sent in self.steps(chunks) {
            interrupt::check();
            schedule.begin_step();
            schedule.reserve(sent.len() * ranks as usize);
            for root in 0..ranks {
                for own in &sent {
                    schedule.push(Transfer::copy(
                        (root * count + own.tree) * chunks + own.chunk,
                        self.grid.moved(own.from, root, false),
                        self.grid.moved(own.to, root, false),
                    ));
                }
            }
        }
        Timed {
            schedule,
            channels: Vec::new(),
        }
    }

    /// The time of the steps, with blocks of `bits`, if each lasts `latency` and as long as its
    /// busiest link sends.
    pub(super) fn expected(&self, chunks: u32, bits: u128, latency: Time) -> Time {
        let pieces = self.trees.len() as u128 * u128::from(chunks);
        let of_step = |sent: &Vec<Sent>| {
            let mut over = vec![0u128; self.classes.len()];
            sent.iter().for_each(|own| over[own.class as usize] += 1);
            let busiest = over.into_iter().zip(&self.classes).map(|(over, class)| {
                over * bits * 1_000_000_000_000 / (pieces * u128::from(class.1))
            });
            busiest.max().unwrap_or(0) + u128::from(latency.ps())
        };
        let all: u128 = self.steps(chunks).iter().map(of_step).sum();
        Time::from_ps(u64::try_from(all).unwrap_or(u64::MAX))
    }
}
