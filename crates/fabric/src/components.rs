//! Components of networks, with published values.
//!
//! A value is what one source states. If sources differ, the list has a value for each source, and
//! nothing is averaged. A value that no source confirms has the condition `unconfirmed`. The text
//! of a source ends with its date if the source states one.
//!
//! A loss budget that names a component uses the greatest loss that is listed
//! ([`Component::greatest_loss`]), because a budget must hold for the worst part. Sums of power use
//! the first value that is a single number; ranges are listed after it.
//!
//! Some components are listed without values, because no source for them was found. Prices and
//! failure rates have no source either. Users state these values in a file.

use opticoll_base::decibels::Decibels;

opticoll_base::named_enum! {
    /// Property of a component.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Property {
        /// Insertion loss; of a fibre, the loss per length.
        Loss = "loss",
        /// Loss of an electrical signal between a switch chip and an optical module.
        ElectricalLoss = "electrical loss",
        /// Power of one component that is switched on.
        Power = "power",
        /// Power of a switch, divided by the number of its ports.
        PowerPerPort = "power per port",
        /// Number of ports of a switch.
        Ports = "ports",
        /// Rate of a port of a switch, in one direction.
        PortRate = "port rate",
        /// Power divided by the rate, counted in one direction.
        Energy = "energy",
        /// Price of one component.
        Price = "price",
        /// Failures of one component per 10^9 hours (FIT).
        FailureRate = "failure rate",
    }

    /// Kind of a source.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum SourceKind {
        /// Data sheet or manual of the maker or seller.
        DataSheet = "data sheet",
        /// Scientific publication.
        Paper = "paper",
        /// Text that quotes others, or parameters of published software.
        Secondary = "secondary text",
        /// Property that follows from what the component is.
        Definition = "definition",
    }
}

impl Property {
    /// Returns the unit of all values of the property; of a fibre, the loss is per kilometre.
    pub const fn unit(self) -> &'static str {
        match self {
            Property::Loss | Property::ElectricalLoss => "dB",
            Property::Power => "W",
            Property::PowerPerPort => "W/port",
            Property::Ports => "ports",
            Property::PortRate => "Gb/s",
            Property::Energy => "pJ/b",
            Property::Price => "USD",
            Property::FailureRate => "FIT",
        }
    }
}

/// Value of a property of a component, as one source states it.
#[derive(Debug, Clone, Copy)]
pub struct ComponentValue {
    /// Property that the value measures.
    pub property: Property,
    /// Value as a decimal number, or range such as `5 to 8`.
    pub value: &'static str,
    /// Unit of the value.
    pub unit: &'static str,
    /// Conditions of the value, such as `maximum`; empty if the source states none.
    pub condition: &'static str,
    /// Kind of the source.
    pub kind: SourceKind,
    /// Publication that states the value.
    pub source: &'static str,
}

/// Component with its published values.
#[derive(Debug, Clone, Copy)]
pub struct Component {
    /// Name of the component in loss budgets, bills and files of users.
    pub name: &'static str,
    /// Description in one sentence.
    pub summary: &'static str,
    /// Values; empty if no source was found.
    pub values: &'static [ComponentValue],
}

impl Component {
    /// Returns the greatest listed loss, in dB or, for a fibre, in dB per km. Returns `None` if no
    /// loss is listed.
    pub fn greatest_loss(&self) -> Option<Decibels> {
        let losses = self.values.iter();
        let losses = losses.filter(|value| value.property == Property::Loss);
        let greatest = losses.filter_map(|value| value.value.rsplit(' ').next()?.parse().ok());
        greatest.max()
    }

    /// Returns whether the loss is a loss per kilometre.
    pub fn is_fibre(&self) -> bool {
        self.values.iter().any(|value| value.unit == PER_KM)
    }
}

/// Returns the component that is called `name`.
pub fn component(name: &str) -> Option<&'static Component> {
    COMPONENTS.iter().find(|component| component.name == name)
}

const PER_KM: &str = "dB/km";

const fn stated(
    property: Property,
    value: &'static str,
    condition: &'static str,
    kind: SourceKind,
    source: &'static str,
) -> ComponentValue {
    ComponentValue {
        property,
        value,
        unit: property.unit(),
        condition,
        kind,
        source,
    }
}

