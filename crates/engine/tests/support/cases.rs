//! The table of operations: how each is built, from which inputs, and what it should be by an independent formula.

use super::naive::{adjoint, at, build, convolve, flipped, total, windows};
use minvel_engine::{Expr, Window, concat, difference, grad};

/// Where inputs are drawn from, so that an operation is smooth there and stays so for the steps taken.
#[derive(Clone, Copy, PartialEq)]
pub enum Domain {
    /// (−1.5, 1.5), with an exact 0.
    Line,
    /// ±(0.2, 1.5): away from a kink at 0, which only large steps may cross.
    Kinked,
    /// ±(0.2, 1.5): away from a pole at 0.
    Nonzero,
    /// (0.4, 2).
    Positive,
    /// (−0.8, 0.8), with an exact 0.
    Unit,
    /// Whole numbers below n, which are never moved.
    Index(usize),
}
use Domain::{Index, Kinked, Line, Nonzero, Positive, Unit};

/// Which laws hold besides that of values: each includes those before it.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
pub enum Laws {
    /// None: the derivative is zero by definition, differences are subtractions.
    ValueOnly,
    /// Differences keep their digits, but derivatives are cut on purpose.
    NoDerivative,
    /// All.
    All,
}

/// Shape and domain of one input.
#[derive(Clone)]
pub struct Input {
    pub rows: Option<usize>,
    pub dims: Vec<usize>,
    pub domain: Domain,
}

type Build = dyn for<'a, 'g> Fn(&'a [Expr<'g>]) -> Expr<'g>;
type Oracle = dyn Fn(&[Vec<f64>]) -> Vec<f64>;

/// One operation on inputs of given shapes.
pub struct Case {
    pub name: String,
    pub inputs: Vec<Input>,
    pub build: Box<Build>,
    pub oracle: Option<Box<Oracle>>,
    pub laws: Laws,
}

/// Rows of most inputs: more than a vector register holds, and not a multiple of it.
pub const ROWS: usize = 19;
const R: usize = ROWS;

fn rows(dims: impl Into<Vec<usize>>) -> Input {
    Input { rows: Some(R), dims: dims.into(), domain: Line }
}

fn whole(dims: impl Into<Vec<usize>>) -> Input {
    Input { rows: None, dims: dims.into(), domain: Line }
}

impl Input {
    fn of(self, domain: Domain) -> Self {
        Input { domain, ..self }
    }
}

#[derive(Default)]
struct Table(Vec<Case>);

impl Table {
    fn case(
        &mut self,
        name: &str,
        inputs: impl Into<Vec<Input>>,
        build: impl for<'a, 'g> Fn(&'a [Expr<'g>]) -> Expr<'g> + 'static,
    ) -> &mut Case {
        let (name, inputs, build) = (name.to_string(), inputs.into(), Box::new(build));
        self.0.push(Case { name, inputs, build, oracle: None, laws: Laws::All });
        self.0.last_mut().expect("just pushed")
    }

    /// A function of one argument, with rows and without.
    fn unary(&mut self, &(name, domain, f, std): &Function) {
        for (kind, input) in [("rows", rows([3])), ("whole", whole([2, 5]))] {
            let name = format!("{name} of {kind}");
            self.case(&name, [input.of(domain)], move |x| f(x[0]))
                .equals(move |v| v[0].iter().map(|&x| std(x)).collect());
        }
    }

    /// A function of two arguments: of equal shapes, and of a row value with a smaller one in either place.
    fn binary(
        &mut self,
        name: &str,
        domain: Domain,
        f: for<'g> fn(Expr<'g>, Expr<'g>) -> Expr<'g>,
        std: fn(f64, f64) -> f64,
    ) {
        let (full, one, small) = (rows([2, 3]).of(domain), rows([2, 1]).of(domain), whole([3]).of(domain));
        for (kind, a, b) in [
            ("rows and rows", full.clone(), full.clone()),
            ("rows and whole", full.clone(), small.clone()),
            ("whole and rows", small.clone(), full.clone()),
            ("a column and rows", one, full),
            ("whole and whole", small.clone(), small),
        ] {
            self.case(&format!("{name} of {kind}"), [a, b], move |x| f(x[0], x[1])).equals(move |v| {
                let pick = |x: &[f64], [r, i, j]: [usize; 3]| match x.len() {
                    3 => x[j],
                    n if n == R * 2 => x[r * 2 + i],
                    _ => at(x, [R, 2, 3], [r, i, j]),
                };
                let dims = if v[0].len().max(v[1].len()) == 3 { [1, 1, 3] } else { [R, 2, 3] };
                build(dims, |i| std(pick(&v[0], i), pick(&v[1], i)))
            });
        }
    }
}

