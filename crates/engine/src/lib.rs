//! The engine of minvel: expressions with derivatives of any order, compiled to programs.
//!
//! 1. Build expressions in a [`Graph`]: they read like formulas ([`Expr`]).
//! 2. Differentiate: [`grad`], [`jvp`] and [`difference`] return expressions again, so they nest.
//! 3. [`Graph::compile`] them to a [`Program`], and run it as often as you like on a [`State`].
//!
//! Values have three kinds of axes: *replicas* (independent seeds, implicit in every value), *rows* (data points) and
//! *features*. Rows meet only where an operation says so ([`Expr::sum_rows`], [`Expr::collect`], …).
//!
//! ```
//! use minvel_engine::{grad, Clock, Graph, Options, State};
//! let g = Graph::new();
//! let x = g.input_rows("x", 3, [2]);
//! let energy = 0.5 * x.square().sum(-1);
//! let gradient = grad(energy, &[x])[0];
//! let mut program = g.compile::<f64>(&[gradient], &[], &Options::default());
//! program.run(&mut State::new(1), &[("x", &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])], Clock { seed: 0, step: 0 });
//! assert_eq!(program.output(0), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
//! ```

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
mod limits;
pub mod math;
mod op;
pub mod optim;
mod plan;
mod program;
pub mod random;
pub mod reference;
mod shape;
mod simplify;
mod state;

pub use cpu::Isa;
pub use derive::{difference, grad, jvp, replace, vjp};
pub use device::{Card, Device, DeviceError, DeviceErrorKind, Precision, cards};
pub use expr::{Expr, Operand, concat};
pub use graph::Graph;
pub use inputs::Clock;
pub use op::{Binary, Element, Op, Unary, Window};
pub use program::{Loaded, Options, Program};
pub use random::Draw;
pub use shape::Shape;
pub use state::State;
