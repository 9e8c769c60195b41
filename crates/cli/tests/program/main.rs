//! The program as its users run it: every command, its output, its files and its errors.

#[path = "../support/mod.rs"]
mod support;

mod codes;
mod data;
mod data_fetch;
mod devices;
mod fid;
mod fit;
mod fit_errors;
mod limits;
mod pictures;
mod reproduce;
mod rows;
mod train;
mod units;
