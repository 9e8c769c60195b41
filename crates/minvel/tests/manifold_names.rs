//! Names of manifolds, and what is said about names and points that are wrong.

use minvel::Manifold;
use minvel::manifold::{Hyperbolic, So3, Sphere, Torus, parse};

#[test]
fn names_are_read_as_they_are_written() {
    let names = [
        "euclidean:2",
        "sphere:2",
        "torus:7",
        "hyperbolic:3",
        "so3",
        "projective:2",
        "product(sphere:2,torus:1)",
        "product(product(so3,euclidean:4),sphere:1)",
    ];
    for name in names {
        assert_eq!(parse(name).unwrap().to_string(), name);
    }
    assert_eq!(parse(" product( sphere:2 , torus:1 ) ").unwrap().to_string(), "product(sphere:2,torus:1)");
}

#[test]
fn wrong_names_are_explained() {
    let cases = [
        ("spere:2", "known are euclidean, sphere, projective, torus, hyperbolic, so3 and product(…,…)"),
        ("sphere", "needs its dimension, as in sphere:2"),
        ("sphere:0", "a whole number of at least 1"),
        ("sphere:two", "not `two`"),
        ("so3:3", "so3 has no dimension"),
        ("product", "product(sphere:2,torus:1)"),
        ("product(sphere:2,torus:1", "product(sphere:2,torus:1)"),
        ("product(sphere:2),torus:1)", "closes that was not opened"),
        ("product((sphere:2,torus:1)", "is not closed"),
        ("product(sphere:2,)", "`` is not a manifold"),
        ("product(sphere:2,tours:1)", "`tours:1` is not a manifold"),
    ];
    for (name, part) in cases {
        let why = parse(name).expect_err(name);
        assert!(why.contains(part), "{name}: {why}");
    }
}

#[test]
fn points_off_the_manifold_are_explained() {
    let product = parse("product(sphere:1,hyperbolic:2)").unwrap();
    let cases: [(&dyn Manifold, &[f64], &str); 8] = [
        (&Sphere(2), &[1.0, 0.0], "a point of sphere:2 has 3 numbers, not 2"),
        (&Sphere(2), &[1.0, f64::NAN, 0.0], "number 1 of the point is NaN"),
        (&Sphere(2), &[3.0, 4.0, 0.0], "length 5"),
        (&Torus(1), &[f64::INFINITY], "number 0 of the point is inf"),
        (&Hyperbolic(2), &[1.2, 0.0], "hyperboloid"),
        (&So3, &[1.0, 1.0, 1.0, 1.0], "length 2"),
        (&*product, &[1.0, 0.0, 0.6, 0.8], "factor 1, hyperbolic:2"),
        (&*product, &[1.0, 1.0, 0.6, 0.0], "factor 0, sphere:1"),
    ];
    for (m, point, part) in cases {
        let why = m.check(point).expect_err(part);
        assert!(why.contains(part), "{m}: {why}");
    }
    assert_eq!(Sphere(2).check(&[0.6, 0.0, -0.8]), Ok(()));
    assert_eq!(Torus(1).check(&[100.0]), Ok(()));
    assert_eq!(product.check(&[0.0, 1.0, 0.6, 0.7]), Ok(()));
}
