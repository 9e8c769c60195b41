//! The engine of minvel: expressions with derivatives of any order, compiled to programs for CPU and GPU.
//!
//! 1. Build expressions in a [`Graph`]: they read like formulas ([`Expr`]).
//! 2. Differentiate: [`grad`], [`jvp`] and [`difference`] return expressions again, so they nest.
//! 3. [`Graph::compile`] them to a [`Program`], and run it as often as you like on a [`State`].
//!
//! Values have three kinds of axes: *replicas* (independent seeds, implicit in every value), *rows* (data points) and
//! *features*. Rows meet only where an operation says so ([`Expr::sum_rows`], [`Expr::collect`], …).
//!
//! # Example
//!
//! Linear regression: a loss, its minimisation by gradient descent, and the derivative of the prediction by the inputs.
//!
//! ```
//! use minvel_engine::optim::{Optimiser, UpdateRule};
//! use minvel_engine::{Device, Graph, Options, State, grad};
//!
//! let g = Graph::new();
//! let (x, y) = (g.input_rows("x", 4, [2]), g.input_rows("y", 4, []));
//! let w = g.variable("w", [2]);
//! let prediction = x.dot(w);
//! let loss = (prediction - y).square().mean_rows();
//! let slope = grad(prediction, &[x])[0]; // one gradient for each row, since rows do not meet
//! let descent = Optimiser::new(UpdateRule::Sgd { momentum: 0.0 }, 0.1).minimise(loss, &[w]);
//!
//! let options = Options { device: Device::Cpu, ..Options::default() };
//! let mut program = g.compile::<f64>(&[loss, slope], &descent.updates, &options);
//! let mut state = State::new(1); // one replica
//! state.set("w", &[0.0, 0.0], 2); // two values for each replica
//! descent.initialise(&mut state);
//! let inputs: [(&str, &[f64]); 2] =
//!     [("x", &[1.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0, -1.0]), ("y", &[2.0, -1.0, 1.0, 3.0])];
//! program.run_steps(&mut state, &inputs, 0, 0..200); // seed 0, steps 0 to 199
//!
//! assert!(program.output(0)[0] < 1e-12, "the data are exactly linear");
//! let learnt = state.get("w").expect("it was set above");
//! assert!((learnt[0] - 2.0).abs() < 1e-6 && (learnt[1] + 1.0).abs() < 1e-6);
//! assert_eq!(program.output(1)[..2], program.output(1)[6..], "the slope is w in every row");
//! ```
//!
//! # Where to look
//!
//! | to | see |
//! |---|---|
//! | write formulas | [`Expr`]; [`Op`] lists the primitives that all are made of |
//! | draw random numbers | [`Graph::random`], [`Draw`], [`random`]: the same bits on every device and for any number of threads |
//! | initialise and optimise | [`init`], [`optim`] |
//! | choose a device, replicas or threads | [`Options`], [`Device`] |
//! | run a CUDA kernel of one's own | [`Kernel`], [`Buffer`], [`Queue`] |
//! | handle what may go wrong | [`Graph::try_compile`], [`Program::try_run`], [`DeviceError`]; other forms panic |
//! | check a program | [`mod@reference`]: the same values from plain loops in f64 |
//!
//! Inside, a graph is simplified while it is built (`expr`), and derivatives are built from it (`derive`). What devices share
//! of planning is in `plan`; `cpu` and `cuda` each have `plan` (what a program is made of there), `lower` (from a graph to a plan) and `run`.

#![deny(clippy::wildcard_enum_match_arm)] // a new primitive must be thought about everywhere
#![deny(clippy::too_many_lines)] // see clippy.toml

mod cpu;
#[cfg(feature = "cuda")]
mod cuda;
mod derive;
mod device;
mod expr;
mod functions;
mod graph;
pub mod init;
mod inputs;
mod isa;
mod limits;
mod machine;
pub mod math;
mod op;
pub mod optim;
mod options;
mod plan;
mod program;
pub mod random;
pub mod reference;
mod shape;
mod state;

#[cfg(feature = "cuda")]
pub use cuda::{Argument, Buffer, Kernel, Queue};
pub use derive::{difference, grad, jvp, replace, vjp};
pub use device::{Card, Device, DeviceError, DeviceErrorKind, Precision};
pub use expr::{Operand, concat};
pub use graph::{Expr, Graph};
pub use inputs::Clock;
pub use isa::{Isa, Loop, widest};
pub use machine::cards;
pub use op::{Binary, Element, Op, Unary, Window};
pub use options::Options;
pub use program::{Loaded, Program};
pub use random::Draw;
pub use shape::Shape;
pub use state::State;
