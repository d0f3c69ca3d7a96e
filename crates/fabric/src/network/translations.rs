//! Translations of a grid that wraps around: every rank moved by the same coordinates.
//!
//! A **twisted** grid has sides of n and of 2n ranks. A step around a side of n leads also n places along every side of
//! 2n, so that the other way along the long side is no longer: Camara et al., Twisted Torus Topologies for Enhanced
//! Interconnection Networks, IEEE Transactions on Parallel and Distributed Systems 21, 2010; TPU v4 has slices of k x k x
//! 2k and k x 2k x 2k so. Twisted or not, coordinates form an Abelian group, in which ranks are added.
//!
//! ```
//! use opticoll_fabric::network::translations::Translations;
//! let plain = Translations::straight(vec![4, 4, 8]);
//! let twisted = Translations::twisted(vec![4, 4, 8]).expect("a side of 8 is twice as long as the others");
//! // From x = 3 one step around to x = 0: straight, and 4 places along z, which are 64 ranks.
//! assert_eq!(plain.moved(3, 1, false), 0);
//! assert_eq!(twisted.moved(3, 1, false), 4 * 16);
//! assert_eq!(twisted.moved(64, 1, true), 3);
//! assert_eq!(Translations::twisted(vec![4, 4, 12]), None);
//! ```

use std::hash::Hash;

use rustc_hash::{FxHashMap, FxHashSet};

/// The translations of a grid of ranks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Translations {
    sides: Vec<u32>,
    /// The length of the short sides of a twisted grid.
    short: Option<u32>,
}

impl Translations {
    /// Those of a grid with these sides, the first varying fastest in the numbers of ranks.
    pub fn straight(sides: Vec<u32>) -> Translations {
        Translations { sides, short: None }
    }

    /// Those of a twisted grid; `None` of sides for which no twist is defined.
    pub fn twisted(sides: Vec<u32>) -> Option<Translations> {
        let short = sides.iter().copied().min()?;
        let is_long = |side: &u32| *side / 2 == short && side % 2 == 0;
        let fits = |side: &u32| *side == short || is_long(side);
        let is_defined = sides.iter().all(fits) && sides.iter().any(is_long);
        is_defined.then_some(Translations {
            sides,
            short: Some(short),
        })
    }

    /// Those of ranks in a cycle, if every shift along it moves the links, given as (from, to, kind), onto links of the same
    /// kind, and no two have the same ends.
    ///
    /// ```
    /// use opticoll_fabric::network::translations::Translations;
    /// let shifts = |rank| [(rank, (rank + 1) % 8, 'a'), (rank, (rank + 3) % 8, 'b')];
    /// let all = Some(Translations::straight(vec![8]));
    /// assert_eq!(Translations::of_cycle(8, (0..8).flat_map(shifts)), all);
    /// assert_eq!(Translations::of_cycle(8, (0..7).flat_map(shifts)), None);
    /// ```
    pub fn of_cycle<Kind: Eq + Hash>(
        ranks: u32,
        links: impl IntoIterator<Item = (u32, u32, Kind)>,
    ) -> Option<Translations> {
        let mut shifts: FxHashMap<(u32, Kind), u32> = FxHashMap::default();
        let mut ends = FxHashSet::default();
        for (from, to, kind) in links {
            if from >= ranks || to >= ranks || !ends.insert((from, to)) {
                return None;
            }
            *shifts
                .entry(((to + ranks - from) % ranks, kind))
                .or_default() += 1;
        }
        let is_everywhere = shifts.values().all(|count| *count == ranks);
        is_everywhere.then(|| Translations::straight(vec![ranks]))
    }

    /// The sides of the grid, the first varying fastest.
    pub fn sides(&self) -> &[u32] {
        &self.sides
    }

    /// The number of ranks.
    pub fn ranks(&self) -> u32 {
        self.sides.iter().product()
    }

    /// Whether a step around a side leads along others.
    pub fn is_twisted(&self) -> bool {
        self.short.is_some()
    }

    /// How far a step around a side leads along another.
    pub fn shift(&self, around: u32, along: u32) -> u32 {
        match self.short {
            Some(short) if around == short && along != short => short,
            _ => 0,
        }
    }

    /// A rank moved by the coordinates of another, or back by them.
    pub fn moved(&self, rank: u32, by: u32, back: bool) -> u32 {
        let steps = |side: u32, own: u32, by: u32| match back {
            true => side + own % side - by % side,
            false => own % side + by % side,
        };
        // Steps around short sides; backwards, `side - by` goes around where it does not fall below 0.
        let mut around = 0;
        if let Some(short) = self.short {
            let (mut rank, mut by) = (rank, by);
            for &side in &self.sides {
                let went = steps(side, rank, by) >= side;
                around += u32::from(side == short && went != back);
                (rank, by) = (rank / side, by / side);
            }
        }
        let (mut rank, mut by, mut stride, mut sum) = (rank, by, 1, 0);
        for &side in &self.sides {
            let shift = around * self.shift(self.short.unwrap_or(side), side);
            // n backwards along a side of 2n is n forwards.
            sum += (steps(side, rank, by) + shift) % side * stride;
            stride *= side;
            (rank, by) = (rank / side, by / side);
        }
        sum
    }
}
