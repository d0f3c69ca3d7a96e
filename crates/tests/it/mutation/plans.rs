//! Valid plans to mutate: some made by hand, and one by each algorithm.

use opticoll::algorithms;
use opticoll::collective::{Collective, CollectiveKind};
use opticoll::fabric::{Fabric, Light};
use opticoll::family::wdm_ring::{CONVERTED, Direction, WdmLight, WdmRing};
use opticoll::placement::wdm_ring::{placement, route};
use opticoll::plan::{Lightpath, NamedRoutes, Plan, Repetition};
use opticoll::schedule::{Action, Claims, Schedule, Transfer};

use super::naive::light_fits;

/// A plan taken apart: lightpaths with their step.
#[derive(Clone)]
pub(super) struct Draft {
    pub(super) fabric: Fabric,
    pub(super) collective: Collective,
    pub(super) claims: Claims,
    pub(super) lightpaths: Vec<(usize, Lightpath)>,
    pub(super) step_slots: Vec<std::ops::Range<u32>>,
}

impl Draft {
    pub(super) fn of(plan: &Plan) -> Draft {
        let steps = (0..plan.schedule.steps())
            .flat_map(|step| plan.schedule.step(step).map(move |index| (step, index)));
        Draft {
            fabric: plan.fabric.clone(),
            collective: plan.schedule.collective,
            claims: plan.schedule.claims.clone(),
            lightpaths: steps
                .map(|(step, index)| (step, plan.lightpath(index)))
                .collect(),
            step_slots: plan.step_slots.clone(),
        }
    }

    pub(super) fn plan(&self) -> Plan {
        let mut schedule = Schedule::new(self.collective);
        schedule.claims = self.claims.clone();
        let mut lightpaths = Vec::new();
        for step in 0..self.step_slots.len() {
            schedule.begin_step();
            for (_, lightpath) in self.lightpaths.iter().filter(|(own, _)| *own == step) {
                schedule.push(lightpath.transfer);
                lightpaths.push(*lightpath);
            }
        }
        Plan {
            fabric: self.fabric.clone(),
            schedule,
            algorithm: "mutant".into(),
            size: None,
            light: lightpaths.iter().map(|lightpath| lightpath.light).collect(),
            slot: lightpaths.iter().map(|lightpath| lightpath.slot).collect(),
            step_slots: self.step_slots.clone(),
            relays: Vec::new(),
            routes: NamedRoutes::default(),
            repetition: Repetition::NONE,
        }
    }

    /// A lightpath moved to a new slot at the end of the last step.
    pub(super) fn at_the_end(&mut self, lightpath: Lightpath) -> (usize, Lightpath) {
        let step = self.step_slots.len() - 1;
        let end = &mut self.step_slots[step].end;
        *end += 1;
        (
            step,
            Lightpath {
                slot: *end - 1,
                ..lightpath
            },
        )
    }

    pub(super) fn ring(&self) -> &WdmRing {
        self.fabric.downcast::<WdmRing>().unwrap()
    }
}

/// Transfers of one chunk, step by step: chunk, source, destination, action.
type Steps = Vec<Vec<(u32, u32, u32, Action)>>;

/// Gives each transfer the first slot and channel of its step in which its light fits.
fn by_hand(fabric: &str, collective: Collective, steps: &Steps) -> Plan {
    let mut draft = Draft {
        fabric: Fabric::parse(fabric).unwrap(),
        collective,
        claims: Claims::default(),
        lightpaths: Vec::new(),
        step_slots: Vec::new(),
    };
    let ring = draft.ring().clone();
    let mut first_slot = 0;
    for (step, transfers) in steps.iter().enumerate() {
        draft
            .step_slots
            .push(first_slot..first_slot + transfers.len() as u32);
        for &(chunk, source, destination, action) in transfers {
            let clockwise = (destination + ring.ranks - source) % ring.ranks <= ring.ranks / 2;
            let direction = if clockwise {
                Direction::Clockwise
            } else {
                Direction::CounterClockwise
            };
            let wavelengths = if ring.converters { 1 } else { ring.wavelengths };
            let places = (first_slot..).flat_map(|slot| {
                (0..ring.fibres * wavelengths).map(move |channel| (slot, channel))
            });
            let transfer = Transfer {
                chunk,
                count: 1,
                source,
                destination,
                action,
            };
            for (slot, channel) in places {
                let wavelength = if ring.converters {
                    CONVERTED
                } else {
                    (channel % wavelengths) as u16
                };
                let fibre = (channel / wavelengths) as u8;
                let light = Light::from(WdmLight {
                    direction,
                    fibre,
                    wavelength,
                });
                draft.lightpaths.push((
                    step,
                    Lightpath {
                        slot,
                        light,
                        transfer,
                    },
                ));
                if light_fits(&draft.plan()) {
                    break;
                }
                draft.lightpaths.pop();
            }
        }
        let last = draft
            .lightpaths
            .iter()
            .map(|(_, lightpath)| lightpath.slot + 1)
            .max();
        first_slot = last.unwrap_or(0);
        draft.step_slots[step].end = first_slot;
    }
    draft.plan()
}

fn ring_all_gather(ranks: u32) -> Steps {
    let step = |time| {
        (0..ranks)
            .map(move |rank| {
                (
                    (rank + ranks - time) % ranks,
                    rank,
                    (rank + 1) % ranks,
                    Action::Copy,
                )
            })
            .collect()
    };
    (0..ranks - 1).map(step).collect()
}

