//! Python exceptions, one for each kind of error; all are subclasses of `OpticollError`.

use opticoll::algorithms::AlgorithmError as AlgorithmProblem;
use opticoll::collective::CollectiveError as CollectiveProblem;
use opticoll::fabric::{FabricError as FabricProblem, WrongFamily};
use opticoll::placement::{PlacementError, PlacementProblem};
use opticoll::plan::text::PlanTextError;
use opticoll::planner::PlannerError as PlannerProblem;
use opticoll::planner::rank_mapping::SiteError;
use opticoll::program::ProgramError as ProgramProblem;
use opticoll::simulate::SimulationError as SimulationProblem;
use opticoll::simulate::burst::BurstError;
use opticoll::spec::SpecError;
use opticoll::units::UnitError as UnitProblem;
use opticoll::workload::training::TrainingError as TrainingProblem;
use pyo3::create_exception;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Declares the exceptions, and a function `add_to` that adds them to the module.
macro_rules! exceptions {
    ($($name:ident($base:ident): $about:literal, $hint:expr;)*) => {
        $(create_exception!(opticoll._core, $name, $base, $about);)*

        /// Adds the exceptions to the module. A class has a hint if its messages name no remedy.
        pub(crate) fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
            $(
                let kind = module.py().get_type::<$name>();
                kind.setattr("hint", $hint as Option<&str>)?;
                module.add(stringify!($name), kind)?;
            )*
            Ok(())
        }
    };
}

exceptions! {
    OpticollError(PyValueError): "Base class of all errors of opticoll; the message is one \
        sentence that names the wrong value.", None;
    UnitError(OpticollError): "A size, a time or a rate is malformed, or has no unit.", None;
    FabricError(OpticollError): "A fabric cannot be built; the attribute `option` names the \
        wrong option, or is None.",
        Some("see `opticoll list fabrics`");
    CollectiveError(OpticollError): "A collective is unknown, or its ranks, root or pieces are \
        out of range.",
        Some("see `opticoll list collectives`");
    AlgorithmError(OpticollError): "An algorithm is unknown, has a wrong option, or does not \
        support the fabric.",
        Some("see `opticoll list algorithms`, and for the options of one `opticoll list NAME`");
    ScheduleError(OpticollError): "A transfer of a schedule is impossible, or its columns are too \
        large.", None;
    WavelengthError(OpticollError): "An assignment of wavelengths is unknown, or finds no \
        wavelength for a transfer.",
        Some("see `opticoll list wavelengths`");
    PlanFileError(OpticollError): "The text of a plan is malformed; the message names line and \
        column.", None;
    ProgramError(OpticollError): "A file with the programs of ranks is malformed, or a plan \
        cannot become a program; the message names the place.", None;
    SimulationError(OpticollError): "A plan cannot be simulated as requested; the attribute \
        `setting` names the wrong setting, or is None.",
        Some("see `opticoll list simulators`, `opticoll list policies` and `opticoll list \
            settings`");
    TrainingError(OpticollError): "A model, a device or a setting of a training run is unknown or \
        out of range.", None;
    MemoryLimitError(OpticollError): "A computation would need more memory than the limit.",
        Some("allow more by --memory-limit, such as 64GiB, or try fewer ranks");
    TraceError(OpticollError): "The trace of a program is malformed or cannot be replayed; the \
        message says where.", None;
}

/// Conversion of an error of the core to the matching Python exception.
pub(crate) trait IntoPyErr {
    /// Returns the exception, with the message of the error.
    fn into_py_err(self) -> PyErr;
}

/// Conversion of a result of the core into a result of Python, whose error is an exception.
pub(crate) trait OrRaise<T> {
    /// Returns the value, or the matching exception.
    fn or_raise(self) -> PyResult<T>;
}

impl<T, E: IntoPyErr> OrRaise<T> for Result<T, E> {
    fn or_raise(self) -> PyResult<T> {
        self.map_err(IntoPyErr::into_py_err)
    }
}

/// Maps error types of the core to one exception each.
macro_rules! raised_as {
    ($($problem:ident => $kind:ident;)*) => {$(
        impl IntoPyErr for $problem {
            fn into_py_err(self) -> PyErr {
                $kind::new_err(self.to_string())
            }
        }
    )*};
}

raised_as! {
    UnitProblem => UnitError;
    WrongFamily => FabricError;
    AlgorithmProblem => AlgorithmError;
    SpecError => AlgorithmError;
    PlanTextError => PlanFileError;
}