const fn loss(
    value: &'static str,
    condition: &'static str,
    kind: SourceKind,
    source: &'static str,
) -> ComponentValue {
    stated(Property::Loss, value, condition, kind, source)
}

const fn per_km(
    value: &'static str,
    condition: &'static str,
    kind: SourceKind,
    source: &'static str,
) -> ComponentValue {
    ComponentValue {
        unit: PER_KM,
        ..loss(value, condition, kind, source)
    }
}

/// Power of a passive component.
const PASSIVE: ComponentValue = stated(
    Property::Power,
    "0",
    "passive",
    SourceKind::Definition,
    "a passive component takes no power",
);

const fn electrical(
    value: &'static str,
    condition: &'static str,
    source: &'static str,
) -> ComponentValue {
    stated(
        Property::ElectricalLoss,
        value,
        condition,
        Secondary,
        source,
    )
}

const fn watts(
    value: &'static str,
    condition: &'static str,
    source: &'static str,
) -> ComponentValue {
    stated(Property::Power, value, condition, Secondary, source)
}

const fn per_port(
    value: &'static str,
    condition: &'static str,
    source: &'static str,
) -> ComponentValue {
    stated(Property::PowerPerPort, value, condition, Secondary, source)
}

const fn per_bit(
    value: &'static str,
    condition: &'static str,
    source: &'static str,
) -> ComponentValue {
    stated(Property::Energy, value, condition, Secondary, source)
}

const FOA: &str = "Fiber Optic Association, loss budget calculator, thefoa.org";
const CORNING: &str = "Corning SMF-28 ULL, product information PI1470, July 2014";
const CABLE: &str = "single-mode indoor cable of 6 cores, machineu.com";
const QUOTED: &str = "texts on loss budgets of fibre links; the standard itself was not read";
const REACH: &str = "Reach Optics, CWDM multiplexers, reachoptics.com";
const CANARY: &str = "Canary Communications CCM-1202, table I-2 (CM-4MD6 and CM-8MD6)";
const OPELINK: &str = "Opelink, optical switch specifications guide, opelink.com, 21 May 2026";
const PHOENIX: &str = "PhoenixSim, parameters of Hendry's simulations, sstsimulator/sst-elements";
const SHORELINE: &str = "Shoreline SH-PLC, balanced splitter with connectors";
const TWO_FLEX: &str = "2Flex, balanced splitter without connectors";
const COHERENT: &str = "achoenix/optical_io, docs/ocs.md, which cites the module FTCE4517E1PXA of \
    Coherent";
const GTC: &str = "achoenix/optical_io, docs/cpo.md, on NVIDIA's talks at GTC, 2025";
const AXIOM: &str = "800G LPO vs DSP, axiomupgrades.com";
const MAPYOURTECH: &str = "text on co-packaged optics of Broadcom, mapyourtech.com";
const WEDOANY: &str = "wedoany 193917, which quotes Lambda";
const LAMBDA: &str = "table of Lambda on Quantum-X Q3450-LD, 2026";
const POWER_MODEL: &str = "power model in public code; its repository is not known";
const NOTE: &str = "note on texts about TPU v4; the texts were not kept";
const CALIENT: &str = "comment in public code; its repository is not known";
const GITEA: &str = "transceiver-db, blog-038; ico-optics.org";
const GPUS: &str = "achoenix/optical_io, docs/nvidia_system.md, or Lambda; the list of values does \
    not say which";

use SourceKind::{DataSheet, Paper, Secondary};

