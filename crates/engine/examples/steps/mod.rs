//! The steps that `bench/compare-gpu` times: the energy step, and the whole step of the implicit spherical auto-encoder.
//!
//! In mathematics they equal the peers' (PyTorch and JAX): the same products, the same draws, the same updates.

use minvel_engine::init::Init;
use minvel_engine::optim::Optimiser;
use minvel_engine::random::{Key, Stream};
use minvel_engine::{Draw, Expr, Graph, Options, Program, State, concat, grad};

const EPS: f64 = 1e-3;

/// A workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Minimum velocity learning of ⟨x, ψ(x, c)⟩: dimension, context, width, rows.
    Energy { d: usize, context: usize, h: usize, rows: usize },
    /// The implicit auto-encoder on the sphere: latent dimension, width, rows.
    Vae { nz: usize, h: usize, rows: usize },
}

impl Step {
    /// Operations in the products of one step, of one replica.
    pub fn flops(self) -> f64 {
        match self {
            Step::Energy { d, context, h, rows } => (2 * rows * (9 * h * h + 2 * context * h + 2 * 9 * d * h)) as f64,
            // Forward and gradient: encoder 3, energy's context 3, decoder 3 products with 784·h; 9 + 5 + 6 with h·h.
            Step::Vae { h, rows, .. } => (2 * rows * (9 * 784 * h + 20 * h * h)) as f64,
        }
    }
}