impl IntoPyErr for TrainingProblem {
    fn into_py_err(self) -> PyErr {
        let error = TrainingError::new_err(self.to_string());
        let hint = match &self {
            TrainingProblem::Unknown { what, .. }
            | TrainingProblem::Spec(SpecError::Unknown { what, .. }) => {
                format!("see `opticoll list {what}s`")
            }
            TrainingProblem::Spec(
                SpecError::UnknownOption { name, .. } | SpecError::Value { name, .. },
            ) => format!("see `opticoll list {name}`"),
            _ => return error,
        };
        with(error, "hint", hint)
    }
}

impl IntoPyErr for FabricProblem {
    fn into_py_err(self) -> PyErr {
        let option = match &self {
            FabricProblem::Spec(problem) => option_of(problem),
            FabricProblem::Missing { key, .. } => Some((*key).to_owned()),
            FabricProblem::Graph { .. } => Some("links".to_owned()),
            FabricProblem::Unknown { .. }
            | FabricProblem::TooLarge { .. }
            | FabricProblem::NoFabric { .. } => None,
        };
        let error = with(FabricError::new_err(self.to_string()), "option", option);
        match self {
            FabricProblem::Graph { link, .. } => with(error, "link", link),
            _ => error,
        }
    }
}

impl IntoPyErr for CollectiveProblem {
    fn into_py_err(self) -> PyErr {
        let error = CollectiveError::new_err(self.to_string());
        match self {
            CollectiveProblem::TooManyChunks { .. } => {
                with(error, "hint", "try fewer ranks, or fewer pieces of a block")
            }
            _ => error,
        }
    }
}

/// Conversion of a planner's error into the exception for its cause, such as the algorithm or the
/// settings of the simulator.
impl IntoPyErr for PlannerProblem {
    fn into_py_err(self) -> PyErr {
        match self {
            PlannerProblem::Simulation(problem) => problem.into_py_err(),
            PlannerProblem::Assignment(problem) => problem.into_py_err(),
            PlannerProblem::CutOff => {
                with(FabricError::new_err(self.to_string()), "option", "broken")
            }
            PlannerProblem::NothingFits { .. } => with(
                AlgorithmError::new_err(self.to_string()),
                "hint",
                "allow more by --algorithm auto:transfers=N, or try fewer ranks",
            ),
            other => AlgorithmError::new_err(other.to_string()),
        }
    }
}

impl IntoPyErr for PlacementError {
    fn into_py_err(self) -> PyErr {
        match self.problem {
            PlacementProblem::Family => FabricError::new_err(self.to_string()),
            PlacementProblem::Path => ScheduleError::new_err(self.to_string()),
            PlacementProblem::Unfit | PlacementProblem::Assignment => {
                WavelengthError::new_err(self.to_string())
            }
        }
    }
}

impl IntoPyErr for ProgramProblem {
    fn into_py_err(self) -> PyErr {
        match self {
            ProgramProblem::Collective(problem) => problem.into_py_err(),
            _ => ProgramError::new_err(self.to_string()),
        }
    }
}

impl IntoPyErr for SimulationProblem {
    fn into_py_err(self) -> PyErr {
        let setting = self.setting();
        with(
            SimulationError::new_err(self.to_string()),
            "setting",
            setting,
        )
    }
}

impl IntoPyErr for BurstError {
    fn into_py_err(self) -> PyErr {
        let setting = self.setting();
        match self {
            BurstError::Fabric(problem) => problem.into_py_err(),
            BurstError::Spec(problem) => FabricProblem::Spec(problem).into_py_err(),
            BurstError::Network { .. } => FabricError::new_err(self.to_string()),
            _ => with(
                SimulationError::new_err(self.to_string()),
                "setting",
                setting,
            ),
        }
    }
}

impl IntoPyErr for SiteError {
    fn into_py_err(self) -> PyErr {
        let error = SimulationError::new_err(self.to_string());
        with(error, "setting", "placement")
    }
}

/// Returns the option that is wrong, so that the message can name its line in a configuration file.
fn option_of(problem: &SpecError) -> Option<String> {
    match problem {
        SpecError::Syntax { .. } | SpecError::Unknown { .. } => None,
        SpecError::UnknownOption { key, .. } | SpecError::Value { key, .. } => Some(key.clone()),
    }
}

/// Adds an attribute to an exception.
fn with(error: PyErr, name: &str, value: impl for<'py> IntoPyObject<'py>) -> PyErr {
    Python::attach(|py| match error.value(py).setattr(name, value) {
        Ok(()) => error.clone_ref(py),
        Err(other) => other,
    })
}
