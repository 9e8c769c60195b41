//! Features of images: what a network makes of them before it judges.
//!
//! **Conventions.** Images are intensities in [0, 1], `[channels, height, width]`; what a network wants instead (shifts,
//! sizes, binary pixels) is its own business. A new network is a file here. **Checked by** tests/lenet.rs, tests/fid.rs.

mod lenet;

pub use lenet::{Lenet, Origin, Schooling};

use minvel_engine::{Clock, Expr, Graph, Options, State};

/// A network whose features are compared.
pub trait Features {
    /// What it is called.
    fn name(&self) -> &str;
    /// SHA-256 of its weights: distances of different networks do not compare.
    fn sha256(&self) -> &str;
    /// How many features an image has.
    fn count(&self) -> usize;
    /// Channels, height and width of its images.
    fn image(&self) -> [usize; 3];
    /// The features in a program, `rows × [channels·height·width]` → `rows × [count]`; the stream is for networks that draw.
    fn features<'g>(&self, images: Expr<'g>, stream: u32) -> Expr<'g>;
    /// Gives a state the weights, which the program has as variables.
    fn set(&self, state: &mut State<f32>);

    /// The features of images one after another, so many at a time; what is drawn depends on seed and stream.
    fn apply(&self, images: &[f32], at_once: usize, stream: u32, seed: u64, options: &Options) -> Vec<f32> {
        let d = self.image().iter().product::<usize>();
        assert!(images.len().is_multiple_of(d), "{}: {} numbers are not images of {d}", self.name(), images.len());
        let g = Graph::new();
        let features = self.features(g.input_rows("images", at_once, [d]), stream);
        let mut program = g.compile::<f32>(&[features], &[], &Options { replicas: 1, ..options.clone() });
        let mut state = State::new(1);
        self.set(&mut state);
        let mut out = Vec::with_capacity(images.len() / d * self.count());
        for (step, part) in images.chunks(at_once * d).enumerate() {
            // the last ones are filled up with black images
            let mut whole = part.to_vec();
            whole.resize(at_once * d, 0.0);
            program.run(&mut state, &[("images", &whole)], Clock { seed, step: step as u32 });
            out.extend(&program.output(0)[..part.len() / d * self.count()]);
        }
        out
    }
}
