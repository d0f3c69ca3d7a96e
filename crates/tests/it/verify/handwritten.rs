//! Handwritten plans, with one line for each lightpath.

use std::fmt::Write;

use opticoll::collective::Collective;
use opticoll::fabric::{Fabric, Light};
use opticoll::family::wdm_ring::{CONVERTED, Direction, WdmLight};
use opticoll::plan::{NamedRoutes, Plan, Repetition};
use opticoll::schedule::{Action, Schedule, Transfer};

/// A small plan and the verdict that the verifier must give.
pub(crate) struct Case {
    pub(crate) claim: &'static str,
    pub(crate) fabric: &'static str,
    collective: &'static str,
    lines: Vec<&'static str>,
    /// The names of the kinds of violations, in the order of the report.
    pub(crate) kinds: &'static str,
    /// The sentence of the first violation.
    pub(super) sentence: Option<&'static str>,
}

impl Case {
    pub(crate) fn plan(&self) -> Plan {
        if self.fabric.starts_with("wdm_ring") {
            // Also what no text can say.
            return plan_of_lines(self.fabric, self.collective, &self.lines.join("\n"));
        }
        let steps = slots_of_steps(&self.lines);
        let mut head = self.collective.split(' ').next().unwrap().to_string();
        for slots in steps {
            write!(head, " {}", slots.len()).unwrap();
        }
        let mut slots = String::new();
        let mut last = None;
        for line in &self.lines {
            let (_, slot) = time(line);
            if last.replace(slot) != Some(slot) {
                writeln!(slots, "slot {slot}").unwrap();
            }
            writeln!(slots, "{}", line.split_once(' ').unwrap().1).unwrap();
        }
        crate::handwritten(self.fabric, &head, slots.trim_end())
    }
}

/// Lists the cases; tests/test_reference.py gives them to the reference verifier too.
pub(crate) fn cases() -> impl Iterator<Item = Case> {
    let file = include_str!("../../data/plans_by_hand.txt");
    file.split("\n\n").filter_map(|paragraph| {
        let mut lines = paragraph.lines().filter(|line| !line.starts_with('#'));
        let claim = lines.next()?;
        let about = lines
            .next()
            .expect(claim)
            .split('|')
            .map(str::trim)
            .collect::<Vec<_>>();
        let [fabric, collective, kinds] = about.try_into().expect(claim);
        let (sentences, lines): (Vec<&str>, Vec<&str>) =
            lines.partition(|line| line.starts_with('>'));
        Some(Case {
            claim,
            fabric,
            collective,
            lines,
            kinds,
            sentence: sentences.first().map(|line| line[1..].trim()),
        })
    })
}

/// Reads a plan from lines such as `3 copy 5+2 0>1 cw 0.7`: in slot 3 the chunks 5 and 6 go from
/// rank 0 to rank 1, clockwise on fibre 0 and wavelength 7. Each slot is a step of its own, except
/// for lines that begin with step and slot, such as `1:3`. `collective` is `kind ranks root
/// pieces`, the last two optional.
pub(super) fn plan_of_lines(fabric: &str, collective: &str, lines: &str) -> Plan {
    let words: Vec<&str> = collective.split_whitespace().collect();
    let number = |word: usize, default: u32| words.get(word).map_or(default, |word| parse(word));
    let collective = Collective::new(words[0].parse().unwrap(), number(1, 0))
        .and_then(|collective| collective.with_root(number(2, 0)))
        .and_then(|collective| collective.with_pieces(number(3, 1)))
        .unwrap();
    let mut plan = Plan {
        fabric: Fabric::parse(fabric).unwrap(),
        schedule: Schedule::new(collective),
        algorithm: "by hand".into(),
        size: None,
        light: Vec::new(),
        slot: Vec::new(),
        step_slots: Vec::new(),
        relays: Vec::new(),
        routes: NamedRoutes::default(),
        repetition: Repetition::NONE,
    };
    for line in lines.lines() {
        let [_, action, chunks, ends, way, channel] = line
            .split_whitespace()
            .collect::<Vec<_>>()
            .try_into()
            .expect(line);
        let (step, slot) = time(line);
        let (chunk, count) = chunks.split_once('+').unwrap_or((chunks, "1"));
        let (source, destination) = ends.split_once('>').expect(line);
        let (fibre, wavelength) = channel.split_once('.').expect(line);
        while plan.schedule.steps() <= step {
            plan.schedule.begin_step();
        }
        plan.schedule.push(Transfer {
            chunk: parse(chunk),
            count: parse(count),
            source: parse(source),
            destination: parse(destination),
            action: match action {
                "copy" => Action::Copy,
                "reduce" => Action::Reduce,
                _ => panic!("{line}"),
            },
        });
        plan.slot.push(slot);
        plan.light.push(Light::from(WdmLight {
            direction: match way {
                "cw" => Direction::Clockwise,
                "ccw" => Direction::CounterClockwise,
                _ => panic!("{line}"),
            },
            fibre: parse(fibre),
            wavelength: match wavelength {
                "*" => CONVERTED,
                number => parse(number),
            },
        }));
    }
    plan.step_slots = slots_of_steps(&lines.lines().collect::<Vec<_>>());
    plan
}

fn parse<Number: std::str::FromStr>(word: &str) -> Number
where
    Number::Err: std::fmt::Debug,
{
    word.parse()
        .unwrap_or_else(|error| panic!("{word}: {error:?}"))
}

/// Returns the step and the slot with which a line begins.
fn time(line: &str) -> (usize, u32) {
    let word = line.split_whitespace().next().expect(line);
    let (step, slot) = word.split_once(':').unwrap_or((word, word));
    (parse(step), parse(slot))
}

/// Returns the slots of each step. A step ends with its last slot that has a transfer, and the next
/// step begins there.
fn slots_of_steps(lines: &[&str]) -> Vec<std::ops::Range<u32>> {
    let times: Vec<(usize, u32)> = lines.iter().map(|line| time(line)).collect();
    let steps = times.iter().map(|time| time.0 + 1).max().unwrap_or(0);
    let mut end = 0;
    (0..steps)
        .map(|step| {
            let start = end;
            let own = times.iter().filter(|time| time.0 == step);
            let later = times.iter().filter(|time| time.0 > step);
            let last = own.map(|time| time.1 + 1).max().unwrap_or(0);
            end = end
                .max(last)
                .max(later.map(|time| time.1).min().unwrap_or(0));
            start..end
        })
        .collect()
}
