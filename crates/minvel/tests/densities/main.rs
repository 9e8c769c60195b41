//! Densities and fits: kernels, mixtures, few rows, integrals, goodness of fit, outliers.

#[path = "../support/mod.rs"]
mod support;

#[path = "../support/clumps.rs"]
mod clumps;

mod classes;
mod clusters;
mod components;
mod density;
mod density_fit;
mod experts;
mod few;
mod foreign;
mod goodness;
mod integrals;
mod kernel_sums;
mod local_kernels;
mod one_density;
mod outliers;
mod rows;
mod sketches;
