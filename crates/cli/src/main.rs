//! The program `minvel`.

fn main() {}
