//! Tabu search for the routes and colours of a small step with fewer slots.
//!
//! A state gives every transfer one of its alternative routes and a colour below the wanted number
//! of colours. Lightpaths collide that share a link and a colour. A move gives a lightpath that
//! collides the route and colour with the fewest collisions; its old route and colour are then tabu
//! for some moves (Hertz and de Werra, Using Tabu Search Techniques for Graph Coloring, Computing
//! 1987). A state without collisions is a placement.

use opticoll_base::hash::hash;
use opticoll_base::interrupt;

/// Transfers of a step with their alternative routes.
pub(super) struct Search<'a> {
    /// Alternative routes of each transfer.
    pub(super) alternatives: &'a [Vec<Box<[u32]>>],
    pub(super) links: usize,
    pub(super) colours: u32,
}

/// Routes and colours of all transfers.
struct State<'a> {
    alternatives: &'a [Vec<Box<[u32]>>],
    colours: usize,
    /// Index of the route and colour of each transfer.
    route: Vec<usize>,
    colour: Vec<usize>,
    /// Lightpaths on each link and colour, indexed by link * colours + colour.
    lit: Vec<Vec<u32>>,
    /// Lightpaths that may collide; all others do not.
    suspects: Vec<u32>,
    is_suspect: Vec<bool>,
}

/// A route and colour stay tabu for half as many moves as there are suspects, and for a random
/// number of moves below this one, which is usual for colouring.
const RANDOM_TENURE: u64 = 10;

impl Search<'_> {
    /// Searches from the given routes and colours of all transfers, and returns those of a state
    /// without collisions. `budget` is the number of links that the search may still look at; the
    /// search reduces it.
    pub(super) fn run(
        &self,
        start: &[(usize, u32)],
        budget: &mut u64,
    ) -> Option<Vec<(usize, u32)>> {
        let colours = self.colours as usize;
        let mut random = 0x5EED_u64;
        let mut draw = |below: usize| {
            random = hash(random);
            (random % below.max(1) as u64) as usize
        };
        let mut state = State {
            alternatives: self.alternatives,
            colours,
            route: vec![0; start.len()],
            colour: vec![0; start.len()],
            lit: vec![Vec::new(); self.links * colours],
            suspects: Vec::new(),
            is_suspect: vec![false; start.len()],
        };
        for (transfer, &(route, colour)) in start.iter().enumerate() {
            let colour = match (colour as usize) < colours {
                true => colour as usize,
                false => draw(colours),
            };
            state.add(transfer, route, colour);
        }
        let all = self.alternatives.iter();
        let mut tabu: Vec<Vec<u64>> = all.map(|all| vec![0; all.len() * colours]).collect();
        let mut moves = 0u64;
        while !state.suspects.is_empty() {
            interrupt::check();
            let place = draw(state.suspects.len());
            let transfer = state.suspects[place] as usize;
            if !state.collides(transfer) {
                state.suspects.swap_remove(place);
                state.is_suspect[transfer] = false;
                continue;
            }
            moves += 1;
            let old = state.remove(transfer);
            let (mut best, mut fewest, mut equals) = (old, usize::MAX, 0);
            for (route, links) in self.alternatives[transfer].iter().enumerate() {
                *budget = budget.checked_sub((links.len() * colours) as u64)?;
                for colour in 0..colours {
                    let collisions = links.iter();
                    let collisions = collisions.map(|&link| state.lit_on(link, colour).len());
                    let collisions: usize = collisions.sum();
                    let is_tabu = tabu[transfer][route * colours + colour] > moves;
                    if collisions > fewest || (route, colour) == old || is_tabu && collisions > 0 {
                        continue;
                    }
                    equals = if collisions < fewest { 1 } else { equals + 1 };
                    fewest = collisions;
                    if draw(equals) == 0 {
                        best = (route, colour);
                    }
                }
            }
            let tenure = state.suspects.len() as u64 / 2 + draw(RANDOM_TENURE as usize) as u64;
            tabu[transfer][old.0 * colours + old.1] = moves + 1 + tenure;
            state.add(transfer, best.0, best.1);
        }
        let chosen = state.route.into_iter().zip(state.colour);
        Some(
            chosen
                .map(|(route, colour)| (route, colour as u32))
                .collect(),
        )
    }
}

impl State<'_> {
    fn lit_on(&self, link: u32, colour: usize) -> &[u32] {
        &self.lit[link as usize * self.colours + colour]
    }

    /// Returns whether a lightpath shares a link and its colour with another.
    fn collides(&self, transfer: usize) -> bool {
        let mut links = self.alternatives[transfer][self.route[transfer]].iter();
        links.any(|&link| self.lit_on(link, self.colour[transfer]).len() > 1)
    }

    /// Adds a lightpath. The lightpaths that it meets become suspects.
    fn add(&mut self, transfer: usize, route: usize, colour: usize) {
        (self.route[transfer], self.colour[transfer]) = (route, colour);
        for &link in &self.alternatives[transfer][route] {
            let lit = &mut self.lit[link as usize * self.colours + colour];
            lit.push(transfer as u32);
            if lit.len() > 1 {
                for &met in lit.iter() {
                    if !std::mem::replace(&mut self.is_suspect[met as usize], true) {
                        self.suspects.push(met);
                    }
                }
            }
        }
    }

    /// Removes a lightpath. Returns its route and colour.
    fn remove(&mut self, transfer: usize) -> (usize, usize) {
        let (route, colour) = (self.route[transfer], self.colour[transfer]);
        for &link in &self.alternatives[transfer][route] {
            let lit = &mut self.lit[link as usize * self.colours + colour];
            lit.retain(|&other| other as usize != transfer);
        }
        (route, colour)
    }
}
