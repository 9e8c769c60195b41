//! Every coordinate against every other: data below the diagonal, samples of the model above, histograms on it.
//!
//! **Checked by** tests/lab/plot_fields.rs.

use super::axis::{Axis, Ruler};
use super::bars::{Bins, fill};
use super::colour;
use super::panel::TITLE;
use super::scene::{Anchor, Area, Dots, Paint, SMALL, Scene, Stroke, TEXT, shortened, text_width};
use super::series::{Key, Sample, legend, legend_height};
use serde::{Deserialize, Serialize};

/// Points in more than two coordinates.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Group {
    /// Their name in the legend.
    pub name: String,
    /// Whose they are, which decides their colour.
    pub method: String,
    /// The numbers of each coordinate.
    pub columns: Vec<Vec<f32>>,
}

/// A matrix of pair plots.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Matrix {
    /// Title; may be empty.
    pub title: String,
    /// The coordinates, with their ranges.
    pub axes: Vec<Axis>,
    /// The first is shown below the diagonal, the last above it.
    pub groups: Vec<Group>,
    /// Bins of the histograms.
    pub bins: usize,
}

const LEFT: f64 = 64.0;
const RIGHT: f64 = 40.0;
const BELOW: f64 = 46.0;
const GAP: f64 = 7.0;
const NUMBER: f64 = SMALL - 1.5;

impl Matrix {
    fn keys(&self) -> Vec<Key> {
        let last = self.groups.len().max(1) - 1;
        let place =
            |i: usize| if last == 0 { "" } else { ["below the diagonal", "above the diagonal"][(i == last) as usize] };
        let name = |i: usize, g: &Group| if last == 0 { g.name.clone() } else { format!("{} ({})", g.name, place(i)) };
        self.groups.iter().enumerate().map(|(i, g)| Key::new(Sample::Dots, &name(i, g), &g.method)).collect()
    }

    fn top(&self) -> f64 {
        if self.title.is_empty() { 10.0 } else { TITLE + 4.0 }
    }

    /// Side of a cell.
    fn cell(&self, width: f64) -> f64 {
        let k = self.axes.len().max(1) as f64;
        ((width - LEFT - RIGHT - GAP * (k - 1.0)) / k).min(230.0)
    }

    fn side(&self, width: f64) -> f64 {
        let k = self.axes.len().max(1) as f64;
        k * self.cell(width) + GAP * (k - 1.0)
    }

    pub(super) fn height(&self, width: f64) -> f64 {
        self.top() + self.side(width) + BELOW + legend_height(&self.keys(), width - 30.0) + 8.0
    }

    pub(super) fn draw(&self, scene: &mut Scene, area: Area) {
        let (cell, side, k) = (self.cell(area.width), self.side(area.width), self.axes.len());
        let left = area.x + LEFT + 0.5 * (area.width - LEFT - RIGHT - side);
        let corner = |i: usize, j: usize| {
            let step = cell + GAP;
            Area { x: left + j as f64 * step, y: area.y + self.top() + i as f64 * step, width: cell, height: cell }
        };
        for i in 0..k {
            for j in 0..k {
                let place = corner(i, j);
                let across = self.axes[j].ruler(self.column(j), (place.x, place.right()));
                let up = self.axes[i].ruler(self.column(i), (place.bottom(), place.y));
                match i.cmp(&j) {
                    std::cmp::Ordering::Equal => self.histograms(scene, place, i, across),
                    std::cmp::Ordering::Greater => dots(scene, place, self.groups.first(), (j, across), (i, up)),
                    std::cmp::Ordering::Less => dots(scene, place, self.groups.last(), (j, across), (i, up)),
                }
                scene.rectangle(place, None, Some(Stroke::new(Paint::Ink, 0.9)));
            }
        }
        for (i, axis) in self.axes.iter().enumerate() {
            let (first, lowest) = (corner(i, 0), corner(k - 1, i));
            let label = shortened(&axis.label, cell, |t| text_width(t, TEXT - 1.0));
            scene.upward((first.x - 44.0, first.centre().1), &label, TEXT - 1.0);
            scene.text((lowest.centre().0, lowest.bottom() + 35.0), &label, TEXT - 1.0, Anchor::Middle);
            let across = axis.ruler(self.column(i), (lowest.x, lowest.right()));
            // Numbers at the ends would touch those of the next cell.
            let ends = if k > 1 { (lowest.x - 0.5 * GAP, lowest.right() + 0.5 * GAP) } else { EVERYWHERE };
            for (x, label) in numbers(across, (cell / 42.0) as usize, ends, |label| text_width(label, NUMBER)) {
                let y = lowest.bottom();
                scene.line(vec![(x, y), (x, y + 4.0)], Stroke::new(Paint::Ink, 0.9));
                scene.text((x, y + 16.0), &label, NUMBER, Anchor::Middle);
            }
            // The first row begins with a histogram, whose height is not this coordinate: its numbers are at its end.
            let (edge, out, anchor) = match i {
                0 => (corner(0, k - 1).right(), 1.0, Anchor::Start),
                _ => (first.x, -1.0, Anchor::End),
            };
            let up = axis.ruler(self.column(i), (first.bottom(), first.y));
            let ticks = numbers(up, (cell / 34.0) as usize, (first.y, first.bottom()), |_| NUMBER);
            for (y, label) in ticks.into_iter().filter(|_| k > 1) {
                scene.line(vec![(edge, y), (edge + 4.0 * out, y)], Stroke::new(Paint::Ink, 0.9));
                scene.text((edge + 7.0 * out, y + 0.36 * NUMBER), &label, NUMBER, anchor);
            }
        }
        if !self.title.is_empty() {
            scene.title((left + 0.5 * side, area.y + 20.0), side + LEFT, &self.title);
        }
        let y = area.y + self.top() + side + BELOW;
        legend(scene, &self.keys(), Area { x: area.x + 20.0, y, width: area.width - 30.0, height: area.bottom() - y });
    }

