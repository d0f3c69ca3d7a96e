//! A slow simulator, written to be read: it keeps every reservation ever made and looks through all
//! of them each time. It is given bursts one by one and must decide all of them as the fast one
//! does; of a random choice it only asks that it is among those allowed.

use std::collections::BTreeMap;

use opticoll::families::Medium;
use opticoll::simulate::burst;
use opticoll::simulate::burst::{
    Burst, BurstNetwork, BurstRecord, BurstRouting, BurstSettings, BurstWork, Converters,
    Signalling, WavelengthChoice,
};
use opticoll::units::Time;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::settings;

#[derive(Clone, Copy, PartialEq)]
enum Place {
    Link(u32),
    Converter(u32),
    Receiver(u32),
}

struct Held {
    place: Place,
    channel: u32,
    from: u64,
    until: u64,
}

/// An interval on a link, a node's converters or a host's receivers.
#[derive(Clone, Copy)]
struct Wanted {
    place: Place,
    from: u64,
    until: u64,
}

/// A burst whose control message arrives at link `hop` at a time.
struct Control {
    at: u64,
    order: usize,
    burst: usize,
    hop: usize,
}

struct Slow<'a> {
    network: &'a BurstNetwork,
    settings: &'a BurstSettings,
    bursts: &'a [Burst],
    fast: &'a [BurstRecord],
    held: Vec<Held>,
    /// Per burst: its links, wavelengths held so far, and whether it arrived.
    routes: Vec<Vec<u32>>,
    wavelengths: Vec<Vec<u32>>,
    arrived: Vec<Option<bool>>,
    controls: Vec<Control>,
    order: usize,
    /// Per pair of nodes and wavelength: successes and tries.
    scores: BTreeMap<(u32, u32, u32), (u32, u32)>,
}

