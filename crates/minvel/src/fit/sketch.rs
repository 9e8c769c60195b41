//! A summary of any number of rows, small, made in parts, with the same bytes whatever the parts were: fits where the data are.
//!
//! **Statement.** A row's role is a function of its point and the seed: of ten hashes one is a test row, one a validation row, the others are training
//! rows. Training rows are counted and summed up in nested [`cells`]; of validation and test rows those points are kept that a hash
//! [chooses](ChosenRows). Of few rows all are kept. All of this is whole numbers and least hashes, so that summaries of parts, merged in any order, are the
//! summary of all rows, bit for bit: the proofs are in [`cells`] and [`chosen`].
//! **Source.** zhang1996birch; broder1997resemblance. **Conventions.** Repeats of a point have one role. Parts are merged only if they have one
//! [`SketchPlan`]: manifold, seed, number of cells, units. **Error.** That of [`Chart`]'s lattice. **Checked by** tests/densities/sketches.rs.

mod bytes;
mod cells;
mod chart;
mod chosen;
mod parts;

pub use chosen::ChosenRows;

use super::door::check;
use super::split::Part;
use crate::manifold::{self, Space};
use crate::{Error, Manifold};
use bytes::{Reader, Writer};
use cells::Cells;
use chart::Chart;
use chosen::{hash, mixed};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Different points up to which all are kept.
const FEW: usize = 100_000;
/// Validation and test points that are kept.
const VALIDATION: usize = 100_000;
const TEST: usize = 20_000;
/// Rows that are sorted into cells at a time.
const BLOCK: usize = 1 << 17;
/// The beginning of a summary's bytes; the last character is the version.
const MAGIC: &[u8; 16] = b"minvel sketch  1";
/// Tell roles and ranks of one hash apart.
const ROLE: u64 = 0x726f_6c65;
const RANK: u64 = 0x7261_6e6b;

/// What summaries must have in common to be merged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SketchPlan {
    manifold: String,
    seed: u64,
    cells: usize,
    /// Different points up to which all are kept.
    few: usize,
    chart: Chart,
}

impl SketchPlan {
    /// The numbers of cells that there may be.
    pub const CELLS: std::ops::RangeInclusive<usize> = 100..=4_000_000;

    /// For rows like those of an example, which tells the units of Euclidean coordinates, in at most so many cells.
    pub fn new(manifold: &Arc<dyn Manifold>, seed: u64, cells: usize, example: &[f64]) -> Result<Self, Error> {
        let Some(spaces) = manifold.spaces() else {
            return Err(Error::config(format!(
                "{manifold} is no product of model spaces: its rows cannot be summarised; fit them whole"
            )));
        };
        if !Self::CELLS.contains(&cells) {
            let (least, most) = Self::CELLS.into_inner();
            return Err(Error::config(format!("{cells} cells: expected {least} to {most}")));
        }
        check(&**manifold, example)?;
        Ok(SketchPlan { manifold: manifold.to_string(), seed, cells, few: FEW, chart: Chart::of(&spaces, example) })
    }

    /// The same with another number of different points up to which all rows are kept; default: 100 000.
    pub fn keep(self, few: usize) -> Self {
        SketchPlan { few, ..self }
    }

    /// The seed of the roles.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// The test rows among rows, both row-major.
    pub fn test_rows(&self, points: &[f64]) -> Result<Vec<f64>, Error> {
        let spaces = self.spaces()?;
        let m: usize = spaces.iter().map(|space| space.ambient()).sum();
        let is_tested = |point: &&[f64]| {
            let mut point = point.to_vec();
            Chart::settle(&spaces, &mut point);
            role(hash(&point, self.seed)) == Part::Test
        };
        Ok(points.chunks(m).filter(is_tested).flatten().copied().collect())
    }

    fn spaces(&self) -> Result<Vec<Space>, Error> {
        let manifold = manifold::parse(&self.manifold).map_err(Error::config)?;
        manifold.spaces().ok_or_else(|| Error::config("a manifold without model spaces"))
    }
}

fn role(hash: u64) -> Part {
    match mixed(hash ^ ROLE) % 10 {
        0 => Part::Test,
        1 => Part::Validation,
        _ => Part::Train,
    }
}

/// A summary of rows.
#[derive(Clone, Debug)]
pub struct Sketch {
    plan: SketchPlan,
    spaces: Vec<Space>,
    manifold: Arc<dyn Manifold>,
    rows: u64,
    cells: Cells,
    validation: ChosenRows,
    test: ChosenRows,
    /// All rows; none where there are more different ones than are kept.
    all: Option<ChosenRows>,
}

impl Sketch {
    /// Of no rows.
    pub fn new(plan: &SketchPlan) -> Result<Self, Error> {
        let manifold = manifold::parse(&plan.manifold).map_err(Error::config)?;
        let (spaces, m) = (plan.spaces()?, manifold.ambient());
        let [validation, test] = [VALIDATION, TEST].map(|most| ChosenRows::new(most, m, plan.seed));
        // One more than is kept tells that there are more.
        let all = Some(ChosenRows::new(plan.few + 1, m, plan.seed));
        Ok(Sketch {
            plan: plan.clone(),
            spaces,
            manifold,
            rows: 0,
            cells: Cells::new(m, plan.cells),
            validation,
            test,
            all,
        })
    }