impl Case {
    fn equals(&mut self, oracle: impl Fn(&[Vec<f64>]) -> Vec<f64> + 'static) -> &mut Self {
        self.oracle = Some(Box::new(oracle));
        self
    }
}

/// Every operation.
pub fn all() -> Vec<Case> {
    let mut table = Table::default();
    elementwise(&mut table);
    movements(&mut table);
    reductions(&mut table);
    products(&mut table);
    indices_and_windows(&mut table);
    table.case("the loss of minimum velocity learning", mvl_inputs(), |x| {
        let ([step, along], energy) = (mvl_step(x, 0.1), mvl_energy(x[0], &x[2..]));
        mvl_loss(difference(energy, &[(x[0], step)]), along, 0.1)
    });
    table.0
}

/// Name, domain, expression, and the same by std.
type Function = (&'static str, Domain, for<'g> fn(Expr<'g>) -> Expr<'g>, fn(f64) -> f64);

/// Functions of one argument.
pub const FUNCTIONS: &[Function] = &[
    ("neg", Line, |x| -x, |x| -x),
    ("abs", Kinked, |x| x.abs(), f64::abs),
    ("sign", Kinked, |x| x.sign(), f64::signum),
    ("floor", Kinked, |x| x.floor(), f64::floor),
    ("recip", Nonzero, |x| x.recip(), f64::recip),
    ("sqrt", Positive, |x| x.sqrt(), f64::sqrt),
    ("rsqrt", Positive, |x| x.rsqrt(), |x| 1.0 / x.sqrt()),
    ("exp", Line, |x| x.exp(), f64::exp),
    ("expm1", Line, |x| x.expm1(), f64::exp_m1),
    ("log", Positive, |x| x.log(), f64::ln),
    ("log1p", Unit, |x| x.log1p(), f64::ln_1p),
    ("tanh", Line, |x| x.tanh(), f64::tanh),
    ("sigmoid", Line, |x| x.sigmoid(), |x| 1.0 / (1.0 + (-x).exp())),
    ("softplus", Line, |x| x.softplus(), |x| x.exp().ln_1p()),
    ("sin", Line, |x| x.sin(), f64::sin),
    ("cos", Line, |x| x.cos(), f64::cos),
    ("square", Line, |x| x.square(), |x| x * x),
    ("powi 0", Line, |x| x.powi(0), |x| x.powi(0)),
    ("powi 3", Line, |x| x.powi(3), |x| x.powi(3)),
    ("powi 6", Line, |x| x.powi(6), |x| x.powi(6)),
    ("powi -2", Nonzero, |x| x.powi(-2), |x| x.powi(-2)),
    ("silu", Line, |x| x.silu(), |x| x / (1.0 + (-x).exp())),
    ("elu", Kinked, |x| x.elu(), |x| if x > 0.0 { x } else { x.exp_m1() }),
    ("relu", Kinked, |x| x.relu(), |x| x.max(0.0)),
    ("tan", Unit, |x| x.tan(), f64::tan),
    ("asin", Unit, |x| x.asin(), f64::asin),
    ("acos", Unit, |x| x.acos(), f64::acos),
    ("atan", Line, |x| x.atan(), f64::atan),
    ("sinh", Line, |x| x.sinh(), f64::sinh),
    ("cosh", Line, |x| x.cosh(), f64::cosh),
    ("asinh", Line, |x| x.asinh(), f64::asinh),
    ("atanh", Unit, |x| x.atanh(), |x| x.signum() * x.abs().atanh()),
];

fn truth(t: bool) -> f64 {
    f64::from(u8::from(t))
}

fn elementwise(t: &mut Table) {
    FUNCTIONS.iter().for_each(|f| t.unary(f));
    t.unary(&("stop_gradient", Line, |x| x.sin() * x.stop_gradient(), |x| x.sin() * x));
    t.0.iter_mut().rev().take(2).for_each(|c| c.laws = Laws::NoDerivative);
    t.binary("add", Kinked, |a, b| a + b, |a, b| a + b);
    t.binary("sub", Kinked, |a, b| a - b, |a, b| a - b);
    t.binary("mul", Kinked, |a, b| a * b, |a, b| a * b);
    t.binary("div", Nonzero, |a, b| a / b, |a, b| a / b);
    t.binary("min", Kinked, |a, b| a.min(b), f64::min);
    t.binary("max", Kinked, |a, b| a.max(b), f64::max);
    t.binary("atan2", Nonzero, |a, b| a.atan2(b), f64::atan2);
    t.binary("less", Kinked, |a, b| a.less(b), |a, b| truth(a < b));
    t.binary("less_equal", Kinked, |a, b| a.less_equal(b), |a, b| truth(a <= b));
    t.binary("equal", Kinked, |a, b| a.equal(a.max(b)), |a, b| truth(a >= b));
    t.binary("select", Kinked, |a, b| a.less(b).select(a.sin(), a * b), |a, b| if a < b { a.sin() } else { a * b });
}

fn movements(t: &mut Table) {
    t.case("broadcast of features", [rows([3, 1])], |x| x[0].broadcast(&minvel_engine::Shape::rowed(R, [2, 3, 4])))
        .equals(|v| build([R, 2, 3, 4], |[r, _, i, _]| at(&v[0], [R, 3], [r, i])));
    t.case("broadcast to rows", [whole([3])], |x| x[0].broadcast(&minvel_engine::Shape::rowed(R, [2, 3])))
        .equals(|v| build([R, 2, 3], |[_, _, i]| v[0][i]));
    t.case("reshape", [rows([2, 6])], |x| x[0].reshape([3, 4])).equals(|v| v[0].clone());
    t.case("expand", [whole([2, 3])], |x| x[0].expand(1) * x[0].expand(-1).reshape([2, 3, 1]))
        .equals(|v| build([2, 3, 3], |[i, j, k]| v[0][i * 3 + k] * v[0][i * 3 + j]));
    t.case("transpose of rows", [rows([2, 3, 4])], |x| x[0].transpose(&[2, 0, 1]))
        .equals(|v| build([R, 4, 2, 3], |[r, k, i, j]| at(&v[0], [R, 2, 3, 4], [r, i, j, k])));
    t.case("transpose of whole", [whole([2, 3, 4])], |x| x[0].transpose(&[1, 2, 0]))
        .equals(|v| build([3, 4, 2], |[j, k, i]| at(&v[0], [2, 3, 4], [i, j, k])));
    t.case("t", [rows([2, 3])], |x| x[0].t()).equals(|v| build([R, 3, 2], |[r, j, i]| at(&v[0], [R, 2, 3], [r, i, j])));
    t.case("slice of rows", [rows([2, 5])], |x| x[0].slice(-1, 1, 3))
        .equals(|v| build([R, 2, 3], |[r, i, j]| at(&v[0], [R, 2, 5], [r, i, j + 1])));
    t.case("slice of whole", [whole([5, 2])], |x| x[0].slice(0, 2, 3)).equals(|v| v[0][4..].to_vec());
    t.case("at", [rows([3, 4])], |x| x[0].at(0, 2)).equals(|v| build([R, 4], |[r, j]| at(&v[0], [R, 3, 4], [r, 2, j])));
    t.case("pad", [rows([2, 3])], |x| x[0].pad(1, 1, 2)).equals(|v| {
        build([R, 2, 6], |[r, i, j]| if (1..4).contains(&j) { at(&v[0], [R, 2, 3], [r, i, j - 1]) } else { 0.0 })
    });
    t.case("concat of rows with whole", [rows([2, 3]), whole([2, 1]), rows([2, 2])], |x| concat(x, -1)).equals(|v| {
        build([R, 2, 6], |[r, i, j]| match j {
            0..3 => at(&v[0], [R, 2, 3], [r, i, j]),
            3 => v[1][i],
            _ => at(&v[2], [R, 2, 2], [r, i, j - 4]),
        })
    });
    t.case("concat of whole", [whole([2, 3]), whole([1, 3])], |x| concat(x, 0)).equals(|v| v.concat());
    t.case("collect", [rows([2])], |x| x[0].collect()).equals(|v| v[0].clone());
    t.case("distribute", [whole([R, 2])], |x| x[0].distribute()).equals(|v| v[0].clone());
}

fn reductions(t: &mut Table) {
    let largest = |x: &mut dyn Iterator<Item = f64>| x.fold(f64::NEG_INFINITY, f64::max);
    let max3 = move |v: &[f64], [r, j]: [usize; 2]| largest(&mut (0..3).map(|i| at(v, [R, 3, 2], [r, i, j])));
    let max_r = move |v: &[f64], j: usize| largest(&mut (0..R).map(|r| v[r * 3 + j]));
    t.case("sum of rows", [rows([3, 2])], |x| x[0].sum(0))
        .equals(|v| build([R, 2], |[r, j]| total(3, |i| at(&v[0], [R, 3, 2], [r, i, j]))));
    t.case("sum of whole", [whole([3, 4])], |x| x[0].sum(-1))
        .equals(|v| build([3], |[i]| total(4, |j| v[0][i * 4 + j])));
    t.case("mean", [rows([5])], |x| x[0].mean(0)).equals(|v| build([R], |[r]| total(5, |j| v[0][r * 5 + j] / 5.0)));
    t.case("max_over of rows", [rows([3, 2])], |x| x[0].max_over(0)).equals(move |v| build([R, 2], |i| max3(&v[0], i)));
    t.case("max_over of whole", [whole([2, 5])], |x| x[0].max_over(1))
        .equals(move |v| build([2], |[i]| largest(&mut (0..5).map(|j| v[0][i * 5 + j]))));
    t.case("sum_all", [rows([2, 3])], |x| x[0].sum_all()).equals(|v| build([R], |[r]| total(6, |j| v[0][r * 6 + j])));
    t.case("sum_rows", [rows([3])], |x| x[0].sum_rows()).equals(|v| build([3], |[j]| total(R, |r| v[0][r * 3 + j])));
    t.case("mean_rows", [rows([3])], |x| x[0].mean_rows())
        .equals(|v| build([3], |[j]| total(R, |r| v[0][r * 3 + j] / R as f64)));
    t.case("max_rows", [rows([3])], |x| x[0].max_rows()).equals(move |v| build([3], |[j]| max_r(&v[0], j)));
    t.case("logsumexp of rows", [rows([3, 2])], |x| x[0].logsumexp(0))
        .equals(|v| build([R, 2], |[r, j]| total(3, |i| at(&v[0], [R, 3, 2], [r, i, j]).exp()).ln()));
    t.case("logsumexp of whole", [whole([6])], |x| x[0].logsumexp(-1))
        .equals(|v| vec![total(6, |i| v[0][i].exp()).ln()]);
    t.case("logsumexp_rows", [rows([3])], |x| x[0].logsumexp_rows())
        .equals(|v| build([3], |[j]| total(R, |r| v[0][r * 3 + j].exp()).ln()));
    t.case("dot", [rows([3]), rows([3])], |x| x[0].dot(x[1]))
        .equals(|v| build([R], |[r]| total(3, |j| v[0][r * 3 + j] * v[1][r * 3 + j])));
    t.case("squared_distances", [rows([2]), whole([5, 2])], |x| x[0].squared_distances(x[1]))
        .equals(|v| build([R, 5], |[r, m]| total(2, |j| (v[0][r * 2 + j] - v[1][m * 2 + j]).powi(2))));
    t.case("squared_distances of all pairs", [rows([2])], |x| x[0].squared_distances(x[0].collect()))
        .equals(|v| build([R, R], |[r, m]| total(2, |j| (v[0][r * 2 + j] - v[0][m * 2 + j]).powi(2))));
    t.case("kth_smallest", [rows([2])], |x| x[0].collect().kth_smallest(5))
        .equals(|v| {
            let mut sorted = v[0].clone();
            sorted.sort_by(f64::total_cmp);
            vec![sorted[5]]
        })
        .laws = Laws::ValueOnly;
}

/// A product of `[b, m, k]` and `[b, k, n]`, each with rows or without.
fn products(t: &mut Table) {
    for (batch, m, k, n) in [(1, 2, 3, 4), (2, 3, 2, 2), (1, 7, 33, 21)] {
        for (left, right) in [(true, false), (false, true), (true, true), (false, false)] {
            let dims = |p: usize, q: usize| if batch == 1 { vec![p, q] } else { vec![batch, p, q] };
            let side = |r: bool, d: Vec<usize>| if r { rows(d) } else { whole(d) };
            let kind = |r: bool| if r { "rows" } else { "whole" };
            let name = format!("matmul of {} by {}, {batch}×{m}×{k}×{n}", kind(left), kind(right));
            t.case(&name, [side(left, dims(m, k)), side(right, dims(k, n))], |x| x[0].matmul(x[1])).equals(move |v| {
                let of = |r: bool| if r { R } else { 1 };
                build([of(left || right), batch, m, n], |[r, b, i, j]| {
                    let (ra, rb) = (r.min(of(left) - 1), r.min(of(right) - 1));
                    let a = |p| at(&v[0], [of(left), batch, m, k], [ra, b, i, p]);
                    total(k, |p| a(p) * at(&v[1], [of(right), batch, k, n], [rb, b, p, j]))
                })
            });
        }
    }
    t.case("matmul of row vectors by whole", [rows([3]), whole([3, 2])], |x| x[0].matmul(x[1]))
        .equals(|v| build([R, 2], |[r, j]| total(3, |k| v[0][r * 3 + k] * v[1][k * 2 + j])));
    t.case("matmul of row vectors by rows", [rows([3]), rows([3, 2])], |x| x[0].matmul(x[1]))
        .equals(|v| build([R, 2], |[r, j]| total(3, |k| v[0][r * 3 + k] * v[1][(r * 3 + k) * 2 + j])));
    for batch in [1, 2] {
        let dims = move |p: usize| if batch == 1 { vec![3, p] } else { vec![batch, 3, p] };
        t.case(&format!("contract, {batch} batches"), [rows(dims(2)), rows(dims(4))], |x| x[0].contract(x[1])).equals(
            move |v| {
                build([batch, 2, 4], |[b, i, j]| {
                    let row = |r: usize, m: usize| (r * batch + b) * 3 + m;
                    total(R, |r| total(3, |m| v[0][row(r, m) * 2 + i] * v[1][row(r, m) * 4 + j]))
                })
            },
        );
    }
}

fn indices_and_windows(t: &mut Table) {
    for (kind, index) in [("a row", rows([])), ("rows", rows([3])), ("whole", whole([4]))] {
        let count = index.rows.unwrap_or(1) * index.dims.iter().product::<usize>();
        let values = Input { dims: [&index.dims[..], &[2]].concat(), ..index.clone() };
        let pick =
            |table: &[f64], index: &[f64]| index.iter().flat_map(|&i| table[i as usize * 2..][..2].to_vec()).collect();
        let name = |op: &str| format!("{op} by {kind}");
        t.case(&name("gather"), [whole([5, 2]), index.clone().of(Index(5))], |x| x[0].gather(x[1]))
            .equals(move |v| pick(&v[0], &v[1]));
        t.case(&name("scatter"), [values, index.of(Index(5))], |x| x[0].scatter(x[1], 5)).equals(move |v| {
            assert_eq!(v[1].len(), count);
            adjoint(|table| pick(table, &v[1]), 10, &v[0])
        });
    }
    // A 5×4 image of two channels, padded or not, and windows of 3×2, of a row, and of a single entry.
    const IMAGE: [usize; 3] = [5, 4, 2];
    for (kernel, stride, pad) in [
        ([3, 2], 1, [[0, 0]; 2]),
        ([3, 2], 2, [[1, 1]; 2]),
        ([3, 2], 2, [[0, 1]; 2]),
        ([3, 2], 1, [[2, 0], [0, 1]]),
        ([1, 3], 1, [[0, 0], [1, 1]]),
        ([1, 1], 1, [[0, 0]; 2]),
        ([1, 1], 2, [[0, 0]; 2]),
    ] {
        let window = Window { kernel, stride, pad };
        let size = 2 * kernel[0] * kernel[1];
        let [oh, ow] = window.output([5, 4]);
        for (kind, side) in [("rows", rows as fn(Vec<usize>) -> Input), ("whole", whole)] {
            let of = if kind == "rows" { R } else { 1 };
            let name = |op: &str| format!("{op} of {kind}, window {kernel:?}, stride {stride}, padding {pad:?}");
            t.case(&name("im2col"), [side(IMAGE.to_vec())], move |x| x[0].im2col(window))
                .equals(move |v| windows(&v[0], of, IMAGE, window));
            t.case(&name("col2im"), [side(vec![oh * ow, size])], move |x| x[0].col2im(window, IMAGE))
                .equals(move |v| adjoint(|image| windows(image, of, IMAGE, window), of * 40, &v[0]));
            t.case(&name("conv2d"), [side(IMAGE.to_vec()), whole([size, 3])], move |x| x[0].conv2d(x[1], window))
                .equals(move |v| convolve(&v[0], &v[1], of, IMAGE, window));
            let transposed = [side(vec![oh, ow, 3]), whole([3, size])];
            t.case(&name("conv2d_transpose"), transposed, move |x| x[0].conv2d_transpose(x[1], window, IMAGE)).equals(
                move |v| adjoint(|image| convolve(image, &flipped(&v[1], 3), of, IMAGE, window), of * 40, &v[0]),
            );
        }
    }
}

/// Points, noise, and the weights of a network with two hidden layers.
pub fn mvl_inputs() -> [Input; 8] {
    let layer = |i, o| [whole([i, o]), whole([o])];
    let [[w1, b1], [w2, b2], [w3, b3]] = [layer(2, 5), layer(5, 4), layer(4, 2)];
    [rows([2]), rows([2]), w1, b1, w2, b2, w3, b3]
}

/// E(x) = ⟨x, ψ(x)⟩ with a tanh network ψ.
pub fn mvl_energy<'g>(x: Expr<'g>, theta: &[Expr<'g>]) -> Expr<'g> {
    let h = (x.matmul(theta[0]) + theta[1]).tanh();
    let h = (h.matmul(theta[2]) + theta[3]).tanh();
    (h.matmul(theta[4]) + theta[5]).dot(x)
}

/// The step x⁻ − x = u − (ε/2)∇E(x) with u = √(2ε)·z, and u·∇E(x): as in examples/mvl_step.rs.
pub fn mvl_step<'g>(x: &[Expr<'g>], eps: f64) -> [Expr<'g>; 2] {
    let slope = grad(mvl_energy(x[0], &x[2..]), &x[..1])[0];
    let u = (2.0 * eps).sqrt() * x[1];
    [u - 0.5 * eps * slope, u.dot(slope)]
}

/// L = −(2/ε)·[E(x⁻) − E(x) − u·∇E(x)], given the change of energy.
pub fn mvl_loss<'g>(change: Expr<'g>, along: Expr<'g>, eps: f64) -> Expr<'g> {
    (-2.0 / eps * (change - along)).mean_rows()
}
