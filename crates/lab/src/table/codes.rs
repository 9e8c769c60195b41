//! Codes of auto-encoders as tables: one row a code, one column a coordinate of the latent manifold.
//!
//! **Conventions.** Coordinates are those of the manifold itself. Columns tell the space, so that codes of one manifold are not
//! taken for those of another: `z1`, … in Rⁿ, `unit1`, … of unit vectors, `axis1`, … of axes, `angle1`, … in radians, `ball1`, … in the Poincaré
//! ball, `qx`, `qy`, `qz`, `qw`; of products each with `_1`, `_2`, … for the factor. Numbers are taken as they are: a code that was
//! written and read again has the same bits. **Checked by** crates/cli/tests/program/codes.rs.

use super::columns::{Column, Table, TableOptions};
use super::coordinates::check_cells;
use minvel::Error;
use minvel::manifold::{Manifold, Space};
use std::path::Path;

/// Names of the columns.
pub fn code_columns(latent: &dyn Manifold) -> Vec<String> {
    let numbered = |stem: &str, n: usize| (1..=n).map(|k| format!("{stem}{k}")).collect::<Vec<_>>();
    let own = |space: Space| match space {
        Space::Euclidean(n) => numbered("z", n),
        Space::Sphere(n) => numbered("unit", n + 1),
        Space::Projective(n) => numbered("axis", n + 1),
        Space::Torus(n) => numbered("angle", n),
        Space::Hyperbolic(n) => numbered("ball", n),
        Space::So3 => ["qx", "qy", "qz", "qw"].map(String::from).to_vec(),
    };
    match latent.spaces().as_deref() {
        None => numbered("z", latent.ambient()),
        Some([space]) => own(*space),
        Some(spaces) => {
            let factor = |(k, space): (usize, &Space)| own(*space).into_iter().map(move |n| format!("{n}_{}", k + 1));
            spaces.iter().enumerate().flat_map(factor).collect()
        }
    }
}

/// Columns of codes `[count, m]`.
pub fn code_table(latent: &dyn Manifold, codes: &[f32]) -> Vec<Column> {
    let m = latent.ambient();
    let values = |k: usize| codes.iter().skip(k).step_by(m).map(|x| f64::from(*x)).collect();
    code_columns(latent).into_iter().enumerate().map(|(k, name)| Column::numbers(name, values(k))).collect()
}

/// Codes `[count, m]` of a file: by the names of its columns, or all columns in order where they have none. Errors name
/// the row, and what is wrong with the point.
pub fn read_codes(path: &Path, latent: &dyn Manifold) -> Result<Vec<f32>, Error> {
    let table = Table::read(path, &TableOptions::default())?;
    let chosen = chosen(&table, latent)?;
    check_cells(&table, &chosen, None)?;
    let mut codes = Vec::with_capacity(table.rows() * chosen.len());
    for row in 0..table.rows() {
        let point: Vec<f64> = chosen.iter().map(|&c| table.columns[c].values[row]).collect();
        // codes are f32: rounding may leave one just outside the ball
        let inside: Vec<f64> = point.iter().map(|x| x * (1.0 - f64::from(f32::EPSILON) * 8.0)).collect();
        latent.check(&inside).map_err(|why| Error::content(path, format!("{}: {why}", table.place(row))))?;
        codes.extend(point.iter().map(|x| *x as f32));
    }
    match codes.is_empty() {
        true => Err(Error::content(path, "holds no codes")),
        false => Ok(codes),
    }
}

/// Which columns are the code.
fn chosen(table: &Table, latent: &dyn Manifold) -> Result<Vec<usize>, Error> {
    let names = code_columns(latent);
    let (first, last) = (&names[0], &names[names.len() - 1]);
    let refuse = |what: String| {
        let has = table.describe_columns();
        let wanted = format!("codes on {latent} are the {} columns {first} … {last}", names.len());
        Err(Error::content(&table.path, format!("{what}: {wanted}, but the file has {has}")))
    };
    if table.columns.iter().all(|c| c.name.is_empty()) {
        return match table.columns.len() == names.len() {
            true => Ok((0..names.len()).collect()),
            false => refuse("these are codes of another model".into()),
        };
    }
    let find = |name: &str| table.columns.iter().position(|c| c.name.trim() == name);
    if let Some(missing) = names.iter().find(|name| find(name).is_none()) {
        return refuse(format!("there is no column `{missing}`"));
    }
    // codes of more dimensions have all the columns, and further ones
    let more = table.columns.iter().find(|c| is_code(c.name.trim()) && !names.iter().any(|n| n == c.name.trim()));
    if let Some(column) = more {
        return refuse(format!("the column `{}` belongs to codes of another model", column.name.trim()));
    }
    Ok(names.iter().filter_map(|name| find(name)).collect())
}

/// Whether a column is called as those of codes are.
fn is_code(name: &str) -> bool {
    let own = name.split_once('_').map_or(name, |(own, _)| own);
    let stem = own.trim_end_matches(|c: char| c.is_ascii_digit());
    let numbered = stem.len() < own.len() && ["z", "unit", "axis", "angle", "ball"].contains(&stem);
    numbered || ["qx", "qy", "qz", "qw"].contains(&own)
}
