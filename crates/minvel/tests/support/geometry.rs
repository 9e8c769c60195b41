//! Functions on manifolds for the laws, and the list of manifolds they are tested on.

use minvel::Manifold;
use minvel_engine::{Expr, grad, jvp};

/// A smooth function of the point, that sees all of it.
pub fn wave<'g>(m: &dyn Manifold, x: Expr<'g>, pitch: f64) -> Expr<'g> {
    let features = m.features(x);
    let k = features.shape().features();
    let weights: Vec<f64> = (0..k).map(|i| (pitch * (i + 1) as f64).sin()).collect();
    (features.dot(x.graph().table(&weights, [k])) + pitch).sin()
}

/// The derivative of f when x moves along v.
pub fn along<'g>(f: Expr<'g>, x: Expr<'g>, v: Expr<'g>) -> Expr<'g> {
    jvp(&[f], &[(x, v)])[0]
}

/// The unit vector of an axis, in every row.
pub fn direction<'g>(like: Expr<'g>, axis: usize) -> Expr<'g> {
    let n = like.shape().features();
    let unit: Vec<f64> = (0..n).map(|i| f64::from(i == axis)).collect();
    like.graph().table(&unit, [n]).broadcast(&like.shape())
}

/// Δf − ⟨grad U, grad f⟩, in the chart of each point: the generator of the Langevin diffusion of e^{−U}.
pub fn generator<'g>(
    m: &dyn Manifold,
    x: Expr<'g>,
    f: impl Fn(Expr<'g>) -> Expr<'g>,
    energy: impl Fn(Expr<'g>) -> Expr<'g>,
) -> Expr<'g> {
    let choice = m.choose_chart(x);
    let y = m.to_chart(x, choice);
    let x = m.from_chart(y, choice);
    let metric = m.metric(y);
    let df = grad(f(x), &[y])[0];
    let second = |i: usize| metric.inverse.at(-1, i) * along(df, y, direction(y, i)).at(-1, i);
    let laplacian = (1..m.dim()).map(second).fold(second(0), |a, b| a + b) + metric.brownian.dot(df);
    laplacian - (metric.inverse * grad(energy(x), &[y])[0]).dot(df)
}

/// One test for each law and manifold of the library's list, and for some products: a law is a function of
/// `&dyn Manifold` in the module `law`.
#[macro_export]
macro_rules! for_every_manifold {
    ($($law:ident)*) => { $(minvel::every_manifold!(law_of_members! $law);)* };
}

/// The tests of a law, in a module of its name.
#[macro_export]
macro_rules! law_of_members {
    ($law:ident $([$name:ident $type:ident $(($n:ident))?: $($member:ident $text:literal),*])*) => {
        mod $law {
            law_of_members! { @tests $law
                $($($member $text,)*)*
                sphere_and_torus "product(sphere:2,torus:1)",
                hyperbolic_and_circle "product(hyperbolic:2,sphere:1)",
                nested "product(product(torus:2,sphere:1),so3,euclidean:2)",
            }
        }
    };
    (@tests $law:ident $($member:ident $text:literal,)*) => { $(
        #[test]
        fn $member() {
            super::law::$law(&*minvel::manifold::parse($text).unwrap());
        }
    )* };
}

/// One test for each law and manifold that has the required methods only.
#[macro_export]
macro_rules! for_bare_manifolds {
    ($($law:ident)*) => { mod of_bare_manifolds { $(
        #[test]
        fn $law() {
            for name in ["euclidean:2", "sphere:2", "sphere:3", "so3", "product(sphere:2,euclidean:1)"] {
                super::law::$law(&$crate::support::bare::Bare::of(name));
            }
            super::law::$law(&$crate::support::klein::KleinBottle);
        }
    )* } };
}
