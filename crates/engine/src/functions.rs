//! Functions composed of primitives.

use crate::graph::Expr;
use crate::op::Window;
use crate::random::Draw;

impl<'g> Expr<'g> {
    /// 1 with this probability, else 0: uniforms of a stream compared with it.
    pub fn bernoulli(self, stream: u32) -> Expr<'g> {
        self.graph.draw_like(Draw::Uniform, stream, self).less(self)
    }

    /// x².
    pub fn square(self) -> Expr<'g> {
        self * self
    }

    /// xⁿ for a whole number n, by repeated squaring.
    pub fn powi(self, n: i32) -> Expr<'g> {
        match n {
            0 => self.like(1.0),
            1 => self,
            n if n < 0 => self.powi(-n).recip(),
            n if n % 2 == 0 => self.powi(n / 2).square(),
            n => self.powi(n - 1) * self,
        }
    }

    /// swish: x·sigmoid(x), also called silu.
    pub fn silu(self) -> Expr<'g> {
        self * self.sigmoid()
    }

    /// x for x > 0, else eˣ − 1.
    pub fn elu(self) -> Expr<'g> {
        let negative = self.min(0.0).expm1();
        self.like(0.0).less(self).select(self, negative)
    }

    /// max(x, 0).
    pub fn relu(self) -> Expr<'g> {
        self.max(0.0)
    }

    /// tan x.
    pub fn tan(self) -> Expr<'g> {
        self.sin() / self.cos()
    }

    /// arcsin x.
    pub fn asin(self) -> Expr<'g> {
        self.atan2(((1.0 - self) * (1.0 + self)).sqrt())
    }

    /// arccos x.
    pub fn acos(self) -> Expr<'g> {
        ((1.0 - self) * (1.0 + self)).sqrt().atan2(self)
    }

    /// arctan x.
    pub fn atan(self) -> Expr<'g> {
        self.atan2(1.0)
    }

    /// sinh x = (expm1 x − expm1 −x)/2: terms of one sign, so that it keeps its digits near 0 and far from it.
    pub fn sinh(self) -> Expr<'g> {
        0.5 * (self.expm1() - (-self).expm1())
    }

    /// cosh x = 1 + 2 sinh² x/2, whose differences do not cancel.
    pub fn cosh(self) -> Expr<'g> {
        1.0 + 2.0 * (0.5 * self).sinh().square()
    }

    /// arsinh x.
    pub fn asinh(self) -> Expr<'g> {
        // Not |x| and sign x, whose derivatives vanish at 0.
        let side = self.less(0.0).select(self.like(-1.0), self.like(1.0));
        let a = side * self;
        let root = (a.square() + 1.0).sqrt();
        side * (a + a.square() / (root + 1.0)).log1p()
    }

    /// artanh x.
    pub fn atanh(self) -> Expr<'g> {
        0.5 * (self.log1p() - (-self).log1p())
    }

    /// ln Σ eˣ over one feature axis, shifted by the maximum so that nothing overflows.
    pub fn logsumexp(self, axis: isize) -> Expr<'g> {
        let axis = self.shape().axis("logsumexp", axis) as isize;
        // Shifts that are not finite (all entries −∞, or some +∞) would turn the answer into NaN.
        let top = self.max_over(axis).max(-1e30).min(1e30).stop_gradient();
        (self - top.expand(axis)).exp().sum(axis).log() + top
    }

    /// ln Σ eˣ over the rows.
    pub fn logsumexp_rows(self) -> Expr<'g> {
        let top = self.max_rows().max(-1e30).min(1e30).stop_gradient();
        (self - top).exp().sum_rows().log() + top
    }

    /// Mean over one feature axis.
    pub fn mean(self, axis: isize) -> Expr<'g> {
        let shape = self.shape();
        self.sum(axis) * (1.0 / shape.dims[shape.axis("mean", axis)] as f64)
    }

    /// ⟨self, other⟩ over the last feature axis.
    pub fn dot(self, other: Expr<'g>) -> Expr<'g> {
        (self * other).sum(-1)
    }

    /// Squared distance of each row of `rows × [d]` to each of the points `[m, d]`: `rows × [m]`.
    ///
    /// Differences are squared, not expanded into |x|² + |y|² − 2x·y, which would cancel for close points.
    pub fn squared_distances(self, points: Expr<'g>) -> Expr<'g> {
        assert!(
            self.shape().rank() == 1 && points.shape().rank() == 2,
            "squared_distances: {} to points {}",
            self.shape(),
            points.shape()
        );
        (self.expand(0) - points).square().sum(-1)
    }

    /// Convolution of `[h, w, c]` with weights `[kh·kw·c, out]`: `[oh, ow, out]`.
    pub fn conv2d(self, weights: Expr<'g>, window: Window) -> Expr<'g> {
        let windows = self.im2col(window);
        let dims = self.shape().dims;
        let [oh, ow] = window.output([dims[0], dims[1]]);
        windows.matmul(weights).reshape([oh, ow, weights.shape().dims[1]])
    }

    /// Transposed convolution of `[oh, ow, in]` with weights `[in, kh·kw·c]`, to an image `[h, w, c]`: the adjoint of
    /// [`Expr::conv2d`] with the transpose of these weights.
    pub fn conv2d_transpose(self, weights: Expr<'g>, window: Window, image: [usize; 3]) -> Expr<'g> {
        let dims = self.shape().dims;
        assert!(dims.len() == 3, "conv2d_transpose: {} is not [height, width, in]", self.shape());
        self.reshape([dims[0] * dims[1], dims[2]]).matmul(weights).col2im(window, image)
    }
}
