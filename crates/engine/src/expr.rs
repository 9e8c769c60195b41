//! Expressions: nodes of a hash-consed graph, with operators and functions that read like formulas.
//!
//! ```
//! use minvel_engine::Graph;
//! let g = Graph::new();
//! let x = g.input_rows("x", 200, [2]);
//! let w = g.variable("w", [2, 100]);
//! let h = x.matmul(w).tanh();
//! assert_eq!(h.shape().to_string(), "200 rows × [100]");
//! ```

mod simplify;

pub(crate) use simplify::may_vanish;

use crate::graph::{Expr, Graph, Id, Node};
use crate::op::{Binary, Op, Unary, Window};
use crate::shape::Shape;
use std::ops;

impl Graph {
    /// A node, simplified, or the equal one that exists.
    pub(crate) fn push(&self, op: Op, args: &[Expr<'_>], shape: Shape) -> Expr<'_> {
        for a in args {
            assert!(std::ptr::eq(a.graph, self), "{}: an argument belongs to another graph", op.name());
        }
        for a in args.iter().skip(usize::from(op == Op::Gather)) {
            assert!(!a.is_bytes(), "{}: {a:?} is bytes, which only gather can read", op.name());
        }
        let args: Vec<Id> = args.iter().map(|a| a.id).collect();
        if let Some(id) = simplify::rewrite(self, &op, &args, &shape) {
            return self.at(id);
        }
        self.intern(Node { op, args, shape })
    }
}

impl<'g> Expr<'g> {
    /// A constant shaped like this.
    pub fn like(self, value: f64) -> Expr<'g> {
        self.graph.fill(value, self.shape())
    }

    pub(crate) fn unary(self, op: Unary) -> Expr<'g> {
        self.graph.push(Op::Unary(op), &[self], self.shape())
    }

    pub(crate) fn binary(self, op: Binary, other: Expr<'g>) -> Expr<'g> {
        let shape = Shape::broadcast(&Op::Binary(op).name(), &self.shape(), &other.shape());
        let args = [self.broadcast(&shape), other.broadcast(&shape)];
        self.graph.push(Op::Binary(op), &args, shape)
    }

    /// a where self ≠ 0, else b.
    pub fn select(self, a: Expr<'g>, b: Expr<'g>) -> Expr<'g> {
        let shape = Shape::broadcast("select", &a.shape(), &b.shape());
        let shape = Shape::broadcast("select", &self.shape(), &shape);
        let args = [self.broadcast(&shape), a.broadcast(&shape), b.broadcast(&shape)];
        self.graph.push(Op::Select, &args, shape)
    }

