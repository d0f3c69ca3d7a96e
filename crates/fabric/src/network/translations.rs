//! Translations of a grid that wraps around. A translation adds the same coordinates to the
//! position of every rank.
//!
//! A **twisted** grid has sides of n ranks and sides of 2n ranks. A step that wraps around a side
//! of n ranks also moves n positions along every side of 2n ranks (Camara et al., Twisted Torus
//! Topologies for Enhanced Interconnection Networks, IEEE Transactions on Parallel and Distributed
//! Systems 21, 2010). TPU v4 has twisted slices of k x k x 2k and k x 2k x 2k ranks. With or
//! without a twist, the coordinates form an Abelian group, in which ranks can be added.
//!
//! ```
//! use opticoll_fabric::network::translations::Translations;
//! let plain = Translations::straight(vec![4, 4, 8]);
//! let twisted = Translations::twisted(vec![4, 4, 8]).expect("the sides are n, n and 2n");
//! // A step from x = 3 wraps around to x = 0. With the twist, the step also moves 4 positions
//! // along z, which are 64 ranks.
//! assert_eq!(plain.moved(3, 1, false), 0);
//! assert_eq!(twisted.moved(3, 1, false), 4 * 16);
//! assert_eq!(twisted.moved(64, 1, true), 3);
//! assert_eq!(Translations::twisted(vec![4, 4, 12]), None);
//! ```

use std::hash::Hash;

use rustc_hash::{FxHashMap, FxHashSet};

/// Translations of a grid of ranks, described by the sides of the grid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Translations {
    sides: Vec<u32>,
    /// Length of the short sides of a twisted grid, in ranks; `None` without a twist.
    short: Option<u32>,
}

impl Translations {
    /// Returns the translations of a grid without a twist. `sides` contains the lengths of the
    /// sides in ranks. The coordinate of the first side varies fastest in rank numbers.
    pub fn straight(sides: Vec<u32>) -> Translations {
        Translations { sides, short: None }
    }

    /// Returns the translations of a twisted grid, or `None` if the sides allow no twist.
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

    /// Returns the translations of a cycle of ranks. Each link is given as (from, to, kind).
    /// Returns `None` if two links have the same ends, or if a shift along the cycle does not map
    /// each link to a link of the same kind.
    ///
    /// ```
    /// use opticoll_fabric::network::translations::Translations;
    /// let shifts = |rank| [(rank, (rank + 1) % 8, 'a'), (rank, (rank + 3) % 8, 'b')];
    /// let all = Some(Translations::straight(vec![8]));
    /// assert_eq!(Translations::cyclic(8, (0..8).flat_map(shifts)), all);
    /// assert_eq!(Translations::cyclic(8, (0..7).flat_map(shifts)), None);
    /// ```
    pub fn cyclic<Kind: Eq + Hash>(
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

    /// Returns the lengths of the sides in ranks, the fastest varying coordinate first.
    pub fn sides(&self) -> &[u32] {
        &self.sides
    }

    /// Returns the number of ranks.
    pub fn ranks(&self) -> u32 {
        self.sides.iter().product()
    }

    /// Returns whether a step that wraps around a short side also moves along the long sides.
    pub fn is_twisted(&self) -> bool {
        self.short.is_some()
    }

    /// Returns the number of positions that a step also moves along a side of length `along`, if
    /// the step wraps around a side of length `around`. Returns 0 if no twist joins these sides.
    pub fn shift(&self, around: u32, along: u32) -> u32 {
        match self.short {
            Some(short) if around == short && along != short => short,
            _ => 0,
        }
    }

    /// Returns the rank at the sum of the coordinates of ranks `rank` and `by`. If `back`, returns
    /// the rank at the coordinates of `rank` minus the coordinates of `by`.
    pub fn moved(&self, rank: u32, by: u32, back: bool) -> u32 {
        let steps = |side: u32, own: u32, by: u32| match back {
            true => side + own % side - by % side,
            false => own % side + by % side,
        };
        // Number of short sides that the move wraps around: a sum wraps if it reaches `side`, and a
        // difference wraps if it falls below 0.
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
            // On a side of 2n ranks, n steps backwards equal n steps forwards.
            sum += (steps(side, rank, by) + shift) % side * stride;
            stride *= side;
            (rank, by) = (rank / side, by / side);
        }
        sum
    }
}
