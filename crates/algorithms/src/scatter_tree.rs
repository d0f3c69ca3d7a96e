//! Common code of scatters and broadcasts along trees of leaders.
//!
//! In each phase some ranks forward data along binomial trees that run concurrently. Member v of a
//! list of members receives the data of the members v, ..., v + D - 1 from member v - D. Here D is
//! the largest power of two that divides v. Senders send to their most distant receiver first. The
//! data are blocks in a scatter and the vector in a broadcast.

use opticoll_fabric::fabric::Groups;
use opticoll_plan::collective::{Collective, CollectiveKind};
use opticoll_plan::schedule::{Claims, Schedule, Transfer};

/// Member of a tree. `leader` is the rank that receives for a group, for a router or only for
/// itself. `blocks` are the blocks that the leader receives for itself and for the ranks to which
/// it forwards.
pub(super) struct Member {
    pub(super) leader: u32,
    pub(super) blocks: Vec<u32>,
}

/// Returns the number of steps of a binomial tree with `members` members.
pub(super) fn depth(members: u32) -> u32 {
    members.next_power_of_two().ilog2()
}

/// The transfers of a scatter or broadcast, phase by phase.
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

    /// Starts the next phase, whose trees start after all steps of earlier phases.
    pub(super) fn next(&mut self) {
        self.first = self.steps.len();
    }

    /// Adds a binomial tree to the current phase. The first member is the root of the tree.
    pub(super) fn tree(&mut self, members: &[Member]) {
        let depth = depth(members.len() as u32) as usize;
        for level in 0..depth {
            let stride = 1 << (depth - 1 - level);
            for sender in (0..members.len()).step_by(2 * stride) {
                let first = sender + stride;
                if first < members.len() {
                    let receivers = &members[first..(first + stride).min(members.len())];
                    self.forward(level, members[sender].leader, receivers);
                }
            }
        }
    }

    /// Adds a star to the current phase: the first member sends to the others one after another.
    pub(super) fn star(&mut self, members: &[Member]) {
        for place in 1..members.len() {
            self.forward(place - 1, members[0].leader, &members[place..=place]);
        }
    }

    /// Adds a transfer to step `level` of the current phase: `source` sends the data of all
    /// `receivers` to the first of the receivers.
    fn forward(&mut self, level: usize, source: u32, receivers: &[Member]) {
        let needed = self.first + level + 1;
        if self.steps.len() < needed {
            self.steps.resize(needed, Vec::new());
        }
        let step = &mut self.steps[needed - 1];
        let destination = receivers[0].leader;
        if self.kind != CollectiveKind::Scatter {
            step.push(Transfer::copy(0, source, destination));
            return;
        }
        let first = step.len();
        for &block in receivers.iter().flat_map(|member| &member.blocks) {
            match step[first..].last_mut() {
                Some(run) if run.chunk + run.count == block => run.count += 1,
                _ => step.push(Transfer::copy(block, source, destination)),
            }
        }
    }

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

/// Number of groups of a dragonfly, number of routers per group, and number of ranks per router.
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

    /// Returns the first rank of the router with index `router` in the group `group`.
    pub(super) fn first_of(&self, group: u32, router: u32) -> u32 {
        (group * self.routers + router) * self.terminals
    }

    pub(super) fn group(&self, group: u32) -> Vec<u32> {
        let first = self.first_of(group, 0);
        (first..first + self.routers * self.terminals).collect()
    }

    /// Returns the other groups in cyclic order, starting with the group after `group`.
    pub(super) fn groups_after(&self, group: u32) -> impl Iterator<Item = u32> + '_ {
        (1..self.groups).map(move |place| (group + place) % self.groups)
    }

    /// Returns a leader for each router of the group of `leader`, with the ranks of the router.
    /// `leader` comes first; the other leaders are the first ranks of their routers.
    pub(super) fn routers_from(&self, leader: u32) -> Vec<Member> {
        let (group, leader_router) = (
            self.group_of(leader),
            leader / self.terminals % self.routers,
        );
        (0..self.routers)
            .map(|place| {
                let first = self.first_of(group, (leader_router + place) % self.routers);
                Member {
                    leader: if place == 0 { leader } else { first },
                    blocks: (first..first + self.terminals).collect(),
                }
            })
            .collect()
    }

    /// Returns the ranks of the router of `leader`, in cyclic order from `leader`.
    pub(super) fn ranks_from(&self, leader: u32) -> Vec<Member> {
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
