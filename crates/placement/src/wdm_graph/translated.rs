//! Placement of steps that every translation of the graph maps to themselves, such as the exchange
//! of all pairs, or a shift of every rank by the same coordinates.
//!
//! The ranks form an Abelian group, and the links form classes: a link of class g leads from rank v
//! to rank v + e_g. A transfer from rank x to rank x + s takes the translation by x of one route
//! for s, so n_g routes of s cross every link of class g if the route for s has n_g links of class
//! g. Let f be a homomorphism of the group to the integers modulo m. The lightpath of x gets the
//! colour b m + (f(x) - t mod m), where the box b and the start t depend on s only. The link of
//! class g at rank v is then crossed by two lightpaths of the same colour if and only if two links
//! of routes with box b have the same **cell**: their class g and the sum of t and of the steps f
//! of the links before them, modulo m. So wavelengths are assigned by packing the routes for all s,
//! each turned by some t, into as few boxes as possible, with disjoint cells.
//!
//! With f(v) the sum of the coordinates of v, two routes of opposite shape fill a box of a torus:
//! the first goes a links along x and b along y, the second h - b links along y and then h - a
//! along x (h is half the side, m = h). On a hypercube, complements fill a box. So these graphs
//! reach the bound by loads for the exchange of all pairs (Beauquier, All-to-all communication for
//! some wavelength-routed all-optical networks, Networks 1999, proves these numbers).

use opticoll_base::interrupt;
use opticoll_base::units::gcd;
use opticoll_fabric::network::Network;
use opticoll_fabric::network::translations::Translations;

use super::routes::Routes;
use super::tabu;

/// Translations of a graph, and its links by class and rank.
pub(super) struct Lattice {
    group: Translations,
    ranks: u32,
    classes: usize,
    /// Link of each class at each rank and the rank at its end, indexed by class * ranks + rank.
    links: Vec<(u32, u32)>,
    /// Sum of the coordinates of each rank.
    sums: Vec<u32>,
    /// Greatest common divisor of the sides.
    divisor: u32,
    /// Numbers of links of each class on the shortest routes to each rank from rank 0.
    shapes: Vec<Vec<Shape>>,
}

/// Number of links of each class on a route.
type Shape = Box<[u16]>;

/// Colours and routes of the transfers of a step.
pub(super) struct Translated {
    pub(super) routes: Routes,
    pub(super) colours: Vec<u32>,
    /// Number of colours.
    pub(super) count: u32,
    /// Least number of slots for these routes.
    pub(super) least_slots: u32,
}

/// Route for the transfers of one offset, with its place in a box.
struct Piece {
    offset: u32,
    shape: Shape,
    /// Classes of the links of the route, in order.
    word: Vec<u16>,
    box_number: u32,
    start: u32,
}

/// Cells of a box as bits: class * m + position.
type Cells = u128;

/// Maximum number of shapes of the routes to a rank.
const MAX_SHAPES: usize = 8;

/// Maximum number of placements of pieces that the search for the pieces of one box tries.
const MAX_TRIES: u32 = 1 << 17;

/// Maximum number of pieces of a step.
const MAX_PIECES: usize = 1 << 12;

impl Lattice {
    /// Returns the translations of a graph; `None` if it has switches or no translations.
    pub(super) fn new(network: &dyn Network) -> Option<Lattice> {
        let ranks = network.ranks();
        let cube = ranks.is_power_of_two().then(|| {
            let sides = vec![2; ranks.trailing_zeros() as usize];
            Translations::straight(sides)
        });
        let own = network.translations().cloned();
        let groups = own.into_iter().chain(cube);
        groups
            .filter(|group| group.ranks() == ranks && ranks > 1)
            .find_map(|group| Lattice::with_group(network, group))
    }

