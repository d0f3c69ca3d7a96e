//! Settings of shifts one after the other, and how many hops from rank 0 each rank is.

use opticoll_base::spec::whole;

/// Hops to a rank that is not reached.
pub(super) const UNREACHED: i16 = i16::MAX / 2;

/// With more ranks, hops would be more than that.
pub(super) const MOST_RANKS: u32 = UNREACHED as u32;

/// The shifts of all settings.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Sequence(pub(super) Vec<Vec<u32>>);

impl Sequence {
    pub(super) fn text(&self) -> String {
        let joined = |shifts: &Vec<u32>| {
            let shifts: Vec<String> = shifts.iter().map(u32::to_string).collect();
            shifts.join("+")
        };
        let settings: Vec<String> = self.0.iter().map(joined).collect();
        settings.join("x")
    }

    pub(super) fn parse(text: &str, ranks: u32, ports: usize) -> Option<Sequence> {
        let settings = text.split('x').map(|setting| {
            let shifts: Option<Vec<u32>> = setting.split('+').map(whole).collect();
            shifts.filter(|shifts| {
                let fits = shifts.iter().all(|shift| (1..ranks).contains(shift));
                fits && shifts.len() <= ports
            })
        });
        settings.collect::<Option<Vec<_>>>().map(Sequence)
    }
}

/// The least hops to each rank, by how many places after rank 0 it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reach(pub(super) Vec<i16>);

impl Reach {
    /// Before the first setting.
    pub(super) fn of_none(ranks: u32) -> Reach {
        let mut hops = vec![UNREACHED; ranks as usize];
        hops[0] = 0;
        Reach(hops)
    }

    /// After a setting: at each number of its slots from 0 on, up to so many or until more change nothing.
    pub(super) fn levels(self, shifts: &[u32], most: u32) -> Vec<Reach> {
        let before = self.clone();
        let mut levels = vec![self];
        for _ in 0..most {
            let mut next = before.clone();
            let last = &levels[levels.len() - 1];
            shifts.iter().for_each(|shift| next.go_on(last, *shift));
            if next == *last {
                break;
            }
            levels.push(next);
        }
        levels
    }

    /// After a setting of so many slots; `scratch` is as long. Gives the number of slots that helped.
    pub(super) fn after(&self, shifts: &[u32], most: u32, scratch: &mut [Reach; 2]) -> u32 {
        let [last, next] = scratch;
        last.0.clone_from(&self.0);
        for slot in 0..most {
            next.0.clone_from(&self.0);
            shifts.iter().for_each(|shift| next.go_on(last, *shift));
            if next == last {
                return slot;
            }
            std::mem::swap(last, next);
        }
        most
    }

    /// One hop more, over circuits to the rank so many places after each, where that is less.
    fn go_on(&mut self, last: &Reach, shift: u32) {
        let shift = shift as usize;
        let (around, ahead) = self.0.split_at_mut(shift);
        let (before, end) = last.0.split_at(ahead.len());
        for (own, other) in ahead.iter_mut().zip(before) {
            *own = (*own).min(other + 1);
        }
        for (own, other) in around.iter_mut().zip(end) {
            *own = (*own).min(other + 1);
        }
    }

    /// The sum of hops; much where a rank is not reached.
    pub(super) fn sum(&self) -> u64 {
        self.0.iter().map(|hops| *hops as u64).sum()
    }

    pub(super) fn is_complete(&self) -> bool {
        self.0.iter().all(|hops| *hops < UNREACHED)
    }
}
