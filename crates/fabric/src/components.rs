//! Optical components that light passes, with published values.
//!
//! A value is what one source states. If sources differ, the list has a value for each source. A
//! loss budget that names a component uses the greatest loss that is listed
//! ([`Component::greatest_loss`]), because a budget must hold for the worst part.

use opticoll_base::decibels::Decibels;

opticoll_base::named_enum! {
    /// Property of a component.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Property {
        /// Insertion loss; of a fibre, the loss per length.
        Loss = "loss",
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
    /// Name of the component in loss budgets.
    pub name: &'static str,
    /// Description in one sentence.
    pub summary: &'static str,
    /// Values, at least one.
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

const fn loss(
    value: &'static str,
    condition: &'static str,
    kind: SourceKind,
    source: &'static str,
) -> ComponentValue {
    ComponentValue {
        property: Property::Loss,
        value,
        unit: "dB",
        condition,
        kind,
        source,
    }
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
        ],
    },
    Component {
        name: "fibre_1550",
        summary: "Single-mode fibre at 1550 nm",
        values: &[
            per_km("0.17", "maximum", DataSheet, CORNING),
            per_km("0.2", "maximum", DataSheet, CABLE),
            per_km("0.2", "typical", Secondary, FOA),
        ],
    },
    Component {
        name: "connector",
        summary: "Mated pair of single-mode connectors",
        values: &[
            loss("0.3", "most connectors", Secondary, QUOTED),
            loss("0.5", "typical", Secondary, FOA),
            loss("0.75", "maximum of TIA-568", Secondary, QUOTED),
        ],
    },
    Component {
        name: "splice",
        summary: "Splice of single-mode fibres",
        values: &[loss("0.15", "typical", Secondary, FOA)],
    },
    Component {
        name: "mux_4",
        summary: "Multiplexer or demultiplexer of 4 coarse wavelengths",
        values: &[
            loss("1.6", "maximum", DataSheet, REACH),
            loss("2.4", "maximum; typical 1.2 dB", DataSheet, CANARY),
        ],
    },
    Component {
        name: "mux_8",
        summary: "Multiplexer or demultiplexer of 8 coarse wavelengths",
        values: &[
            loss("2.5", "maximum", DataSheet, REACH),
            loss("3.4", "maximum; typical 2.4 dB", DataSheet, CANARY),
        ],
    },
    Component {
        name: "mux_16",
        summary: "Multiplexer or demultiplexer of 16 coarse wavelengths",
        values: &[loss("4.5", "maximum", DataSheet, REACH)],
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
        values: &[loss(
            "2",
            "upper limit",
            Secondary,
            "emergentmind.com on Urata et al., Mission Apollo, arXiv 2208.10041; the paper itself \
             was not read",
        )],
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
        values: &[loss("4.3", "maximum", DataSheet, SHORELINE)],
    },
    Component {
        name: "splitter_4",
        summary: "Splitter with 4 outputs (10 log10 4 = 6.02 dB)",
        values: &[loss("7.4", "maximum", DataSheet, SHORELINE)],
    },
    Component {
        name: "splitter_8",
        summary: "Splitter with 8 outputs (10 log10 8 = 9.03 dB)",
        values: &[
            loss("10.7", "maximum", DataSheet, SHORELINE),
            loss("10.3", "", DataSheet, TWO_FLEX),
        ],
    },
    Component {
        name: "splitter_16",
        summary: "Splitter with 16 outputs (10 log10 16 = 12.04 dB)",
        values: &[
            loss("13.9", "maximum", DataSheet, SHORELINE),
            loss("13.7", "", DataSheet, TWO_FLEX),
        ],
    },
    Component {
        name: "splitter_32",
        summary: "Splitter with 32 outputs (10 log10 32 = 15.05 dB)",
        values: &[loss("17.2", "maximum", DataSheet, SHORELINE)],
    },
    Component {
        name: "splitter_64",
        summary: "Splitter with 64 outputs (10 log10 64 = 18.06 dB)",
        values: &[loss("21.5", "maximum", DataSheet, SHORELINE)],
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
];