fn ring_all_reduce(ranks: u32) -> Steps {
    let step = |time| {
        let action = if time < ranks - 1 {
            Action::Reduce
        } else {
            Action::Copy
        };
        (0..ranks)
            .map(move |rank| {
                (
                    (rank + 2 * ranks - time) % ranks,
                    rank,
                    (rank + 1) % ranks,
                    action,
                )
            })
            .collect()
    };
    (0..2 * (ranks - 1)).map(step).collect()
}

/// Every rank sends every other its block of `chunk(source, destination)`, all in one step.
fn direct(ranks: u32, action: Action, chunk: impl Fn(u32, u32) -> u32) -> Steps {
    let pairs = (0..ranks).flat_map(|source| (0..ranks).map(move |other| (source, other)));
    vec![
        pairs
            .filter(|(source, other)| source != other)
            .map(|(source, other)| (chunk(source, other), source, other, action))
            .collect(),
    ]
}

/// A star: all reduce into the root, which copies the result to all.
fn star_all_reduce(ranks: u32) -> Steps {
    vec![
        (1..ranks)
            .map(|rank| (0, rank, 0, Action::Reduce))
            .collect(),
        (1..ranks).map(|rank| (0, 0, rank, Action::Copy)).collect(),
    ]
}

/// The pieces of a vector follow one another down the line 0, 1, 2, ...
fn pipeline(ranks: u32, pieces: u32) -> Steps {
    let step = |time: u32| {
        (0..ranks - 1)
            .filter(|&rank| rank <= time && time - rank < pieces)
            .map(|rank| (time - rank, rank, rank + 1, Action::Copy))
            .collect()
    };
    (0..ranks - 1 + pieces - 1).map(step).collect()
}

pub(super) fn plans_by_hand() -> Vec<Plan> {
    let make = |kind, ranks, pieces| {
        Collective::new(kind, ranks)
            .and_then(|made| made.with_pieces(pieces))
            .unwrap()
    };
    let fabric = |ranks, rest: &str| format!("wdm_ring:ranks={ranks},{rest}");
    use CollectiveKind::{AllGather, AllReduce, AllToAll, Broadcast, ReduceScatter};
    let gather = |ranks| make(AllGather, ranks, 1);
    let mut plans = vec![
        by_hand(&fabric(5, "wavelengths=1"), gather(5), &ring_all_gather(5)),
        by_hand(
            &fabric(4, "wavelengths=2,fibres=2"),
            gather(4),
            &ring_all_gather(4),
        ),
        by_hand(
            &fabric(4, "wavelengths=1"),
            make(AllReduce, 4, 4),
            &ring_all_reduce(4),
        ),
        by_hand(
            &fabric(3, "wavelengths=3"),
            make(AllReduce, 3, 3),
            &ring_all_reduce(3),
        ),
        by_hand(
            &fabric(6, "wavelengths=2"),
            make(AllReduce, 6, 1),
            &star_all_reduce(6),
        ),
        by_hand(
            &fabric(6, "wavelengths=2,converters=full"),
            make(AllReduce, 6, 1),
            &star_all_reduce(6),
        ),
        by_hand(
            &fabric(4, "wavelengths=1"),
            make(Broadcast, 4, 3),
            &pipeline(4, 3),
        ),
        by_hand(
            &fabric(4, "wavelengths=2,ports=1"),
            make(Broadcast, 4, 2),
            &pipeline(4, 2),
        ),
    ];
    for options in [
        "wavelengths=2",
        "wavelengths=3,fibres=2",
        "wavelengths=4,ports=2",
    ] {
        let one_stage = direct(5, Action::Copy, |source, _| source);
        plans.push(by_hand(&fabric(5, options), gather(5), &one_stage));
    }
    let swap = direct(4, Action::Copy, |source, destination| {
        source * 4 + destination
    });
    plans.push(by_hand(
        &fabric(4, "wavelengths=2"),
        make(AllToAll, 4, 1),
        &swap,
    ));
    let scatter = direct(5, Action::Reduce, |_, destination| destination);
    plans.push(by_hand(
        &fabric(5, "wavelengths=2"),
        make(ReduceScatter, 5, 1),
        &scatter,
    ));
    for (steps, slots) in plans[0].step_slots.iter().enumerate() {
        assert_eq!(slots.start as usize, steps, "a ring takes one slot a step");
    }
    plans[0].schedule.claims.neighbours_only = true;
    plans[1].schedule.claims.schedule_steps = Some(3);
    plans[2].schedule.claims.chunks_sent_per_rank = Some(6);
    plans
}

/// A small plan by every algorithm there is, on fabrics that suit few of them well, and some on a
/// larger ring.
pub(super) fn plans_by_algorithm() -> Vec<Plan> {
    let mut plans = Vec::new();
    for (ranks, options) in [
        (6, "wavelengths=2"),
        (4, "wavelengths=1,fibres=2,ports=2"),
        (150, "wavelengths=5"),
    ] {
        let fabric = Fabric::parse(&format!("wdm_ring:ranks={ranks},{options}")).unwrap();
        let ring = fabric.downcast::<WdmRing>().unwrap();
        for record in crate::general_algorithms() {
            if (record.accepts)(ranks).is_err() {
                continue;
            }
            let collective = Collective::new(record.collective, ranks).unwrap();
            let spec = record.name.parse().unwrap();
            let schedule = algorithms::build(&spec, collective, &fabric).unwrap();
            if ranks > 100 && schedule.len() > 1000 {
                // Sets and paths of more than one word of 64 ranks, but few transfers.
                continue;
            }
            let light = route::shortest_arcs(&schedule, ring);
            let assignment = placement::Assignment::AUTO;
            let plan = placement::assign(schedule, light, &fabric, assignment, record.name.into());
            plans.push(plan.unwrap());
        }
    }
    plans
}