/// All components.
pub const COMPONENTS: &[Component] = &[
    Component {
        name: "fibre_1310",
        summary: "Single-mode fibre at 1310 nm",
        values: &[
            per_km("0.31", "maximum", DataSheet, CORNING),
            per_km("0.35", "maximum", DataSheet, CABLE),
            per_km("0.4", "typical", Secondary, FOA),
            PASSIVE,
        ],
    },
    Component {
        name: "fibre_1550",
        summary: "Single-mode fibre at 1550 nm",
        values: &[
            per_km("0.17", "maximum", DataSheet, CORNING),
            per_km("0.2", "maximum", DataSheet, CABLE),
            per_km("0.2", "typical", Secondary, FOA),
            PASSIVE,
        ],
    },
    Component {
        name: "connector",
        summary: "Mated pair of single-mode connectors",
        values: &[
            loss("0.3", "most connectors", Secondary, QUOTED),
            loss("0.5", "typical", Secondary, FOA),
            loss("0.75", "maximum of TIA-568", Secondary, QUOTED),
            PASSIVE,
        ],
    },
    Component {
        name: "splice",
        summary: "Splice of single-mode fibres",
        values: &[loss("0.15", "typical", Secondary, FOA), PASSIVE],
    },
    Component {
        name: "mux_4",
        summary: "Multiplexer or demultiplexer of 4 coarse wavelengths",
        values: &[
            loss("1.6", "maximum", DataSheet, REACH),
            loss("2.4", "maximum; typical 1.2 dB", DataSheet, CANARY),
            PASSIVE,
        ],
    },
    Component {
        name: "mux_8",
        summary: "Multiplexer or demultiplexer of 8 coarse wavelengths",
        values: &[
            loss("2.5", "maximum", DataSheet, REACH),
            loss("3.4", "maximum; typical 2.4 dB", DataSheet, CANARY),
            PASSIVE,
        ],
    },
    Component {
        name: "mux_16",
        summary: "Multiplexer or demultiplexer of 16 coarse wavelengths",
        values: &[loss("4.5", "maximum", DataSheet, REACH), PASSIVE],
    },
    Component {
        name: "mems_1xn",
        summary: "Switch of one port to N ports with micro-mirrors (MEMS)",
        values: &[loss("2", "maximum, at 1550 nm", Secondary, OPELINK)],
    },
    Component {
        name: "oxc_64",
        summary: "Optical cross-connect of 64 by 64 ports",
        values: &[loss("4", "maximum, at 1550 nm", Secondary, OPELINK)],
    },
    Component {
        name: "palomar",
        summary: "Palomar, the optical circuit switch of 136 by 136 ports of TPU v4",
        values: &[
            loss(
                "2",
                "upper limit",
                Secondary,
                "emergentmind.com on Urata et al., Mission Apollo, arXiv 2208.10041; the paper \
                 itself was not read",
            ),
            watts("108", "unconfirmed", NOTE),
        ],
    },
    Component {
        name: "wss",
        summary: "Wavelength-selective switch",
        values: &[
            loss("5 to 8", "of each port", Secondary, OPELINK),
            loss(
                "5.32",
                "median over the paths of a 4 by 4 switch of silicon micro-rings",
                Paper,
                "Compact wavelength selective crossbar switch with cascaded first order micro-ring \
                 resonators, Photonics 9(2), 60, 2022",
            ),
        ],
    },
    Component {
        name: "splitter_2",
        summary: "Splitter with 2 outputs (10 log10 2 = 3.01 dB)",
        values: &[loss("4.3", "maximum", DataSheet, SHORELINE), PASSIVE],
    },
    Component {
        name: "splitter_4",
        summary: "Splitter with 4 outputs (10 log10 4 = 6.02 dB)",
        values: &[loss("7.4", "maximum", DataSheet, SHORELINE), PASSIVE],
    },
    Component {
        name: "splitter_8",
        summary: "Splitter with 8 outputs (10 log10 8 = 9.03 dB)",
        values: &[
            loss("10.7", "maximum", DataSheet, SHORELINE),
            loss("10.3", "", DataSheet, TWO_FLEX),
            PASSIVE,
        ],
    },
    Component {
        name: "splitter_16",
        summary: "Splitter with 16 outputs (10 log10 16 = 12.04 dB)",
        values: &[
            loss("13.9", "maximum", DataSheet, SHORELINE),
            loss("13.7", "", DataSheet, TWO_FLEX),
            PASSIVE,
        ],
    },
    Component {
        name: "splitter_32",
        summary: "Splitter with 32 outputs (10 log10 32 = 15.05 dB)",
        values: &[loss("17.2", "maximum", DataSheet, SHORELINE), PASSIVE],
    },
    Component {
        name: "splitter_64",
        summary: "Splitter with 64 outputs (10 log10 64 = 18.06 dB)",
        values: &[loss("21.5", "maximum", DataSheet, SHORELINE), PASSIVE],
    },
    Component {
        name: "ring_through",
        summary: "Ring resonator of another wavelength, which light passes",
        values: &[
            loss("0.005", "parameters called realistic", Secondary, PHOENIX),
            loss("0", "parameters called aggressive", Secondary, PHOENIX),
        ],
    },
    Component {
        name: "ring_drop",
        summary: "Ring resonator that drops light to a receiver",
        values: &[
            loss("0.5", "both sets of parameters", Secondary, PHOENIX),
            loss(
                "0.5",
                "upper limit, third-order filter of silicon",
                Paper,
                "Design and demonstration of compact, wide bandwidth coupled-resonator filters on \
                 a silicon-on-insulator platform, Optics Express 17, 2247, 2009",
            ),
        ],
    },
    Component {
        name: "fibre",
        summary: "Fibre between two neighbours, in one direction",
        values: &[PASSIVE],
    },
    Component {
        name: "fibre_cable",
        summary: "Cable of fibres between two transceivers, or a transceiver and a switch",
        values: &[PASSIVE],
    },
    Component {
        name: "copper_cable",
        summary: "Copper cable without electronics; its ports belong to the parts at both ends",
        values: &[PASSIVE],
    },
    Component {
        name: "star_coupler",
        summary: "Passive star coupler, which divides light among all ranks",
        values: &[PASSIVE],
    },
    Component {
        name: "host_trace",
        summary: "Electrical path from a switch chip to an optical module",
        values: &[
            electrical("8 to 14", "pluggable module", GITEA),
            electrical("4", "co-packaged optics, about", GITEA),
        ],
    },
    Component {
        name: "transceiver",
        summary: "Pluggable optical module of any rate, with a digital signal processor (DSP)",
        values: &[
            per_bit("20", "800 Gb/s", COHERENT),
            per_bit("18.75", "1.6 Tb/s", GTC),
            per_bit("20.6", "800 Gb/s, InfiniBand", POWER_MODEL),
            per_bit("17.5 to 20", "800 Gb/s", AXIOM),
        ],
    },
    Component {
        name: "transceiver_800g",
        summary: "Pluggable optical module of 800 Gb/s with a DSP",
        values: &[
            watts("16", "DR8 in OSFP", COHERENT),
            watts("16.5", "InfiniBand", POWER_MODEL),
            watts("14 to 16", "", AXIOM),
            watts("15 to 16", "", MAPYOURTECH),
        ],
    },
    Component {
        name: "transceiver_1600g",
        summary: "Pluggable optical module of 1.6 Tb/s with a DSP",
        values: &[
            watts("30", "", GTC),
            watts("25", "in a switch with 72 of them", WEDOANY),
        ],
    },
    Component {
        name: "lpo",
        summary: "Pluggable optical module without a DSP (linear pluggable optics, LPO)",
        values: &[per_bit("10 to 11.3", "800 Gb/s", AXIOM)],
    },
    Component {
        name: "lpo_800g",
        summary: "Pluggable optical module of 800 Gb/s without a DSP",
        values: &[watts("8 to 9", "", AXIOM)],
    },
    Component {
        name: "cpo_800g",
        summary: "Co-packaged optics (CPO) of 800 Gb/s with Mach-Zehnder modulators",
        values: &[
            watts("6", "upper limit, Broadcom", MAPYOURTECH),
            per_bit("7.5", "upper limit, Broadcom", MAPYOURTECH),
        ],
    },
    Component {
        name: "wdm_transceiver",
        summary: "Transmitter and receiver of one wavelength with ring modulators, beside the chip \
            (CPO)",
        values: &[
            per_bit("5.625", "1.6 Tb/s, with laser", GTC),
            per_bit("4.375", "1.6 Tb/s, without laser", GTC),
            per_bit(
                "5",
                "TeraPHY 3, about, unconfirmed",
                "achoenix/optical_io, docs/ayar_cpo.md; gazettabyte 146250",
            ),
        ],
    },
    Component {
        name: "wdm_transceiver_1600g",
        summary: "Co-packaged optical engine of 1.6 Tb/s with ring modulators",
        values: &[
            watts("9", "with laser", GTC),
            watts("7", "without laser", GTC),
        ],
    },
    Component {
        name: "laser",
        summary: "Laser outside the package that feeds ring modulators with constant light",
        values: &[per_bit(
            "1.25",
            "estimate: 2 W for 1.6 Tb/s, with 12 mW per channel, 5 dB for two couplings, 15 % \
             from plug to light at 55 C, 60 % of the driver",
            "achoenix/optical_io, docs/cpo.md",
        )],
    },
    Component {
        name: "wdm_transmitter",
        summary: "Transmitter of one wavelength without a receiver",
        values: &[],
    },
    Component {
        name: "wdm_receiver",
        summary: "Receiver of one wavelength without a transmitter",
        values: &[],
    },
    Component {
        name: "tunable_transceiver",
        summary: "Transmitter and receiver that are tuned to a wavelength",
        values: &[],
    },
    Component {
        name: "tunable_transmitter",
        summary: "Transmitter that is tuned to a wavelength, without a receiver",
        values: &[],
    },
    Component {
        name: "tunable_receiver",
        summary: "Receiver that is tuned to a wavelength, without a transmitter",
        values: &[],
    },
    Component {
        name: "amplifier",
        summary: "Amplifier of the light of one fibre",
        values: &[],
    },
    Component {
        name: "light_switch",
        summary: "Switch of light at a vertex of a graph of fibres, for all wavelengths",
        values: &[],
    },
    Component {
        name: "ocs",
        summary: "Optical circuit switch (OCS) with micro-mirrors",
        values: &[
            per_port("0.8", "Palomar, 108 W for 136 ports, unconfirmed", NOTE),
            per_port("0.14", "Calient S320, 45 W for 320 ports, typical", CALIENT),
        ],
    },
    Component {
        name: "calient_s320",
        summary: "Calient S320, an optical circuit switch of 320 ports",
        values: &[watts("45", "typical", CALIENT)],
    },
    Component {
        name: "packet_switch",
        summary: "Packet switch without its optical modules",
        values: &[per_bit(
            "10 to 500",
            "router, 1 to 50 W per 100 Gb/s",
            "Cisco, blog xrdocs/8000",
        )],
    },
    Component {
        name: "q3450_pluggable",
        summary: "Packet switch of 144 ports of 800 Gb/s with its pluggable optical modules",
        values: &[
            watts("7000", "the size of Quantum-X Q3450-LD", LAMBDA),
            stated(Property::Ports, "144", "", Secondary, LAMBDA),
            stated(Property::PortRate, "800", "", Secondary, LAMBDA),
            per_bit("60.8", "of switching", LAMBDA),
        ],
    },
    Component {
        name: "q3450_cpo",
        summary: "Quantum-X Q3450-LD, packet switch of 144 ports of 800 Gb/s with its co-packaged \
            optics",
        values: &[
            watts("3950", "", LAMBDA),
            stated(Property::Ports, "144", "", Secondary, LAMBDA),
            stated(Property::PortRate, "800", "", Secondary, LAMBDA),
            per_bit("34.3", "of switching", LAMBDA),
        ],
    },
    Component {
        name: "server_switch",
        summary: "Switch within a server, such as an NVSwitch",
        values: &[],
    },
    Component {
        name: "nic",
        summary: "Network interface of a rank, without its optical module",
        values: &[],
    },
    Component {
        name: "nvlink",
        summary: "Link of copper between GPUs of a rack",
        values: &[per_bit("1.3", "", POWER_MODEL)],
    },
    Component {
        name: "gpu",
        summary: "GPU or other accelerator of another model",
        values: &[],
    },
    Component {
        name: "gpu_h100",
        summary: "NVIDIA H100",
        values: &[watts("700", "", "aiconfigurator, systems/h100_sxm.yaml")],
    },
    Component {
        name: "gpu_b200",
        summary: "NVIDIA B200",
        values: &[watts("1000", "", GPUS)],
    },
    Component {
        name: "gpu_gb200",
        summary: "NVIDIA GPU of a GB200",
        values: &[watts("1200", "", GPUS)],
    },
    Component {
        name: "gpu_blackwell_ultra",
        summary: "NVIDIA Blackwell Ultra",
        values: &[watts("1400", "", GPUS)],
    },
    Component {
        name: "rack_nvl72",
        summary: "Rack of an NVL72, with everything in it",
        values: &[watts("120000", "about", GPUS)],
    },
];
