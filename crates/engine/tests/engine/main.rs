//! Values, derivatives, differences, random numbers and optimisers of the engine.

#[path = "../support/cases.rs"]
mod cases;
#[path = "../support/naive.rs"]
mod naive;
#[path = "../support/subject.rs"]
mod subject;
#[path = "../support/tiles.rs"]
mod tiles;

mod bytes;
mod conformance;
mod optim;
mod random;
mod replace;
mod ulp;