impl Slow<'_> {
    fn is_free(&self, wanted: Wanted, channel: u32) -> bool {
        self.held.iter().all(|held| {
            let same = held.place == wanted.place && held.channel == channel;
            !same || held.until <= wanted.from || wanted.until <= held.from
        })
    }

    fn hold(&mut self, wanted: Wanted, channel: u32) {
        let Wanted { place, from, until } = wanted;
        self.held.push(Held {
            place,
            channel,
            from,
            until,
        });
    }

    /// Returns the lowest free channel of a place that has `channels` channels.
    fn first(&self, wanted: Wanted, channels: u32) -> Option<u32> {
        (0..channels).find(|channel| self.is_free(wanted, *channel))
    }

    /// Returns the last end, not after `at_most`, of the reservations of a channel; 0 if there is
    /// none.
    fn last_end(&self, wanted: Wanted, channel: u32, at_most: u64) -> u64 {
        let same = |held: &&Held| held.place == wanted.place && held.channel == channel;
        let ends = self.held.iter().filter(same).map(|held| held.until);
        ends.filter(|end| *end <= at_most).max().unwrap_or(0)
    }

    fn nodes(&self, burst: usize) -> (u32, u32) {
        let Burst {
            source,
            destination,
            ..
        } = self.bursts[burst];
        (self.network.node(source), self.network.node(destination))
    }

    /// Returns (successes + 1) / (tries + 2).
    fn score(&self, burst: usize, wavelength: u32) -> f64 {
        let (from, to) = self.nodes(burst);
        let score = self.scores.get(&(from, to, wavelength));
        let (successes, tries) = score.copied().unwrap_or_default();
        f64::from(successes + 1) / f64::from(tries + 2)
    }

    fn learn(&mut self, burst: usize, wavelength: u32, success: bool) {
        let (from, to) = self.nodes(burst);
        let score = self.scores.entry((from, to, wavelength)).or_default();
        *score = (score.0 + u32::from(success), score.1 + 1);
    }

    /// Returns the wavelength that the rule chooses for these links, which begin with link `hop`.
    fn choose(&self, burst: usize, wanted: &[Wanted], hop: usize) -> Option<u32> {
        let free = |wavelength: &u32| wanted.iter().all(|one| self.is_free(*one, *wavelength));
        let all = 0..self.network.wavelengths();
        let mut allowed: Vec<u32> = all.filter(free).collect();
        let ends = |wavelength: u32, voids: bool| -> u64 {
            let end = |one: &Wanted| {
                self.last_end(*one, wavelength, if voids { one.from } else { u64::MAX })
            };
            wanted.iter().map(end).sum()
        };
        match self.settings.assignment {
            WavelengthChoice::FirstFit => {}
            WavelengthChoice::Random => {
                // A route that was blocked later holds nothing; any choice will do.
                let taken = self.fast[burst].reservations.get(hop);
                let taken = taken.filter(|_| self.fast[burst].route == self.routes[burst]);
                if let (false, Some(taken)) = (allowed.is_empty(), taken) {
                    allowed.retain(|wavelength| *wavelength == taken.wavelength);
                    assert_eq!(allowed, [taken.wavelength], "burst {burst} at hop {hop}");
                }
            }
            WavelengthChoice::Horizon => {
                allowed.retain(|wavelength| {
                    let last = |one: &Wanted| self.last_end(*one, *wavelength, u64::MAX);
                    wanted.iter().all(|one| last(one) <= one.from)
                });
                // Stable: the lowest of equals stays first.
                allowed.sort_by_key(|wavelength| u64::MAX - ends(*wavelength, false));
            }
            WavelengthChoice::LaucVf => {
                allowed.sort_by_key(|wavelength| u64::MAX - ends(*wavelength, true));
            }
            WavelengthChoice::Pwa => {
                let score = |wavelength: &u32| self.score(burst, *wavelength);
                allowed.sort_by(|one, other| score(other).total_cmp(&score(one)));
            }
            WavelengthChoice::SourceOffset => {
                let wavelengths = self.network.wavelengths();
                let first = wavelengths * self.nodes(burst).0 / self.network.nodes();
                allowed.sort_by_key(|one| (one + wavelengths - first) % wavelengths);
            }
        }
        allowed.first().copied()
    }

    fn converters(&self) -> Converters {
        let given = self.settings.converters;
        given.unwrap_or(self.network.converters())
    }

    fn route(&self, burst: usize) -> Vec<u32> {
        self.routes[burst].clone()
    }

    /// Returns the first routes, or among the shortest routes the first whose fullest link has the
    /// fewest wavelengths reserved now or later.
    fn pick_routes(&self, burst: usize) -> Vec<Vec<u32>> {
        let (from, to) = self.nodes(burst);
        let routes = self.network.routes(from, to);
        let now = self.bursts[burst].time.ps();
        let load = |link: &u32| {
            let held = |wavelength: &u32| {
                self.held.iter().any(|held| {
                    held.place == Place::Link(*link)
                        && held.channel == *wavelength
                        && held.until > now
                })
            };
            (0..self.network.wavelengths()).filter(held).count()
        };
        let full = |route: &[u32]| (route.len(), route.iter().map(load).max());
        let best = match self.settings.routing {
            BurstRouting::Fixed => {
                let tried = routes.iter().take(self.settings.routes as usize);
                return tried.map(|route| route.to_vec()).collect();
            }
            BurstRouting::LeastLoaded => routes.iter().min_by_key(|route| full(route)).unwrap(),
        };
        vec![best.to_vec()]
    }

    /// Returns the propagation time before each link of a route, and before its destination.
    fn passed(&self, route: &[u32]) -> Vec<u64> {
        let mut passed = vec![0];
        for link in route {
            passed.push(passed.last().unwrap() + self.network.links()[*link as usize].latency_ps);
        }
        passed
    }

    fn run(&mut self) {
        let mut next = 0;
        loop {
            let first = self.controls.iter().map(|one| (one.at, one.order)).min();
            let arrival = self.bursts.get(next).map(|burst| burst.time.ps());
            match (first, arrival) {
                (None, None) => return,
                (Some((at, order)), arrival) if arrival.is_none_or(|arrival| at <= arrival) => {
                    let place = self.controls.iter().position(|one| one.order == order);
                    let control = self.controls.remove(place.unwrap());
                    self.control(control.burst, control.hop, at);
                }
                _ => {
                    let tried = self.pick_routes(next);
                    self.routes[next] = tried[0].clone();
                    match self.settings.signalling {
                        Signalling::TwoWay => {
                            let arrived = tried.iter().any(|route| self.setup(next, route));
                            self.arrived[next] = Some(arrived);
                            if !arrived {
                                self.routes[next] = tried[0].clone();
                            }
                        }
                        _ => self.control(next, 0, self.bursts[next].time.ps()),
                    }
                    next += 1;
                }
            }
        }
    }

    /// Reserves by one-way signalling, from link `hop` to the last link that the control message
    /// has reached by now.
    fn control(&mut self, burst: usize, hop: usize, now: u64) {
        let route = self.route(burst);
        let passed = self.passed(&route)[hop];
        let Burst {
            time,
            destination,
            length,
            ..
        } = self.bursts[burst];
        let processing = self.settings.processing.ps();
        let worked = (hop + 1).min(route.len()) as u64;
        let at = time.ps() + worked * processing + passed;
        if at > now {
            let order = self.order;
            self.order += 1;
            self.controls.push(Control {
                at,
                order,
                burst,
                hop,
            });
            return;
        }
        let offset = route.len() as u64 * processing
            + self.settings.switching.ps()
            + self.settings.offset.ps();
        let burst_from = time.ps() + offset + passed;
        let from = match self.settings.signalling {
            Signalling::Jit => at,
            _ => burst_from,
        };
        let until = burst_from + length.ps();
        let first = self.wavelengths[burst].first().copied().unwrap_or(0);
        let Some(&link) = route.get(hop) else {
            self.learn(burst, first, true);
            let wanted = Wanted {
                place: Place::Receiver(destination),
                from,
                until,
            };
            self.arrived[burst] = Some(self.receive(wanted));
            return;
        };
        let wanted = Wanted {
            place: Place::Link(link),
            from,
            until,
        };
        match self.next_wavelength(burst, hop, wanted) {
            Some(wavelength) => {
                self.hold(wanted, wavelength);
                self.wavelengths[burst].push(wavelength);
                self.control(burst, hop + 1, now);
            }
            None => {
                if hop > 0 {
                    self.learn(burst, first, false);
                }
                self.arrived[burst] = Some(false);
            }
        }
    }

    fn next_wavelength(&mut self, burst: usize, hop: usize, wanted: Wanted) -> Option<u32> {
        let before = self.wavelengths[burst].last().copied();
        let kept = before.filter(|wavelength| self.is_free(wanted, *wavelength));
        match self.converters() {
            _ if hop == 0 => self.choose(burst, &[wanted], hop),
            Converters::Full => self.choose(burst, &[wanted], hop),
            Converters::None => kept,
            Converters::PerNode(_) if kept.is_some() => kept,
            Converters::PerNode(count) => {
                let bank = self.bank(wanted);
                let number = self.first(bank, count)?;
                let wavelength = self.choose(burst, &[wanted], hop)?;
                self.hold(bank, number);
                Some(wavelength)
            }
        }
    }

    /// Returns the demand for a converter at the node where a link begins.
    fn bank(&self, wanted: Wanted) -> Wanted {
        match wanted.place {
            Place::Link(link) => {
                let node = self.network.links()[link as usize].from;
                Wanted {
                    place: Place::Converter(node),
                    ..wanted
                }
            }
            _ => wanted,
        }
    }

    fn receive(&mut self, wanted: Wanted) -> bool {
        let limits = [self.settings.receivers, self.network.receivers()];
        let Some(count) = limits.into_iter().flatten().min() else {
            return true;
        };
        let number = self.first(wanted, count);
        if let Some(number) = number {
            self.hold(wanted, number);
        }
        number.is_some()
    }

    /// Reserves by two-way signalling: all links at the instant of the request. Returns whether the
    /// route was granted.
    fn setup(&mut self, burst: usize, route: &[u32]) -> bool {
        self.routes[burst] = route.to_vec();
        let passed = self.passed(route);
        let Burst {
            time,
            destination,
            length,
            ..
        } = self.bursts[burst];
        let now = time.ps();
        let control = route.len() as u64 * self.settings.processing.ps();
        let round_trip = 2 * (passed[route.len()] + control) + self.settings.switching.ps();
        let wanted = |place, passed| {
            let until = now + round_trip + passed + length.ps();
            Wanted {
                place,
                from: now,
                until,
            }
        };
        let links: Vec<Wanted> = (route.iter().zip(&passed))
            .map(|(link, passed)| wanted(Place::Link(*link), *passed))
            .collect();
        let receiver = wanted(Place::Receiver(destination), passed[route.len()]);
        let chosen = self.whole_route(burst, &links);
        if !route.is_empty() {
            self.learn_route(burst, chosen.as_deref(), &links);
        }
        let arrived = chosen.is_some() && self.receive(receiver);
        if let (true, Some(chosen)) = (arrived, chosen) {
            for hop in 0..links.len() {
                let changed = hop > 0 && chosen[hop] != chosen[hop - 1];
                if let (true, Converters::PerNode(count)) = (changed, self.converters()) {
                    let bank = self.bank(links[hop]);
                    let number = self.first(bank, count).unwrap();
                    self.hold(bank, number);
                }
                self.hold(links[hop], chosen[hop]);
            }
            self.wavelengths[burst] = chosen;
        }
        arrived
    }

    fn whole_route(&self, burst: usize, links: &[Wanted]) -> Option<Vec<u32>> {
        if self.converters() == Converters::Full {
            let each = (0..links.len()).map(|hop| self.choose(burst, &links[hop..=hop], hop));
            return each.collect();
        }
        if links.is_empty() {
            return Some(Vec::new());
        }
        if let Some(same) = self.choose(burst, links, 0) {
            return Some(vec![same; links.len()]);
        }
        match self.converters() {
            Converters::PerNode(count) => self.fewest_changes(links, count),
            _ => None,
        }
    }

    /// Finds the wavelengths with the fewest conversions by trying all combinations.
    fn fewest_changes(&self, links: &[Wanted], converters: u32) -> Option<Vec<u32>> {
        let wavelengths = self.network.wavelengths() as usize;
        let all = (0..wavelengths.pow(links.len() as u32)).map(|number| -> Vec<u32> {
            let digit = |hop| (number / wavelengths.pow(hop as u32) % wavelengths) as u32;
            (0..links.len()).map(digit).collect()
        });
        let changes = |combination: &Vec<u32>| -> Vec<usize> {
            let hops = 1..combination.len();
            hops.filter(|hop| combination[*hop] != combination[hop - 1])
                .collect()
        };
        let possible = all.filter(|combination| {
            let mut hops = links.iter().zip(combination);
            hops.all(|(link, wavelength)| self.is_free(*link, *wavelength))
                && changes(combination)
                    .iter()
                    .all(|hop| self.first(self.bank(links[*hop]), converters).is_some())
        });
        possible.min_by_key(|combination| {
            let mut backwards: Vec<(bool, u32)> = vec![(false, *combination.last().unwrap())];
            let before = combination.windows(2).rev();
            backwards.extend(before.map(|pair| (pair[0] != pair[1], pair[0])));
            (changes(combination).len(), backwards)
        })
    }

    /// Updates the scores. The wavelengths with a better score than the chosen one count as
    /// failures; all of them do if no wavelength was chosen for the whole route.
    fn learn_route(&mut self, burst: usize, chosen: Option<&[u32]>, links: &[Wanted]) {
        let whole = self.converters() == Converters::Full
            || self.settings.assignment == WavelengthChoice::Pwa
                && self.choose(burst, links, 0).is_some();
        let taken = chosen.filter(|_| whole).map(|chosen| chosen[0]);
        let score = |wavelength| self.score(burst, wavelength);
        let tried: Vec<u32> = (0..self.network.wavelengths())
            .filter(|wavelength| {
                taken.is_none_or(|taken| {
                    let (own, its) = (score(*wavelength), score(taken));
                    own > its || own == its && *wavelength < taken
                })
            })
            .collect();
        for wavelength in tried {
            self.learn(burst, wavelength, false);
        }
        if let Some(taken) = taken {
            self.learn(burst, taken, true);
        }
    }
}