    /// Adds rows, given as points in the units of the data, row-major. An error names the first row that is none, counted from 0; nothing is
    /// added then.
    pub fn add(&mut self, points: &[f64]) -> Result<(), Error> {
        let m = self.manifold.ambient();
        check(&*self.manifold, points)?;
        let mut points = points.to_vec();
        points.chunks_mut(m).for_each(|point| Chart::settle(&self.spaces, point));
        let roles: Vec<(u64, Part)> = points
            .chunks(m)
            .map(|point| {
                let own = hash(point, self.plan.seed);
                (mixed(own ^ RANK), role(own))
            })
            .collect();
        let (mut places, mut place) = (vec![], vec![0; m]);
        for (row, (point, _)) in points.chunks(m).zip(&roles).enumerate().filter(|(_, (_, own))| own.1 == Part::Train) {
            self.plan.chart.place(&self.spaces, point, &mut place).map_err(|j| self.far(row, j, point[j]))?;
            places.extend_from_slice(&place);
        }
        let mut cells = self.cells.clone();
        for places in places.chunks(BLOCK * m) {
            cells.add(places).map_err(Error::config)?;
        }
        self.cells = cells;
        for (point, (rank, role)) in points.chunks(m).zip(roles) {
            match role {
                Part::Test => self.test.add_hashed(rank, point, 1),
                Part::Validation => self.validation.add_hashed(rank, point, 1),
                Part::Train => {}
            }
            if let Some(all) = &mut self.all {
                all.add_hashed(rank, point, 1);
            }
        }
        self.rows += (points.len() / m) as u64;
        self.forget_many();
        Ok(())
    }

    fn far(&self, row: usize, coordinate: usize, value: f64) -> Error {
        let Chart { centre, unit } = &self.plan.chart;
        Error::config(format!(
            "row {row} (counted from 0): coordinate {} is {value}, too far from the rows of the example, of which half lie within {} of {}: remove \
             such rows, or give an example that has some",
            coordinate + 1,
            unit[coordinate],
            centre[coordinate]
        ))
    }

    /// Adds the rows of another summary.
    pub fn merge(&mut self, other: &Sketch) -> Result<(), Error> {
        if self.plan != other.plan {
            let what =
                "summaries of different plans cannot be merged: manifold, seed, cells and example must be the same";
            return Err(Error::config(what));
        }
        self.cells.merge(&other.cells).map_err(Error::config)?;
        self.validation.merge(&other.validation);
        self.test.merge(&other.test);
        self.all = match (self.all.take(), &other.all) {
            (Some(mut own), Some(other)) => {
                own.merge(other);
                Some(own)
            }
            _ => None,
        };
        self.forget_many();
        self.rows += other.rows;
        Ok(())
    }

    fn forget_many(&mut self) {
        let few = self.plan.few;
        self.all = self.all.take().filter(|all| all.len() <= few);
    }

    /// The manifold.
    pub fn manifold(&self) -> &Arc<dyn Manifold> {
        &self.manifold
    }

    /// What it was made by.
    pub fn plan(&self) -> &SketchPlan {
        &self.plan
    }

    /// Rows that it is of.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// About how many different points there are among them: exactly where they are few, else to about 1 %.
    pub fn different(&self) -> u64 {
        let different = match &self.all {
            Some(all) => all.different(),
            None => 10.0 * self.validation.different(),
        };
        (different.round() as u64).min(self.rows)
    }

    /// Cells of the training rows.
    pub fn cells(&self) -> usize {
        self.cells.len()
    }

    /// As bytes, with a version and a checksum.
    pub fn to_bytes(&self) -> Vec<u8> {
        let plan = serde_json::to_vec(&self.plan).expect("a plan is plain data");
        let mut out = Writer(MAGIC.to_vec());
        out.number(plan.len() as u64);
        out.0.extend(plan);
        out.number(self.rows);
        self.cells.write(&mut out);
        self.validation.write(&mut out);
        self.test.write(&mut out);
        out.number(self.all.is_some().into());
        if let Some(all) = &self.all {
            all.write(&mut out);
        }
        out.sealed()
    }

    /// The inverse of [`Sketch::to_bytes`]; an error of bytes that are no summary, of another version, or damaged.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        let head = bytes.get(..MAGIC.len()).unwrap_or_default();
        if head != MAGIC {
            let what = match head.starts_with(&MAGIC[..13]) {
                true => "a summary of rows of another version of minvel: all workers need the same version",
                false => "these bytes are no summary of rows",
            };
            return Err(Error::config(what));
        }
        Self::read(bytes).ok_or_else(|| Error::config("a damaged summary of rows: make it again"))
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let mut from = Reader::unsealed(bytes)?;
        from.take(MAGIC.len())?;
        let length = usize::try_from(from.number()?).ok()?;
        let plan: SketchPlan = serde_json::from_slice(from.take(length)?).ok()?;
        let mut this = Sketch::new(&plan).ok().filter(|_| SketchPlan::CELLS.contains(&plan.cells))?;
        let m = this.manifold.ambient();
        this.rows = from.number()?;
        this.cells = Cells::read(&mut from, m, plan.cells)?;
        this.validation = ChosenRows::read(&mut from, VALIDATION, m, plan.seed)?;
        this.test = ChosenRows::read(&mut from, TEST, m, plan.seed)?;
        this.all = match from.number()? {
            0 => None,
            _ => Some(ChosenRows::read(&mut from, plan.few + 1, m, plan.seed)?),
        };
        (from.is_empty() && plan.chart.is_for(m)).then_some(this)
    }
}
