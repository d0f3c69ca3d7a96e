//! What scatters and broadcasts down trees of leaders share.
//!
//! In each phase some ranks, each with data to hand on, hand it on along binomial trees, side by side:
//! member v of a list gets from v without its lowest set bit what is for members v up to v plus that
//! bit; senders serve the farthest first. In a scatter that is blocks, in a broadcast the vector.

use opticoll_fabric::fabric::Groups;
use opticoll_plan::collective::{Collective, CollectiveKind};
use opticoll_plan::schedule::{Claims, Schedule, Transfer};

/// A rank that receives in a phase, with the blocks for itself and those below it.
pub(super) struct Member {
    pub(super) leader: u32,
    pub(super) blocks: Vec<u32>,
}

/// The steps of a binomial tree of so many members.
pub(super) fn depth(members: u32) -> u32 {
    members.next_power_of_two().ilog2()
}

/// A scatter or broadcast phase by phase.
pub(super) struct TreePhases {
    kind: CollectiveKind,
    steps: Vec<Vec<Transfer>>,
    first: usize,
}

impl TreePhases {
    pub(super) fn new(kind: CollectiveKind) -> TreePhases {
        TreePhases {
            kind,
            steps: Vec::new(),
            first: 0,
        }
    }

    /// Opens the next phase: its trees begin when all steps so far are over.
    pub(super) fn next(&mut self) {
        self.first = self.steps.len();
    }

    /// Adds a tree to the open phase; its root is the first member.
    pub(super) fn tree(&mut self, members: &[Member]) {
        let depth = depth(members.len() as u32) as usize;
        for level in 0..depth {
            let stride = 1 << (depth - 1 - level);
            for sender in (0..members.len()).step_by(2 * stride) {
                let first = sender + stride;
                if first < members.len() {
                    let below = &members[first..(first + stride).min(members.len())];
                    self.hand_on(level, members[sender].leader, below);
                }
            }
        }
    }

    /// Adds a tree in which the first member sends to one after the other.
    pub(super) fn star(&mut self, members: &[Member]) {
        for place in 1..members.len() {
            self.hand_on(place - 1, members[0].leader, &members[place..=place]);
        }
    }

    /// In a step of the open phase, a rank sends the first of some members what is for them all.
    fn hand_on(&mut self, level: usize, source: u32, below: &[Member]) {
        let needed = self.first + level + 1;
        if self.steps.len() < needed {
            self.steps.resize(needed, Vec::new());
        }
        let step = &mut self.steps[needed - 1];
        let destination = below[0].leader;
        if self.kind != CollectiveKind::Scatter {
            step.push(Transfer::copy(0, source, destination));
            return;
        }
        // Blocks go in ascending runs.
        let first = step.len();
        for &block in below.iter().flat_map(|member| &member.blocks) {
            match step[first..].last_mut() {
                Some(run) if run.chunk + run.count == block => run.count += 1,
                _ => step.push(Transfer::copy(block, source, destination)),
            }
        }
    }

    /// The schedule of all phases.
    pub(super) fn schedule(self, collective: Collective, claims: Claims) -> Schedule {
        let mut schedule = Schedule::new(collective);
        for step in self.steps {
            schedule.begin_step();
            for transfer in step {
                schedule.push(transfer);
            }
        }
        schedule.claims = claims;
        schedule
    }
}

/// Who is where on a dragonfly.
pub(super) struct DragonflyShape {
    pub(super) groups: u32,
    pub(super) routers: u32,
    pub(super) terminals: u32,
}

impl DragonflyShape {
    pub(super) fn new(machine: &dyn Groups) -> DragonflyShape {
        DragonflyShape {
            groups: machine.groups(),
            routers: machine.routers_per_group(),
            terminals: machine.terminals_per_router(),
        }
    }

    pub(super) fn ranks(&self) -> u32 {
        self.groups * self.routers * self.terminals
    }

    pub(super) fn group_of(&self, rank: u32) -> u32 {
        rank / self.terminals / self.routers
    }

    /// The first rank of a router.
    pub(super) fn first_of(&self, group: u32, router: u32) -> u32 {
        (group * self.routers + router) * self.terminals
    }

    /// The ranks of a group.
    pub(super) fn group(&self, group: u32) -> Vec<u32> {
        let first = self.first_of(group, 0);
        (first..first + self.routers * self.terminals).collect()
    }

    /// The other groups, counted on from one.
    pub(super) fn groups_after(&self, group: u32) -> impl Iterator<Item = u32> + '_ {
        (1..self.groups).map(move |place| (group + place) % self.groups)
    }

    /// One leader per router of a group, each with its router's ranks, from the given leader's on.
    pub(super) fn routers_from(&self, leader: u32) -> Vec<Member> {
        let (group, own) = (
            self.group_of(leader),
            leader / self.terminals % self.routers,
        );
        (0..self.routers)
            .map(|place| {
                let first = self.first_of(group, (own + place) % self.routers);
                Member {
                    leader: if place == 0 { leader } else { first },
                    blocks: (first..first + self.terminals).collect(),
                }
            })
            .collect()
    }

    /// The ranks of the leader's router, from the leader on.
    pub(super) fn terminals_from(&self, leader: u32) -> Vec<Member> {
        let first = leader / self.terminals * self.terminals;
        (0..self.terminals)
            .map(|place| {
                let rank = first + (leader - first + place) % self.terminals;
                Member {
                    leader: rank,
                    blocks: vec![rank],
                }
            })
            .collect()
    }
}