    fn with_group(network: &dyn Network, group: Translations) -> Option<Lattice> {
        let ranks = group.ranks();
        let mut leaving: Vec<Vec<(u32, u32, u32)>> = vec![Vec::new(); ranks as usize];
        for (link, (from, to, both_ways)) in (0..).zip(network.wiring().ends()) {
            if both_ways || from.max(to) >= ranks {
                return None;
            }
            leaving[from as usize].push((group.moved(to, from, true), link, to));
        }
        leaving.iter_mut().for_each(|links| links.sort_unstable());
        let classes = leaving[0].len();
        let offsets = |links: &[(u32, u32, u32)]| -> Vec<u32> {
            links.iter().map(|(offset, ..)| *offset).collect()
        };
        let first = offsets(&leaving[0]);
        if classes == 0 || leaving.iter().any(|links| offsets(links) != first) {
            return None;
        }
        let by_class = (0..classes).flat_map(|class| leaving.iter().map(move |links| links[class]));
        let links: Vec<(u32, u32)> = by_class.map(|(_, link, to)| (link, to)).collect();
        let sides = group.sides();
        let sum = |rank: u32| {
            let coordinates = sides.iter().scan(rank, |left, &side| {
                let coordinate = *left % side;
                *left /= side;
                Some(coordinate)
            });
            coordinates.sum()
        };
        let divisor = sides
            .iter()
            .fold(0, |divisor, &side| gcd(divisor, side.into())) as u32;
        let mut lattice = Lattice {
            sums: (0..ranks).map(sum).collect(),
            group,
            ranks,
            classes,
            links,
            divisor,
            shapes: Vec::new(),
        };
        lattice.shapes = lattice.all_shapes();
        Some(lattice)
    }

    /// Returns the shapes of shortest routes from rank 0 to each rank.
    fn all_shapes(&self) -> Vec<Vec<Shape>> {
        let mut shapes: Vec<Vec<Shape>> = vec![Vec::new(); self.ranks as usize];
        let mut is_before = vec![false; self.ranks as usize];
        shapes[0].push(vec![0; self.classes].into());
        let mut layer = vec![0u32];
        while !layer.is_empty() {
            layer
                .iter()
                .for_each(|&rank| is_before[rank as usize] = true);
            let mut next = Vec::new();
            for &rank in &layer {
                interrupt::check();
                for class in 0..self.classes {
                    let (_, to) = self.link(class, rank);
                    if is_before[to as usize] {
                        continue;
                    }
                    for index in 0..shapes[rank as usize].len() {
                        let mut shape = shapes[rank as usize][index].clone();
                        shape[class] += 1;
                        let known = &mut shapes[to as usize];
                        if known.is_empty() {
                            next.push(to);
                        }
                        if known.len() < MAX_SHAPES && !known.contains(&shape) {
                            known.push(shape);
                        }
                    }
                }
            }
            layer = next;
        }
        shapes
    }

    /// Returns the link of a class that leaves a rank, and the rank at its end.
    fn link(&self, class: usize, rank: u32) -> (u32, u32) {
        self.links[class * self.ranks as usize + rank as usize]
    }

    /// Places a step with few colours, of which a slot has `per_slot`. Returns `None` if the
    /// translations do not map the step to itself, or if no homomorphism suits its routes. `budget`
    /// is that of [`tabu::Search::run`].
    pub(super) fn place(
        &self,
        ends: &[(u32, u32)],
        per_slot: u32,
        budget: &mut u64,
    ) -> Option<Translated> {
        let members = self.pieces_of(ends)?;
        let mut pieces = self.shaped(&members.offsets);
        let mut loads = vec![0u32; self.classes];
        for piece in &pieces {
            let shape = loads.iter_mut().zip(&piece.shape);
            shape.for_each(|(load, &links)| *load += u32::from(links));
        }
        let load = loads.into_iter().max()?;
        let longest = pieces.iter().flat_map(|piece| piece.shape.iter()).max();
        let longest = u32::from(*longest?);
        let modulus = (longest.max(1)..=self.divisor).find(|m| self.divisor % m == 0)?;
        let packing = Packing::new(self, modulus)?;
        let least_slots = load.div_ceil(per_slot);
        let wanted = least_slots * per_slot / modulus;
        let boxes = packing.pack(&mut pieces, wanted.max(load.div_ceil(modulus)), budget)?;
        let mut colours = vec![0; ends.len()];
        let mut routes = Routes::default();
        let mut route = Vec::new();
        for (index, &(source, _)) in ends.iter().enumerate() {
            interrupt::check();
            let piece = &pieces[members.piece_of[index] as usize];
            route.clear();
            let mut rank = source;
            for &class in &piece.word {
                let (link, to) = self.link(class.into(), rank);
                route.push(link);
                rank = to;
            }
            routes.push(&route);
            let turned = (self.sums[source as usize] + modulus - piece.start) % modulus;
            colours[index] = piece.box_number * modulus + turned;
        }
        Some(Translated {
            routes,
            colours,
            count: boxes * modulus,
            least_slots,
        })
    }