    fn column(&self, j: usize) -> impl Iterator<Item = f64> {
        self.groups.iter().flat_map(move |g| g.columns.get(j).into_iter().flatten().map(|x| *x as f64))
    }

    /// The first group as bars, others as steps.
    fn histograms(&self, scene: &mut Scene, place: Area, j: usize, across: Ruler) {
        let range = [across.value(0.0), across.value(1.0)];
        let bins = |g: &Group| {
            let values: Vec<f64> = g.columns.get(j).into_iter().flatten().map(|x| *x as f64).collect();
            Bins::of(&g.name, &g.method, &values, self.bins.max(1), range)
        };
        let all: Vec<Bins> = self.groups.iter().map(bins).collect();
        let top = all.iter().flat_map(|b| &b.density).copied().fold(f64::MIN_POSITIVE, f64::max);
        let at = |x: f64, y: f64| (across.place(x), place.bottom() - 0.94 * place.height * y / top);
        for (i, bins) in all.iter().enumerate() {
            if i == 0 {
                fill(scene, bins, at, 0.6);
            } else {
                let colour = Paint::Solid(colour::of_method(&bins.method));
                scene.line(bins.outline(at), Stroke::new(colour, 1.5));
            }
        }
    }
}

const EVERYWHERE: (f64, f64) = (f64::NEG_INFINITY, f64::INFINITY);

/// Numbers along the side of a cell that lie wholly between two places: about so many, yet two, which a scale needs, where
/// they find room.
fn numbers(ruler: Ruler, count: usize, between: (f64, f64), size: impl Fn(&str) -> f64) -> Vec<(f64, String)> {
    let fits = |(place, label): &(f64, String)| {
        let half = 0.5 * size(label);
        place - half >= between.0 && place + half <= between.1
    };
    let shown = |count: usize| -> Vec<(f64, String)> {
        let ticks = ruler.ticks(count).into_iter().filter_map(|tick| Some((tick.place, tick.label?)));
        ticks.filter(fits).collect()
    };
    let apart = |ticks: &[(f64, String)]| {
        let room = |pair: &[(f64, String)]| (pair[1].0 - pair[0].0).abs() - 0.5 * (size(&pair[0].1) + size(&pair[1].1));
        ticks.len() > 1 && ticks.windows(2).all(|pair| room(pair) > 0.5 * NUMBER)
    };
    let count = count.max(1);
    (count..=4 * count).map(shown).find(|ticks| apart(ticks)).unwrap_or_else(|| shown(count))
}

/// One group's points in a cell.
fn dots(scene: &mut Scene, place: Area, group: Option<&Group>, (j, x): (usize, Ruler), (i, y): (usize, Ruler)) {
    let Some((group, (xs, ys))) = group.and_then(|g| Some((g, (g.columns.get(j)?, g.columns.get(i)?)))) else { return };
    let pairs = xs.iter().zip(ys).map(|(a, b)| (*a as f64, *b as f64));
    let at = pairs.filter(|(a, b)| x.shows(*a) && y.shows(*b)).map(|(a, b)| (x.place(a), y.place(b))).collect();
    let dots = Dots::new(at, colour::of_method(&group.method), place.width);
    // On the bare page they need not let colours through.
    scene.dots(Dots { opacity: dots.opacity.saturating_add(dots.opacity / 2), ..dots });
}
