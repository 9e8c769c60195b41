//! The primitive operations. Everything else is a composition of these.

use crate::math::Real;
use crate::random::Draw;
use crate::shape::Shape;
use std::sync::Arc;

/// Elementwise functions of one argument.
#[allow(missing_docs)] // the names are the functions
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unary {
    Neg,
    Abs,
    Sign,
    Floor,
    Recip,
    Sqrt,
    Rsqrt,
    Exp,
    Expm1,
    Log,
    Log1p,
    Tanh,
    Sigmoid,
    Softplus,
    Sin,
    Cos,
}

/// Elementwise functions of two arguments; comparisons give 0 or 1.
#[allow(missing_docs)] // the names are the functions
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Binary {
    Add,
    Sub,
    Mul,
    Div,
    Min,
    Max,
    Atan2,
    Less,
    LessEqual,
    Equal,
}

impl Unary {
    /// The function itself.
    #[inline(always)]
    pub fn eval<T: Real>(self, x: T) -> T {
        match self {
            Unary::Neg => -x,
            Unary::Abs => x.abs(),
            Unary::Sign => x.sign(),
            Unary::Floor => x.floor(),
            Unary::Recip => x.recip(),
            Unary::Sqrt => x.sqrt(),
            Unary::Rsqrt => x.rsqrt(),
            Unary::Exp => x.vexp(),
            Unary::Expm1 => x.vexp_m1(),
            Unary::Log => x.vln(),
            Unary::Log1p => x.vln_1p(),
            Unary::Tanh => x.vtanh(),
            Unary::Sigmoid => x.sigmoid(),
            Unary::Softplus => x.softplus(),
            Unary::Sin => x.vsin(),
            Unary::Cos => x.vcos(),
        }
    }
}

impl Binary {
    /// The function itself.
    #[inline(always)]
    pub fn eval<T: Real>(self, x: T, y: T) -> T {
        let truth = |t: bool| if t { T::ONE } else { T::ZERO };
        match self {
            Binary::Add => x + y,
            Binary::Sub => x - y,
            Binary::Mul => x * y,
            Binary::Div => x / y,
            Binary::Min => x.vmin(y),
            Binary::Max => x.vmax(y),
            Binary::Atan2 => x.vatan2(y),
            Binary::Less => truth(x < y),
            Binary::LessEqual => truth(x <= y),
            Binary::Equal => truth(x == y),
        }
    }
}

/// Geometry of a sliding window over the first two axes of `[height, width, channels]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Window {
    /// Height and width of the window.
    pub kernel: [usize; 2],
    /// Step between windows.
    pub stride: usize,
    /// Zeros added before the first and after the last entry of each axis: rows, then columns.
    pub pad: [[usize; 2]; 2],
}

impl Window {
    /// A square window, with the same zeros before the first and after the last row and column.
    pub const fn square(kernel: usize, stride: usize, pad: [usize; 2]) -> Window {
        Window { kernel: [kernel, kernel], stride, pad: [pad, pad] }
    }

    /// Output height and width for an image of `[height, width]`.
    pub fn output(&self, image: [usize; 2]) -> [usize; 2] {
        [0, 1].map(|i| {
            let [before, after] = self.pad[i];
            let padded = image[i].saturating_add(before).saturating_add(after);
            assert!(
                (self.kernel[i]..=Shape::LIMIT).contains(&padded) && (1..=Shape::LIMIT).contains(&self.stride),
                "im2col: a window of {:?} with stride {} does not fit an image of {image:?} padded by {:?}",
                self.kernel,
                self.stride,
                self.pad
            );
            (padded - self.kernel[i]) / self.stride + 1
        })
    }

    /// The axes of all windows as a matrix: places, and entries of `channels` each.
    pub(crate) fn matrix(&self, [oh, ow]: [usize; 2], channels: usize) -> [usize; 2] {
        let [kh, kw] = self.kernel;
        [oh.saturating_mul(ow), kh.saturating_mul(kw).saturating_mul(channels)]
    }
}

/// What the values of an input are given as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Element {
    /// Numbers in the program's precision.
    Real,
    /// Bytes p, for the numbers p/255: intensities of images.
    Byte,
}

/// A node of the graph: what is done to the arguments. Arguments of elementwise operations have the node's own shape.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// A named value given at every run.
    Input(Arc<str>, Element),
    /// A named value kept between runs.
    Variable(Arc<str>),
    /// The same number everywhere (bits of an f64).
    Fill(u64),
    /// A constant tensor (bits of f64s, row-major).
    Table(Arc<[u64]>),
    /// Counter-based random numbers of a stream.
    Random(Draw, u32),
    /// The number of the current step, as a scalar.
    Step,
    /// Elementwise function of one argument.
    Unary(Unary),
    /// Elementwise function of two arguments.
    Binary(Binary),
    /// `select(c, a, b)`: a where c ≠ 0, else b.
    Select,
    /// Repeats along axes of length 1, missing leading axes, and the row axis.
    Broadcast,
    /// The same entries in other feature axes.
    Reshape,
    /// Feature axes in the order given.
    Transpose(Vec<usize>),
    /// `len` entries of an axis (the node's shape tells how many) from `start` on.
    Slice {
        /// Axis cut.
        axis: usize,
        /// First entry kept.
        start: usize,
    },
    /// Zeros before and after along an axis: the adjoint of `Slice`.
    Pad {
        /// Axis extended.
        axis: usize,
        /// Zeros before the first entry.
        before: usize,
    },
    /// Arguments one after another along an axis.
    Concat {
        /// Axis joined.
        axis: usize,
    },
    /// Sum over one feature axis (removed).
    Sum {
        /// Axis summed.
        axis: usize,
    },
    /// Maximum over one feature axis (removed).
    Max {
        /// Axis reduced.
        axis: usize,
    },
    /// Sum over the rows.
    SumRows,
    /// Maximum over the rows.
    MaxRows,
    /// Matrix product of the last two axes, batched over those before (and over rows, if both have them).
    Matmul,
    /// `Σ_rows Σ_m a[m,k]·b[m,n]`: the product that also contracts the rows (gradients of weights).
    Contract,
    /// `rows × [d]` as one matrix `[rows, d]`.
    Collect,
    /// A matrix `[rows, d]` as `rows × [d]`.
    Distribute,
    /// Entries of a table's first axis chosen by index: `(table, index)`.
    Gather,
    /// `(index, values)`: values added up at their index: the adjoint of `Gather`.
    Scatter,
    /// Windows of `[h, w, c]` as rows `[oh·ow, kh·kw·c]`.
    Im2col(Window),
    /// The adjoint of `Im2col`.
    Col2im(Window),
    /// The k-th smallest entry of a whole value (no derivative).
    Kth(usize),
    /// The value, with derivative zero.
    StopGradient,
    /// The value itself, as a node that simplification does not look through.
    Pin,
}

impl Op {
    /// A number everywhere.
    pub fn fill(value: f64) -> Op {
        Op::Fill(value.to_bits())
    }

    /// True for operations that act entry by entry.
    pub fn is_elementwise(&self) -> bool {
        matches!(self, Op::Unary(_) | Op::Binary(_) | Op::Select)
    }

    /// The name used in messages.
    pub fn name(&self) -> String {
        let text = if let Op::Unary(u) = self {
            format!("{u:?}")
        } else if let Op::Binary(b) = self {
            format!("{b:?}")
        } else {
            format!("{self:?}")
        };
        text.split(['(', ' ', '{']).next().unwrap_or_default().to_lowercase()
    }
}