/// Checks that the fast simulator decides as the slow simulator does, and counts the bursts that
/// were lost.
fn check(network: &str, text: &str, seed: u64) -> usize {
    let mut settings = settings(&format!("source=poisson {text}"));
    let network = BurstNetwork::of(&Medium::parse(network).unwrap()).unwrap();
    let network = network.with_routes(settings.routes).into_owned();
    settings.record = true;
    settings.seed = seed;
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let mut time = 0;
    let bursts: Vec<Burst> = (0..80)
        .map(|_| {
            // Coarse times, so that events coincide.
            time += 100 * random.random_range(0..8u64);
            let source = random.random_range(0..network.hosts());
            let other = random.random_range(1..network.hosts());
            Burst {
                time: Time::from_ps(time),
                source,
                destination: (source + other) % network.hosts(),
                length: Time::from_ps(100 * random.random_range(1..30u64)),
            }
        })
        .collect();
    let work = BurstWork::Given(bursts.clone());
    let outcome = burst::simulate(&network, &work, &settings, 1, |_| true).unwrap();
    let mut slow = Slow {
        network: &network,
        settings: &settings,
        bursts: &bursts,
        fast: &outcome.records,
        held: Vec::new(),
        routes: vec![Vec::new(); bursts.len()],
        wavelengths: vec![Vec::new(); bursts.len()],
        arrived: vec![None; bursts.len()],
        controls: Vec::new(),
        order: 0,
        scores: BTreeMap::new(),
    };
    slow.run();
    for (number, record) in outcome.records.iter().enumerate() {
        let fast: Vec<u32> = record
            .reservations
            .iter()
            .map(|one| one.wavelength)
            .collect();
        let what = format!(
            "{} {text} seed {seed}: burst {number}",
            network.specification()
        );
        assert_eq!(record.route, slow.routes[number], "{what}");
        assert_eq!(fast, slow.wavelengths[number], "{what}");
        assert_eq!(record.arrived, slow.arrived[number], "{what}");
        for taken in &record.reservations {
            let held = slow.held.iter().filter(|held| {
                held.place == Place::Link(taken.link)
                    && (held.channel, held.from) == (taken.wavelength, taken.from.ps())
                    && held.until == taken.until.ps()
            });
            assert_eq!(held.count(), 1, "{what}");
        }
    }
    let lost = slow
        .arrived
        .iter()
        .filter(|arrived| **arrived == Some(false))
        .count();
    assert_eq!(outcome.lost, lost as u64);
    lost
}