    /// Returns the colours of transfers by the sums of the coordinates of their sources, modulo the
    /// least m that avoids all collisions of the routes; `None` if more than `most` colours are
    /// needed. Such colours suit shifts of all ranks by the same number, if the routes lead through
    /// the dimensions in the same order.
    pub(super) fn coloured_by_sums(
        &self,
        ends: &[(u32, u32)],
        routes: &Routes,
        most: u32,
    ) -> Option<Vec<u32>> {
        let links = self.links.len();
        let load = routes.greatest_load(links);
        let moduli = (load.max(1)..=most.min(self.divisor)).filter(|m| self.divisor % m == 0);
        for modulus in moduli {
            let mut lit = vec![false; links * modulus as usize];
            let colours = ends.iter().map(|ends| self.sums[ends.0 as usize] % modulus);
            let colours: Vec<u32> = colours.collect();
            let is_free = colours.iter().enumerate().all(|(transfer, &colour)| {
                let mut route = routes.get(transfer).iter();
                let place = |link: u32| (link * modulus + colour) as usize;
                route.all(|&link| !std::mem::replace(&mut lit[place(link)], true))
            });
            if is_free {
                return Some(colours);
            }
        }
        None
    }

    /// Divides the transfers of a step into pieces: one transfer of the same offset from each rank.
    fn pieces_of(&self, ends: &[(u32, u32)]) -> Option<Members> {
        let ranks = self.ranks as usize;
        if ends.is_empty() || ends.len() % ranks != 0 || ends.len() / ranks > MAX_PIECES {
            return None;
        }
        let mut order: Vec<(u32, u32, u32)> = Vec::with_capacity(ends.len());
        for (index, &(source, destination)) in (0..).zip(ends) {
            interrupt::check();
            order.push((self.group.moved(destination, source, true), source, index));
        }
        order.sort_unstable();
        let mut members = Members {
            offsets: Vec::new(),
            piece_of: vec![0; ends.len()],
        };
        for same in order.chunk_by(|first, next| first.0 == next.0) {
            if same.len() % ranks != 0 {
                return None;
            }
            let rounds = same.len() / ranks;
            let first = members.offsets.len();
            for (place, &(_, source, index)) in same.iter().enumerate() {
                if source as usize != place / rounds {
                    return None;
                }
                members.piece_of[index as usize] = (first + place % rounds) as u32;
            }
            members.offsets.extend((0..rounds).map(|_| same[0].0));
        }
        Some(members)
    }

    /// Returns a piece for each offset, with shapes that load the classes evenly.
    fn shaped(&self, offsets: &[u32]) -> Vec<Piece> {
        let mut chosen: Vec<usize> = vec![0; offsets.len()];
        let mut loads = vec![0i64; self.classes];
        let shapes = |piece: usize| &self.shapes[offsets[piece] as usize];
        let add = |loads: &mut [i64], shape: &Shape, sign: i64| {
            let links = loads.iter_mut().zip(shape);
            links.for_each(|(load, &links)| *load += sign * i64::from(links));
        };
        // Offsets with a single shape come first, then those with the longest routes.
        let mut order: Vec<usize> = (0..offsets.len()).collect();
        order.sort_by_key(|&piece| {
            let longest = shapes(piece)[0].iter().max().copied().unwrap_or(0);
            (shapes(piece).len() > 1, std::cmp::Reverse(longest))
        });
        let squares = |loads: &[i64], shape: &Shape| -> i64 {
            let links = loads.iter().zip(shape);
            links
                .map(|(load, &links)| (2 * load + i64::from(links)) * i64::from(links))
                .sum()
        };
        for pass in 0..3 {
            for &piece in &order {
                interrupt::check();
                if pass > 0 {
                    add(&mut loads, &shapes(piece)[chosen[piece]], -1);
                }
                let all = 0..shapes(piece).len();
                let best = all.min_by_key(|&shape| squares(&loads, &shapes(piece)[shape]));
                chosen[piece] = best.unwrap_or(0);
                add(&mut loads, &shapes(piece)[chosen[piece]], 1);
            }
        }
        let pieces = (0..offsets.len()).map(|piece| Piece {
            offset: offsets[piece],
            shape: shapes(piece)[chosen[piece]].clone(),
            word: Vec::new(),
            box_number: 0,
            start: 0,
        });
        pieces.collect()
    }
}