    /// Repeated to a larger shape.
    pub fn broadcast(self, shape: &Shape) -> Expr<'g> {
        let own = self.shape();
        if own == *shape {
            return self;
        }
        let fits = Shape::broadcast("broadcast", &own, shape);
        assert!(fits == *shape, "broadcast: {own} cannot be broadcast to {shape}");
        self.graph.push(Op::Broadcast, &[self], shape.clone())
    }

    /// The same entries with other feature axes.
    pub fn reshape(self, dims: impl Into<Vec<usize>>) -> Expr<'g> {
        let own = self.shape();
        let shape = own.with_dims(dims);
        assert!(shape.features() == own.features(), "reshape: {own} does not have as many entries as {shape}");
        self.graph.push(Op::Reshape, &[self], shape)
    }

    /// An axis of length 1 put in at `axis` (`-1`: after the last).
    pub fn expand(self, axis: isize) -> Expr<'g> {
        let mut dims = self.shape().dims;
        let at = if axis < 0 { axis + 1 + dims.len() as isize } else { axis };
        assert!((0..=dims.len() as isize).contains(&at), "expand: axis {axis} is out of range for {}", self.shape());
        dims.insert(at as usize, 1);
        self.reshape(dims)
    }

    /// Feature axes in another order.
    pub fn transpose(self, order: &[usize]) -> Expr<'g> {
        let shape = self.shape();
        let mut seen = order.to_vec();
        seen.sort_unstable();
        let all: Vec<usize> = (0..shape.rank()).collect();
        assert!(seen == all, "transpose: {order:?} is not an order of the axes of {shape}");
        let dims: Vec<usize> = order.iter().map(|&i| shape.dims[i]).collect();
        self.graph.push(Op::Transpose(order.to_vec()), &[self], shape.with_dims(dims))
    }

    /// The last two axes swapped.
    pub fn t(self) -> Expr<'g> {
        let rank = self.shape().rank();
        assert!(rank >= 2, "t: {} has no two axes to swap", self.shape());
        let mut order: Vec<usize> = (0..rank).collect();
        order.swap(rank - 1, rank - 2);
        self.transpose(&order)
    }

    /// Entries `start..start + len` of an axis.
    pub fn slice(self, axis: isize, start: usize, len: usize) -> Expr<'g> {
        let shape = self.shape();
        let axis = shape.axis("slice", axis);
        let end = start.saturating_add(len);
        assert!(len > 0 && end <= shape.dims[axis], "slice: {start}..{end} is empty or outside axis {axis} of {shape}");
        let mut dims = shape.dims.clone();
        dims[axis] = len;
        self.graph.push(Op::Slice { axis, start }, &[self], shape.with_dims(dims))
    }

    /// One entry of an axis, which is removed.
    pub fn at(self, axis: isize, index: usize) -> Expr<'g> {
        let axis = self.shape().axis("at", axis);
        let cut = self.slice(axis as isize, index, 1);
        let mut dims = cut.shape().dims;
        dims.remove(axis);
        cut.reshape(dims)
    }

    /// Zeros before and after along an axis.
    pub fn pad(self, axis: isize, before: usize, after: usize) -> Expr<'g> {
        let shape = self.shape();
        let axis = shape.axis("pad", axis);
        let mut dims = shape.dims.clone();
        // A sum that is no number is no length either: the shape is refused.
        dims[axis] = dims[axis].saturating_add(before).saturating_add(after);
        self.graph.push(Op::Pad { axis, before }, &[self], shape.with_dims(dims))
    }

    /// Sum over one feature axis, which is removed.
    pub fn sum(self, axis: isize) -> Expr<'g> {
        let shape = self.shape();
        let axis = shape.axis("sum", axis);
        let mut dims = shape.dims.clone();
        dims.remove(axis);
        self.graph.push(Op::Sum { axis }, &[self], shape.with_dims(dims))
    }

    /// Maximum over one feature axis, which is removed.
    pub fn max_over(self, axis: isize) -> Expr<'g> {
        let shape = self.shape();
        let axis = shape.axis("max_over", axis);
        let mut dims = shape.dims.clone();
        dims.remove(axis);
        self.graph.push(Op::Max { axis }, &[self], shape.with_dims(dims))
    }

    /// Sum over all feature axes; rows stay.
    pub fn sum_all(self) -> Expr<'g> {
        self.reshape([self.shape().features()]).sum(0)
    }

    fn rows(self, what: &str) -> usize {
        self.shape().rows.unwrap_or_else(|| panic!("{what}: {} has no row axis", self.shape()))
    }

    /// Sum over the rows.
    pub fn sum_rows(self) -> Expr<'g> {
        self.rows("sum_rows");
        self.graph.push(Op::SumRows, &[self], Shape::whole(self.shape().dims))
    }

    /// Mean over the rows.
    pub fn mean_rows(self) -> Expr<'g> {
        self.sum_rows() * (1.0 / self.rows("mean_rows") as f64)
    }

    /// Maximum over the rows.
    pub fn max_rows(self) -> Expr<'g> {
        self.rows("max_rows");
        self.graph.push(Op::MaxRows, &[self], Shape::whole(self.shape().dims))
    }

    /// `rows × [d…]` as a value `[rows, d…]` that every row can see.
    pub fn collect(self) -> Expr<'g> {
        let rows = self.rows("collect");
        let mut dims = self.shape().dims;
        dims.insert(0, rows);
        self.graph.push(Op::Collect, &[self], Shape::whole(dims))
    }

    /// A value `[rows, d…]` as one entry `[d…]` per row.
    pub fn distribute(self) -> Expr<'g> {
        let shape = self.shape();
        assert!(shape.rows.is_none() && shape.rank() > 0, "distribute: {shape} has no first axis to become the rows");
        self.graph.push(Op::Distribute, &[self], Shape::rowed(shape.dims[0], &shape.dims[1..]))
    }

    /// Entries of this table's first axis, chosen by `index` (values 0, 1, …; fractions are cut off).
    ///
    /// A program that meets an index outside the table fails, on every device alike: see [`crate::Program::try_run`].
    pub fn gather(self, index: Expr<'g>) -> Expr<'g> {
        let (table, at) = (self.shape(), index.shape());
        assert!(table.rows.is_none() && table.rank() > 0 && table.dims[0] > 0, "gather: the table has shape {table}");
        let dims: Vec<usize> = at.dims.iter().chain(&table.dims[1..]).copied().collect();
        self.graph.push(Op::Gather, &[self, index], at.with_dims(dims))
    }

    /// Values added up at their index into a table with `len` entries: the adjoint of [`Expr::gather`], which is as strict.
    pub fn scatter(self, index: Expr<'g>, len: usize) -> Expr<'g> {
        let (values, at) = (self.shape(), index.shape());
        assert!(
            values.rows == at.rows && values.dims.starts_with(&at.dims) && len > 0,
            "scatter: values {values} do not fit the indices {at} into a table of {len}"
        );
        let mut dims = vec![len];
        dims.extend(&values.dims[at.rank()..]);
        self.graph.push(Op::Scatter, &[index, self], Shape::whole(dims))
    }

    /// Matrix product of the last two axes, batched over the axes before. A row value with one axis is a row vector.
    pub fn matmul(self, other: Expr<'g>) -> Expr<'g> {
        if self.shape().rank() == 1 {
            let product = self.expand(0).matmul(other);
            let mut dims = product.shape().dims;
            dims.remove(dims.len() - 2);
            return product.reshape(dims);
        }
        let (a, b) = (self.shape(), other.shape());
        let fail = || -> ! { panic!("matmul: {a} times {b} is not defined") };
        if a.rank() < 2 || a.rank() != b.rank() || (a.rows.is_some() && b.rows.is_some() && a.rows != b.rows) {
            fail();
        }
        let r = a.rank();
        if a.dims[..r - 2] != b.dims[..r - 2] || a.dims[r - 1] != b.dims[r - 2] {
            fail();
        }
        if a.rows.is_some() && b.rows.is_some() {
            // A small product for each row: lanes are rows, so entrywise products are as fast as it gets.
            return (self.expand(-1) * other.expand(r as isize - 2)).sum(-2);
        }
        let mut dims = a.dims.clone();
        dims[r - 1] = b.dims[r - 1];
        self.graph.push(Op::Matmul, &[self, other], Shape { rows: a.rows.or(b.rows), dims })
    }

    /// `Σ_rows Σ_m self[m,k]·other[m,n]`, batched over the axes before.
    pub fn contract(self, other: Expr<'g>) -> Expr<'g> {
        let (a, b) = (self.shape(), other.shape());
        let r = a.rank();
        let good =
            a.rows.is_some() && a.rows == b.rows && r >= 2 && r == b.rank() && a.dims[..r - 1] == b.dims[..r - 1];
        assert!(good, "contract: {a} with {b} is not defined");
        let mut dims = a.dims[..r - 2].to_vec();
        dims.extend([a.dims[r - 1], b.dims[r - 1]]);
        self.graph.push(Op::Contract, &[self, other], Shape::whole(dims))
    }

    /// Windows of `[h, w, c]` as rows `[oh·ow, kh·kw·c]`: a convolution is then one product.
    pub fn im2col(self, window: Window) -> Expr<'g> {
        let shape = self.shape();
        assert!(shape.rank() == 3, "im2col: {shape} is not [height, width, channels]");
        let [oh, ow] = window.output([shape.dims[0], shape.dims[1]]);
        let dims = window.matrix([oh, ow], shape.dims[2]);
        if window == Window::square(1, 1, [0, 0]) {
            return self.reshape(dims); // each entry is its own window
        }
        self.graph.push(Op::Im2col(window), &[self], shape.with_dims(dims))
    }

    /// Windows added up into an image `[h, w, c]`: the adjoint of [`Expr::im2col`].
    pub fn col2im(self, window: Window, image: [usize; 3]) -> Expr<'g> {
        let shape = self.shape();
        let [oh, ow] = window.output([image[0], image[1]]);
        let dims = window.matrix([oh, ow], image[2]);
        assert!(shape.dims == dims, "col2im: {shape} are not the windows {dims:?} of an image {image:?}");
        self.graph.push(Op::Col2im(window), &[self], shape.with_dims(image))
    }

    /// The k-th smallest of all entries (k from 0), a scalar; its derivative is taken as zero.
    pub fn kth_smallest(self, k: usize) -> Expr<'g> {
        let shape = self.shape();
        assert!(shape.rows.is_none() && k < shape.len(), "kth_smallest: no entry {k} in {shape} (collect rows first)");
        self.graph.push(Op::Kth(k), &[self], Shape::whole([]))
    }

    /// The value as a node of its own, to differentiate by: simplification does not look through it.
    ///
    /// `grad(y, &[x])` needs y to be built from the node x. Scalings, reshapes, broadcasts, transposes and differences may
    /// be rewritten away (f(2z) becomes a function of z), so such an x must be pinned before y is built from it.
    pub fn pin(self) -> Expr<'g> {
        self.graph.push(Op::Pin, &[self], self.shape())
    }

    /// The value as a constant: its derivative is zero.
    pub fn stop_gradient(self) -> Expr<'g> {
        self.graph.push(Op::StopGradient, &[self], self.shape())
    }
}

