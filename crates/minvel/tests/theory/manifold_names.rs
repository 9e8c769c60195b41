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
        ("spere:2", "expected euclidean, sphere, projective, torus, hyperbolic, so3 or product(…,…)"),
        ("sphere", "needs its dimension, as in sphere:2"),
        ("sphere:0", "a whole number of at least 1"),
        ("sphere:two", "not `two`"),
        ("so3:3", "so3 takes no dimension"),
        ("product", "product(sphere:2,torus:1)"),
        ("product(sphere:2,torus:1", "product(sphere:2,torus:1)"),
        ("product(sphere:2),torus:1)", "a closing parenthesis has no opening one"),
        ("product((sphere:2,torus:1)", "an opening parenthesis has no closing one"),
        ("product(sphere:2,)", "unknown manifold ``"),
        ("product(sphere:2,tours:1)", "unknown manifold `tours:1`"),
    ];
    for (name, part) in cases {
        let why = parse(name).expect_err(name);
        assert!(why.contains(part), "{name}: {why}");
    }
}

/// Names come from files of strangers too: a deep one overflowed the stack, and a large one asked for all memory.
#[test]
fn names_have_a_depth_and_a_size() {
    let nested = |depth: usize| format!("{}torus:1{}", "product(".repeat(depth), ")".repeat(depth));
    assert_eq!(parse(&nested(16)).unwrap().ambient(), 1);
    assert!(parse(&nested(17)).unwrap_err().contains("more than 16 deep"), "{}", nested(17));
    assert!(parse(&nested(200_000)).unwrap_err().contains("at most 8192 are allowed"));
    assert!(parse(&"(".repeat(8000)).unwrap_err().contains("unknown manifold"));
    for name in ["euclidean:99999999999", "sphere:65536", "torus:18446744073709551615"] {
        assert!(parse(name).unwrap_err().contains("the dimension must be at most 65535"), "{name}");
    }
    assert!(parse("torus:18446744073709551616").unwrap_err().contains("a whole number"));
    assert_eq!(parse("sphere:65535").unwrap().ambient(), 65536);
    let wide = format!("product({})", ["euclidean:60000"; 3].join(","));
    assert!(parse(&wide).unwrap_err().contains("180000 numbers: at most 65536 are allowed"));
    let many = |count: usize| format!("product({})", vec!["so3"; count].join(","));
    assert_eq!(parse(&many(256)).unwrap().dim(), 768);
    assert!(parse(&many(257)).unwrap_err().contains("at most 256 factors, not 257"));
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