#[test]
fn a_slow_simulator_decides_every_burst_alike() {
    let networks = [
        "wdm_graph:ranks=2,links=0-1,hosts=2,wavelengths=2,rate=10Gb/s",
        "wdm_graph:ranks=4,switches=1,links=0-4+4-1+1-2+2-3,hosts=1,wavelengths=3,rate=10Gb/s",
        "wdm_torus:dims=5,hosts=2,wavelengths=3,rate=10Gb/s,latency=250ps",
        "wdm_ladder:rungs=3,hosts=2,wavelengths=2,rate=10Gb/s",
        "wdm_mesh:dims=2x3,hosts=2,wavelengths=2,fibres=2,rate=10Gb/s,latency=100ps",
        "wdm_torus:dims=2x3,wavelengths=2,converters=full,receivers=2,rate=10Gb/s,latency=100ps",
    ];
    let delays = ["", "processing=100ps", "processing=700ps switching=300ps"];
    let (mut lost, mut bursts) = (0, 0);
    let mut seed = 0;
    for network in networks {
        for signalling in ["two_way", "jet", "jit"] {
            for assignment in [
                "first_fit",
                "random",
                "horizon",
                "lauc_vf",
                "pwa",
                "source_offset",
            ] {
                for converters in ["converters=fabric", "converters=full", "converters=1"] {
                    for delay in delays {
                        seed += 1;
                        let receivers = ["", "receivers=1", "receivers=2"][seed as usize % 3];
                        let routing = match (seed / 3 % 3, signalling) {
                            (0, _) => "least_loaded",
                            (1, "two_way") => "fixed routes=4",
                            _ => "fixed",
                        };
                        let text = format!(
                            "signalling={signalling} assignment={assignment} {converters} {delay} \
                             {receivers} routing={routing}"
                        );
                        lost += check(network, &text, seed);
                        bursts += 80;
                    }
                }
            }
        }
    }
    // Both ends are common enough for the comparison to mean something.
    assert!(
        5 * lost > bursts && 5 * lost < 4 * bursts,
        "{lost} of {bursts}"
    );
}
