//! The platforms of the reference values, of which only the dragonfly with chassis is no family of
//! fabrics, and the collectives of the reference.

use opticoll::fabric::Fabric;
use opticoll::network::{Link, Network, Sharing, Wiring};
use opticoll::simulate::fluid::{StepFlow, Steps};
use opticoll::units::{Rate, Time, UnitError};

/// 12.5 GB/s.
const LINK_BITS_PER_SECOND: u64 = 100_000_000_000;

/// Returns a link that is `times` as fast as a plain link.
pub fn link(times: u64, latency: Time) -> Link {
    Link {
        rate: Rate::from_bits_per_second(LINK_BITS_PER_SECOND * times).unwrap(),
        latency,
        sharing: Sharing::Shared,
    }
}

/// Returns the specification of a platform of the reference, whose parameters are as written there.
pub fn spelled(name: &str, ranks: u64, parameters: Option<&str>, latency: &str) -> Option<String> {
    Some(match name {
        "star" => format!("crossbar:ranks={ranks},rate=12.5GB/s,latency={latency}"),
        "fat_tree" => {
            let parts: Vec<String> = parameters?
                .split(';')
                .map(|x| x.replace(',', "x"))
                .collect();
            let (down, up, links) = (&parts[1], &parts[2], &parts[3]);
            format!("fat_tree:down={down},up={up},links={links},rate=12.5GB/s,latency={latency}")
        }
        "dragonfly" => {
            let numbers: Vec<&str> = parameters?.split([';', ',']).collect();
            let [groups, blue, "1", _, routers, "1", hosts] = numbers[..] else {
                panic!("{numbers:?}");
            };
            let global = blue.parse::<u64>().unwrap() * 100;
            format!(
                "dragonfly:terminals_per_router={hosts},routers_per_group={routers},\
                 groups={groups},arrangement=simgrid,rate=12.5GB/s,global_rate={global}Gb/s,\
                 latency={latency}"
            )
        }
        _ => return None,
    })
}

/// Returns a platform by its name in the reference; `parameters` are as written there.
pub fn platform(
    name: &str,
    ranks: u32,
    parameters: Option<&str>,
    latency: Time,
) -> Box<dyn Network> {
    let in_text = format!("{}ps", latency.ps());
    match spelled(name, ranks.into(), parameters, &in_text) {
        Some(spec) => Box::new(Owned(Fabric::parse(&spec).unwrap())),
        None => Box::new(Dragonfly::new(parameters.unwrap(), latency)),
    }
}

/// A fabric, as a network.
struct Owned(Fabric);

impl Owned {
    fn network(&self) -> &dyn Network {
        self.0.network().unwrap()
    }
}

impl Network for Owned {
    fn ranks(&self) -> u32 {
        self.0.ranks()
    }

    fn wiring(&self) -> &Wiring {
        self.network().wiring()
    }

    fn route(&self, source: u32, destination: u32, links: &mut Vec<u32>) {
        self.network().route(source, destination, links);
    }

    fn link_name(&self, link: u32) -> String {
        self.network().link_name(link)
    }
}

fn numbers(list: &str) -> Vec<u32> {
    list.split(',')
        .map(|number| number.parse().unwrap())
        .collect()
}

/// Groups of chassis of routers of ranks; all-to-all at each level.
pub struct Dragonfly {
    groups: u32,
    chassis: u32,
    routers: u32,
    hosts: u32,
    wiring: Wiring,
}

impl Dragonfly {
    /// Reads `groups,blue;chassis,black;routers,green;hosts`.
    pub fn new(parameters: &str, latency: Time) -> Dragonfly {
        let parts: Vec<Vec<u32>> = parameters.split(';').map(numbers).collect();
        let (groups, chassis, routers, hosts) =
            (parts[0][0], parts[1][0], parts[2][0], parts[3][0]);
        let all = groups * chassis * routers;
        let mut links = vec![link(1, latency); 2 * (all * hosts) as usize];
        for (count, times) in [
            (all * routers, parts[2][1]),
            (all * chassis, parts[1][1]),
            (groups * groups, parts[0][1]),
        ] {
            links.extend(vec![link(u64::from(times), latency); count as usize]);
        }
        Dragonfly {
            groups,
            chassis,
            routers,
            hosts,
            wiring: links.into(),
        }
    }

    fn all(&self) -> u32 {
        self.groups * self.chassis * self.routers
    }

    fn router(&self, group: u32, chassis: u32, router: u32) -> u32 {
        (group * self.chassis + chassis) * self.routers + router
    }

    fn green(&self, group: u32, chassis: u32, from: u32, to: u32) -> u32 {
        2 * self.all() * self.hosts + self.router(group, chassis, from) * self.routers + to
    }

