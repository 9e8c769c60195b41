//! Files, pictures, figures, reports and experiments.

#[path = "../support/mod.rs"]
mod support;

mod bibliography;
mod citations;
mod data_archive;
mod data_binary;
mod data_blocks;
mod data_cifar;
mod data_files;
mod data_folder;
mod data_images;
mod data_points;
mod data_text;
mod data_torch;
mod data_units;
mod experiment;
mod experiment_cifar;
mod experiment_digits;
mod experiment_directions;
mod experiment_fit;
mod experiment_planar;
mod fid;
mod fit;
mod fit_use;
mod frechet;
mod inception;
mod lenet;
mod modules;
mod plot;
mod plot_density;
mod plot_fields;
mod plot_grid;
mod plot_maps;
mod report;
mod sharing;
mod stages;
mod statistics;
mod stream;
mod student;
