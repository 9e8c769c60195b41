//! Values, derivatives, differences, random numbers, random programs, sizes and optimisers of the engine.

#[path = "../support/cases.rs"]
mod cases;
#[path = "../support/naive.rs"]
mod naive;
#[path = "../support/subject.rs"]
mod subject;
#[path = "../support/mod.rs"]
mod support;
#[path = "../support/tiles.rs"]
mod tiles;

mod bytes;
mod conformance;
mod optim;
mod programs;
mod random;
mod replace;
mod sizes;
mod ulp;