/// Arguments one after another along an axis.
pub fn concat<'g>(parts: &[Expr<'g>], axis: isize) -> Expr<'g> {
    assert!(!parts.is_empty(), "concat: nothing to join");
    let rows = parts.iter().find_map(|p| p.shape().rows);
    let first = parts[0].shape();
    let axis = first.axis("concat", axis);
    let mut dims = first.dims.clone();
    dims[axis] = 0;
    let parts: Vec<Expr> = parts
        .iter()
        .map(|p| {
            let s = p.shape();
            let fits = s.rank() == dims.len() && (0..dims.len()).all(|i| i == axis || s.dims[i] == dims[i]);
            let fits = fits && (s.rows.is_none() || s.rows == rows);
            assert!(fits, "concat: {s} does not fit {first} along axis {axis}");
            dims[axis] = dims[axis].saturating_add(s.dims[axis]);
            p.broadcast(&Shape { rows, dims: s.dims })
        })
        .collect();
    parts[0].graph.push(Op::Concat { axis }, &parts, Shape { rows, dims })
}

macro_rules! unary_functions {
    ($($(#[$doc:meta])* $name:ident => $op:ident;)*) => { impl<'g> Expr<'g> { $(
        $(#[$doc])*
        pub fn $name(self) -> Expr<'g> { self.unary(Unary::$op) }
    )* } };
}

unary_functions! {
    /// |x|, with derivative sign(x).
    abs => Abs;
    /// −1, 0 or 1; derivative zero.
    sign => Sign;
    /// Largest integer not above x; derivative zero.
    floor => Floor;
    /// 1/x.
    recip => Recip;
    /// √x.
    sqrt => Sqrt;
    /// 1/√x.
    rsqrt => Rsqrt;
    /// eˣ.
    exp => Exp;
    /// eˣ − 1 without cancellation near 0.
    expm1 => Expm1;
    /// ln x.
    log => Log;
    /// ln(1 + x) without cancellation near 0.
    log1p => Log1p;
    /// tanh x.
    tanh => Tanh;
    /// 1/(1 + e⁻ˣ).
    sigmoid => Sigmoid;
    /// ln(1 + eˣ).
    softplus => Softplus;
    /// sin x.
    sin => Sin;
    /// cos x.
    cos => Cos;
}

macro_rules! binary_functions {
    ($($(#[$doc:meta])* $name:ident => $op:ident;)*) => { impl<'g> Expr<'g> { $(
        $(#[$doc])*
        pub fn $name(self, other: impl Operand<'g>) -> Expr<'g> {
            self.binary(Binary::$op, other.expr(self.graph))
        }
    )* } };
}

binary_functions! {
    /// The smaller of two.
    min => Min;
    /// The larger of two.
    max => Max;
    /// The angle of the point (other, self), in (−π, π].
    atan2 => Atan2;
    /// 1 where self < other, else 0.
    less => Less;
    /// 1 where self ≤ other, else 0.
    less_equal => LessEqual;
    /// 1 where self = other, else 0.
    equal => Equal;
}

/// What can stand beside an expression: another one, or a number.
pub trait Operand<'g> {
    /// As an expression of the graph.
    fn expr(self, graph: &'g Graph) -> Expr<'g>;
}

impl<'g> Operand<'g> for Expr<'g> {
    fn expr(self, _: &'g Graph) -> Expr<'g> {
        self
    }
}

impl<'g> Operand<'g> for f64 {
    fn expr(self, graph: &'g Graph) -> Expr<'g> {
        graph.scalar(self)
    }
}

macro_rules! operators {
    ($($trait:ident $method:ident $op:ident),*) => { $(
        impl<'g, T: Operand<'g>> ops::$trait<T> for Expr<'g> {
            type Output = Expr<'g>;
            fn $method(self, other: T) -> Expr<'g> {
                self.binary(Binary::$op, other.expr(self.graph))
            }
        }
        impl<'g> ops::$trait<Expr<'g>> for f64 {
            type Output = Expr<'g>;
            fn $method(self, other: Expr<'g>) -> Expr<'g> {
                other.graph.scalar(self).binary(Binary::$op, other)
            }
        }
    )* };
}
operators!(Add add Add, Sub sub Sub, Mul mul Mul, Div div Div);

impl<'g> ops::Neg for Expr<'g> {
    type Output = Expr<'g>;
    fn neg(self) -> Expr<'g> {
        self.unary(Unary::Neg)
    }
}