/// A step ready to be compiled.
pub struct Built {
    pub graph: &'static Graph,
    pub outputs: Vec<Expr<'static>>,
    pub updates: Vec<(Expr<'static>, Expr<'static>)>,
    pub state: State<f32>,
    pub inputs: Vec<(&'static str, Vec<f32>)>,
    pub bytes: Vec<(&'static str, Vec<u8>)>,
}

impl Built {
    pub fn new(step: Step, replicas: usize) -> Self {
        // One graph for each workload of a process that ends soon after.
        let graph: &'static Graph = Box::leak(Box::new(Graph::new()));
        match step {
            Step::Energy { d, context, h, rows } => energy(graph, replicas, d, context, h, rows),
            Step::Vae { nz, h, rows } => vae(graph, replicas, nz, h, rows),
        }
    }

    pub fn compile(&self, options: &Options) -> Program<f32> {
        self.graph.compile::<f32>(&self.outputs, &self.updates, options)
    }
}

/// Variables of a network, with their start values.
struct Layers(Vec<(String, [usize; 2])>);

impl Layers {
    fn variable(&mut self, g: &'static Graph, name: &str, dims: [usize; 2]) -> Expr<'static> {
        self.0.push((name.to_string(), dims));
        g.variable(name, dims)
    }

    fn initialise(&self, state: &mut State<f32>) {
        for (stream, (name, dims)) in self.0.iter().enumerate() {
            let law = if dims[0] == 1 { Init::ZEROS } else { Init::GlorotUniform };
            law.set(state, name, dims, 0, stream as u32);
        }
    }
}

fn normals(n: usize, stream: u32) -> Vec<f32> {
    Stream::new(Key::new(1, 0), stream).samples(Draw::Normal).take(n).map(|z| z as f32).collect()
}

fn flat(b: Expr<'static>) -> Expr<'static> {
    b.reshape([b.shape().dims[1]])
}

fn energy(g: &'static Graph, replicas: usize, d: usize, context: usize, h: usize, rows: usize) -> Built {
    let mut layers = Layers(vec![]);
    let shapes = [("w1", [d, h]), ("b1", [1, h]), ("w2", [h, h]), ("b2", [1, h]), ("w3", [h, d]), ("b3", [1, d])];
    let mut theta: Vec<Expr> = shapes.iter().map(|&(n, s)| layers.variable(g, n, s)).collect();
    let x = g.input_rows("x", rows, [d]);
    let mut first = flat(theta[1]);
    let mut inputs = vec![("x", normals(replicas * rows * d, 0))];
    if context > 0 {
        theta.push(layers.variable(g, "wc", [context, h]));
        first = first + g.input_rows("c", rows, [context]).matmul(theta[6]);
        inputs.push(("c", normals(replicas * rows * context, 1)));
    }
    let energy = |x: Expr<'static>| {
        let a = (x.matmul(theta[0]) + first).tanh();
        let b = (a.matmul(theta[2]) + flat(theta[3])).tanh();
        (b.matmul(theta[4]) + flat(theta[5])).dot(x)
    };
    let u = (2.0 * EPS).sqrt() * g.normal_like(0, x);
    let de = grad(energy(x), &[x])[0];
    let moved = x - 0.5 * EPS * de + u;
    let loss = (-2.0 / EPS * (energy(moved) - energy(x) - u.dot(de))).mean_rows();
    let updates = Optimiser::rmsprop_torch(1e-3).minimise(loss, &theta);
    let mut state = State::new(replicas);
    layers.initialise(&mut state);
    updates.initialise(&mut state);
    Built { graph: g, outputs: vec![loss], updates: updates.updates, state, inputs, bytes: vec![] }
}

/// Images in the data set, pixels, and noise inputs of the encoder.
const IMAGES: usize = 60_000;
const PIXELS: usize = 784;
const NOISE: usize = 8;

fn vae(g: &'static Graph, replicas: usize, nz: usize, h: usize, rows: usize) -> Built {
    let (d, root) = (nz + 1, ((nz + 1) as f64).sqrt());
    let mut layers = Layers(vec![]);
    let mut net = |name: &str, shapes: &[[usize; 2]]| -> Vec<Expr<'static>> {
        let names = shapes.iter().enumerate().map(|(i, &s)| layers.variable(g, &format!("{name}{i}"), s));
        names.collect()
    };
    let enc = net("enc", &[[PIXELS, h], [NOISE, h], [1, h], [h, h], [1, h], [h, d], [1, d]]);
    let dec = net("dec", &[[d, h], [1, h], [h, h], [1, h], [h, PIXELS], [1, PIXELS]]);
    let en = net("en", &[[d, h], [PIXELS, h], [1, h], [h, h], [1, h], [h, d], [1, d]]);
    let data = g.input_bytes("data", [IMAGES, PIXELS]);

    let p = data.gather(g.random_rows(Draw::Integer(IMAGES as u32), 0, rows, []));
    let x = p.bernoulli(1);
    let noise = g.random_rows(Draw::Normal, 2, rows, [NOISE]);
    let a = (x.matmul(enc[0]) + noise.matmul(enc[1]) + flat(enc[2])).tanh();
    let a = (a.matmul(enc[3]) + flat(enc[4])).tanh();
    let y = a.matmul(enc[5]) + flat(enc[6]);
    let z = y * y.square().sum(-1).rsqrt().expand(-1);

    // The energy, with the context's part of the first layer given.
    let energy = |en: &[Expr<'static>], z: Expr<'static>, first: Expr<'static>| {
        let z = root * z;
        let a = (z.matmul(en[0]) + first).tanh();
        let b = (a.matmul(en[3]) + flat(en[4])).tanh();
        (b.matmul(en[5]) + flat(en[6])).dot(z)
    };
    let still = z.stop_gradient();
    let (point, side) = chart(still, d);
    let point = point.stop_gradient().pin();
    let first = x.matmul(en[1]) + flat(en[2]);
    let e = energy(&en, unchart(point, side), first);
    let de = grad(e, &[point])[0];
    let s = 1.0 + point.square().sum(-1).expand(-1);
    let inverse = s.square() * 0.25;
    let drift = s * point - inverse * (0.5 * de + 2.0 * nz as f64 * point / s);
    let u = g.normal_like(3, point) * (2.0 * EPS * inverse).sqrt();
    let moved = point + EPS * drift + u;
    let velocity = (energy(&en, unchart(moved, side), first) - e - u.dot(de)) * (2.0 / EPS);
    let matching = (velocity + 1e-4 * e.square()).mean_rows();
    let learn = Optimiser::rmsprop_tf(1e-3);
    let learnt = learn.minimise(matching, &en);
    // Each parameter's new value follows that of its second moment.
    let new: Vec<Expr> = learnt.updates.iter().skip(1).step_by(2).map(|&(_, value)| value).collect();

    let first = x.matmul(new[1]) + flat(new[2]);
    let slope = grad(energy(&new, still.pin(), first), &[still.pin()])[0].stop_gradient();
    let a = ((root * z).matmul(dec[0]) + flat(dec[1])).tanh();
    let a = (a.matmul(dec[2]) + flat(dec[3])).tanh();
    let logits = a.matmul(dec[4]) + flat(dec[5]);
    let likelihood = (logits.softplus() - x * logits).sum(-1);
    let loss = (likelihood - slope.dot(z)).mean_rows();
    let both: Vec<Expr> = enc.iter().chain(&dec).copied().collect();
    let coded = learn.minimise(loss, &both);

    let mut state = State::new(replicas);
    layers.initialise(&mut state);
    learnt.initialise(&mut state);
    coded.initialise(&mut state);
    let images = (0..IMAGES * PIXELS).map(|i| ((i as u32).wrapping_mul(2654435761) >> 24) as u8).collect();
    let updates = learnt.updates.into_iter().chain(coded.updates).collect();
    Built { graph: g, outputs: vec![loss], updates, state, inputs: vec![], bytes: vec![("data", images)] }
}

/// Stereographic chart from the pole opposite to the side the point is on.
fn chart(y: Expr<'static>, d: usize) -> (Expr<'static>, Expr<'static>) {
    let last = y.slice(-1, d - 1, 1);
    let side = last.less(0.0).select(last.like(-1.0), last.like(1.0));
    let y = y * side;
    (y.slice(-1, 0, d - 1) / (1.0 + y.slice(-1, d - 1, 1)), side)
}

fn unchart(x: Expr<'static>, side: Expr<'static>) -> Expr<'static> {
    let s = x.square().sum(-1).expand(-1);
    let last = (1.0 - s) / (1.0 + s);
    side * concat(&[(1.0 + last) * x, last], -1)
}