    fn black(&self, group: u32, router: u32, from: u32, to: u32) -> u32 {
        let first = 2 * self.all() * self.hosts + self.all() * self.routers;
        first + self.router(group, from, router) * self.chassis + to
    }

    fn blue(&self, from: u32, to: u32) -> u32 {
        let first =
            2 * self.all() * self.hosts + self.all() * self.routers + self.all() * self.chassis;
        first + from * self.groups + to
    }
}

impl Network for Dragonfly {
    fn ranks(&self) -> u32 {
        self.all() * self.hosts
    }

    fn wiring(&self) -> &Wiring {
        &self.wiring
    }

    fn route(&self, source: u32, destination: u32, links: &mut Vec<u32>) {
        let place = |rank: u32| {
            let router = rank / self.hosts;
            let chassis = router / self.routers;
            (
                chassis / self.chassis,
                chassis % self.chassis,
                router % self.routers,
            )
        };
        let ((mut group, mut chassis, mut router), goal) = (place(source), place(destination));
        links.push(source);
        if group != goal.0 {
            if router != goal.0 {
                links.push(self.green(group, chassis, router, goal.0));
                router = goal.0;
            }
            if chassis != 0 {
                links.push(self.black(group, router, chassis, 0));
            }
            links.push(self.blue(group, goal.0));
            (router, group, chassis) = (group, goal.0, 0);
        }
        if router != goal.2 {
            links.push(self.green(group, chassis, router, goal.2));
            router = goal.2;
            // The reference goes on from chassis 0 here, wherever the hop was made.
            chassis = 0;
        }
        if chassis != goal.1 {
            links.push(self.black(group, router, chassis, goal.1));
        }
        links.push(self.ranks() + destination);
    }

    fn link_name(&self, link: u32) -> String {
        format!("dragonfly {link}")
    }
}

/// A collective of the reference, step by step.
pub struct Pattern {
    pub name: String,
    pub ranks: u32,
    /// Bytes as the reference counts them: of the gathered result, of the vector, or of all that a
    /// rank sends.
    pub bytes: u64,
}

impl Steps for Pattern {
    fn steps(&self) -> usize {
        let (n, log) = (self.ranks as usize, self.ranks.ilog2() as usize);
        match self.name.as_str() {
            "ag_ring" | "ag_shift" | "a2a_pair" => n - 1,
            "ar_ring" => 2 * (n - 1),
            "ag_rdb" | "ag_bruck" | "ar_rdb" => log,
            "ar_rab" | "ar_rabnear" => 2 * log,
            other => panic!("no collective {other}"),
        }
    }

    fn step(&self, step: usize, flows: &mut Vec<StepFlow>) -> Result<(), UnitError> {
        let (n, s, log) = (self.ranks, step as u32, self.ranks.ilog2());
        let block = self.bytes / u64::from(n);
        // Of the two halves of a halving and doubling: the distance's exponent.
        let there_and_back = |s: u32| if s < log { log - 1 - s } else { s - log };
        for r in 0..n {
            let (destination, bytes) = match self.name.as_str() {
                "ag_ring" | "ar_ring" => ((r + 1) % n, block),
                "ag_shift" => ((r + s + 1) % n, block),
                "a2a_pair" => (r ^ (s + 1), block),
                "ag_rdb" => (r ^ (1 << s), block << s),
                "ag_bruck" => (
                    (r + n - (1 << s)) % n,
                    block * u64::from((1 << s).min(n - (1 << s))),
                ),
                "ar_rdb" => (r ^ (1 << s), self.bytes),
                "ar_rab" => {
                    let k = there_and_back(s);
                    (r ^ (1 << k), block << k)
                }
                _ => {
                    let k = log - 1 - there_and_back(s);
                    (r ^ (1 << k), self.bytes >> (k + 1))
                }
            };
            flows.push(StepFlow {
                source: r,
                destination,
                bytes,
            });
        }
        Ok(())
    }
}

/// Returns the closed loop of the reference, chains of flows to random ranks: for each chain the
/// destinations and sizes of its flows.
pub fn random_chains(ranks: u32, chains: u32, flows: u32, seed: u64) -> Vec<Vec<(u32, u64)>> {
    (0..ranks * chains)
        .map(|chain| {
            let mut state = seed
                .wrapping_mul(0x9E37_79B9_7F4A_7C15)
                .wrapping_add(u64::from(chain).wrapping_mul(0xD1B5_4A32_D192_ED03))
                .wrapping_add(1);
            let mut draw = || {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                state >> 33
            };
            (0..flows)
                .map(|_| {
                    let (a, b) = (draw(), draw());
                    let source = u64::from(chain / chains);
                    let away = 1 + a % u64::from(ranks - 1);
                    (
                        ((source + away) % u64::from(ranks)) as u32,
                        100_000 + b % 1_900_001,
                    )
                })
                .collect()
        })
        .collect()
}
