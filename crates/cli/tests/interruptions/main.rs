//! Runs that are stopped, killed and resumed: apart from the other tests, since some of these measure time.

#[path = "../support/mod.rs"]
mod support;

mod fit_resume;
mod interrupt;
mod resume;
mod shard;
mod streams;