/// Pieces of a step.
struct Members {
    /// Offset of each piece.
    offsets: Vec<u32>,
    /// Piece of each transfer, indexed by transfer.
    piece_of: Vec<u32>,
}

/// A route of a piece: order of the classes, start and cells.
struct Variant {
    order: Vec<u16>,
    start: u32,
    cells: Cells,
}

/// Search for the pieces of each box.
struct Packing {
    modulus: u32,
    /// Step f of each class, modulo m.
    steps: Vec<u32>,
    /// Number of cells of a box.
    cells: u32,
}

impl Packing {
    /// Returns `None` if the sum of coordinates is no homomorphism, or if a box has too many cells.
    fn new(lattice: &Lattice, modulus: u32) -> Option<Packing> {
        let cells = lattice.classes as u32 * modulus;
        if cells > Cells::BITS {
            return None;
        }
        let step = |class: usize, rank: u32| {
            let (_, to) = lattice.link(class, rank);
            let sums = [to, rank].map(|rank| lattice.sums[rank as usize] % modulus);
            (sums[0] + modulus - sums[1]) % modulus
        };
        let steps: Vec<u32> = (0..lattice.classes).map(|class| step(class, 0)).collect();
        let mut classes = (0..lattice.classes).flat_map(|class| {
            let ranks = 0..lattice.ranks;
            ranks.map(move |rank| (class, rank))
        });
        let is_homomorphism = classes.all(|(class, rank)| step(class, rank) == steps[class]);
        is_homomorphism.then_some(Packing {
            modulus,
            steps,
            cells,
        })
    }

    /// Assigns a word, a box and a start to every piece. Returns the number of boxes. If the boxes
    /// are more than `wanted`, a tabu search tries to pack the pieces into `wanted` boxes.
    fn pack(&self, pieces: &mut [Piece], wanted: u32, budget: &mut u64) -> Option<u32> {
        let variants: Vec<Vec<Variant>> = pieces
            .iter()
            .map(|piece| self.variants(&piece.shape))
            .collect();
        if variants.iter().any(Vec::is_empty) {
            return None;
        }
        let mut left: Vec<usize> = (0..pieces.len()).collect();
        left.sort_by_key(|&piece| {
            let cells = variants[piece][0].cells.count_ones();
            (std::cmp::Reverse(cells), pieces[piece].offset)
        });
        let mut packed = vec![(0, 0); pieces.len()];
        let mut boxes = 0;
        while !left.is_empty() {
            let mut search = BoxSearch {
                variants: &variants,
                left: &left,
                cells: self.cells,
                chosen: vec![(0, 0)],
                best: Vec::new(),
                most: 0,
                tries: 0,
            };
            search.fill(variants[left[0]][0].cells, 1);
            let best = std::mem::take(&mut search.best);
            for &(place, variant) in &best {
                packed[left[place]] = (boxes, variant);
            }
            let mut place = 0;
            left.retain(|_| {
                place += 1;
                best.iter().all(|(chosen, _)| *chosen + 1 != place)
            });
            boxes += 1;
        }
        if boxes > wanted
            && let Some(better) = self.improved(&variants, &packed, wanted, budget)
        {
            (packed, boxes) = (better, wanted);
        }
        for (piece, (box_number, variant)) in packed.into_iter().enumerate() {
            let Variant { order, start, .. } = &variants[piece][variant];
            let chosen = &mut pieces[piece];
            chosen.word = word(&chosen.shape, order);
            (chosen.box_number, chosen.start) = (box_number, *start);
        }
        Some(boxes)
    }

    /// Packs the pieces into `wanted` boxes, starting from a packing into more boxes. Cells are the
    /// links of the search, and boxes its colours.
    fn improved(
        &self,
        variants: &[Vec<Variant>],
        packed: &[(u32, usize)],
        wanted: u32,
        budget: &mut u64,
    ) -> Option<Vec<(u32, usize)>> {
        let cells = |variant: &Variant| -> Box<[u32]> {
            let cells = 0..self.cells;
            cells
                .filter(|cell| variant.cells >> cell & 1 == 1)
                .collect()
        };
        let alternatives: Vec<Vec<Box<[u32]>>> = variants
            .iter()
            .map(|variants| variants.iter().map(cells).collect())
            .collect();
        let start: Vec<(usize, u32)> = packed
            .iter()
            .map(|&(box_number, variant)| (variant, box_number))
            .collect();
        let search = tabu::Search {
            alternatives: &alternatives,
            links: self.cells as usize,
            colours: wanted,
        };
        let chosen = search.run(&start, budget)?;
        let chosen = chosen.into_iter();
        Some(
            chosen
                .map(|(variant, box_number)| (box_number, variant))
                .collect(),
        )
    }

    /// Returns the routes with a shape: some orders of its classes, each with every start. Routes
    /// whose own cells collide are left out.
    fn variants(&self, shape: &Shape) -> Vec<Variant> {
        let classes = (0..).zip(shape).filter(|(_, links)| **links > 0);
        let classes: Vec<u16> = classes.map(|(class, _)| class).collect();
        let mut variants: Vec<Variant> = Vec::new();
        for order in orders(&classes) {
            for start in 0..self.modulus {
                let (mut position, mut cells, mut is_free) = (start, 0, true);
                for class in word(shape, &order) {
                    let cell = 1 << (u32::from(class) * self.modulus + position);
                    is_free &= cells & cell == 0;
                    cells |= cell;
                    position = (position + self.steps[usize::from(class)]) % self.modulus;
                }
                if is_free && variants.iter().all(|variant| variant.cells != cells) {
                    variants.push(Variant {
                        order: order.clone(),
                        start,
                        cells,
                    });
                }
            }
        }
        variants
    }
}

/// Returns the classes of a route with a shape, class by class in the given order.
fn word(shape: &Shape, order: &[u16]) -> Vec<u16> {
    let links = order.iter().map(|&class| {
        let links = usize::from(shape[usize::from(class)]);
        std::iter::repeat_n(class, links)
    });
    links.flatten().collect()
}

/// Returns all orders of up to three classes; of more classes, the rotations in both directions.
fn orders(classes: &[u16]) -> Vec<Vec<u16>> {
    let reversed = classes.iter().rev().copied().collect::<Vec<u16>>();
    let mut orders = Vec::new();
    for classes in [classes.to_vec(), reversed] {
        for turn in 0..classes.len() {
            let mut order = classes.clone();
            order.rotate_left(turn);
            if !orders.contains(&order) {
                orders.push(order);
            }
        }
    }
    orders
}

/// Depth-first search for pieces that fill as many cells of a box as possible.
struct BoxSearch<'a> {
    variants: &'a [Vec<Variant>],
    /// Pieces without a box, the longest first.
    left: &'a [usize],
    cells: u32,
    /// Chosen pieces, as places in `left`, each with a variant.
    chosen: Vec<(usize, usize)>,
    best: Vec<(usize, usize)>,
    most: u32,
    tries: u32,
}

impl BoxSearch<'_> {
    /// Adds pieces from place `first` on to the cells `taken`. Returns whether the search is over.
    fn fill(&mut self, taken: Cells, first: usize) -> bool {
        let count = taken.count_ones();
        if count > self.most {
            self.most = count;
            self.best = self.chosen.clone();
        }
        if count == self.cells {
            return true;
        }
        for place in first..self.left.len() {
            interrupt::check();
            let variants = &self.variants[self.left[place]];
            if variants[0].cells.count_ones() > self.cells - count {
                continue;
            }
            for (number, variant) in variants.iter().enumerate() {
                self.tries += 1;
                if variant.cells & taken != 0 {
                    continue;
                }
                self.chosen.push((place, number));
                if self.fill(taken | variant.cells, place + 1) || self.tries > MAX_TRIES {
                    return true;
                }
                self.chosen.pop();
            }
        }
        self.tries > MAX_TRIES
    }
}
