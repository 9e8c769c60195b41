//! Axes: from numbers to places, and the numbers worth writing down.

use serde::{Deserialize, Serialize};

/// How numbers are spread along an axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scale {
    /// Equal differences are equal lengths.
    #[default]
    Linear,
    /// Equal ratios are equal lengths.
    Log,
}

/// An axis: what it measures, with its unit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Axis {
    /// Quantity and unit, as `step size ε`, `density (1/rad)`.
    pub label: String,
    /// How numbers are spread.
    pub scale: Scale,
    /// From where to where; chosen by the data if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<[f64; 2]>,
    /// Distance between numbered ticks of a linear axis; chosen by the room if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<f64>,
}

impl Axis {
    /// A linear axis whose range the data choose.
    pub fn linear(label: &str) -> Self {
        Axis { label: label.to_string(), scale: Scale::Linear, range: None, every: None }
    }

    /// A logarithmic axis whose range the data choose.
    pub fn log(label: &str) -> Self {
        Axis { label: label.to_string(), scale: Scale::Log, range: None, every: None }
    }

    /// The same with a range.
    pub fn over(self, from: f64, to: f64) -> Self {
        Axis { range: Some([from, to]), ..self }
    }

    /// The same with numbers at the multiples of a step.
    pub fn every(self, step: f64) -> Self {
        Axis { every: Some(step), ..self }
    }

    /// The axis on the page, from one place to another; `data` are the numbers it must show.
    pub(super) fn ruler(&self, data: impl Iterator<Item = f64>, places: (f64, f64)) -> Ruler {
        let usable = |x: &f64| x.is_finite() && (self.scale == Scale::Linear || *x > 0.0);
        let (low, high) =
            data.filter(usable).fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), x| (l.min(x), h.max(x)));
        let bare = Ruler { scale: self.scale, low: 0.0, high: 1.0, places, every: self.every };
        let [low, high] = self.range.unwrap_or([low, high]);
        let (a, b) = (bare.measure(low), bare.measure(high));
        let (a, b) = match (a.is_finite() && b.is_finite(), b > a) {
            (true, true) => (a, b),
            (true, false) => (a - 0.5, a + 0.5),
            (false, _) => (0.0, 1.0),
        };
        let margin = if self.range.is_some() { 0.0 } else { 0.05 * (b - a) };
        Ruler { low: a - margin, high: b + margin, ..bare }
    }
}

/// An axis on the page; `low` and `high` are logarithms (to base 10) on a logarithmic one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Ruler {
    scale: Scale,
    low: f64,
    high: f64,
    places: (f64, f64),
    every: Option<f64>,
}

/// A mark on an axis: its place, and its number if it has one.
pub(super) struct Tick {
    pub place: f64,
    pub label: Option<String>,
}

impl Ruler {
    fn measure(&self, x: f64) -> f64 {
        if self.scale == Scale::Log { x.log10() } else { x }
    }

    fn at(&self, measure: f64) -> f64 {
        let share = ((measure - self.low) / (self.high - self.low)).clamp(0.0, 1.0);
        self.places.0 + share * (self.places.1 - self.places.0)
    }

    /// The place of a number; outside the axis, the nearer end.
    pub fn place(&self, x: f64) -> f64 {
        let lost = self.scale == Scale::Log && x <= 0.0;
        self.at(if lost { f64::NEG_INFINITY } else { self.measure(x) })
    }

    /// Whether a number lies on the axis.
    pub fn shows(&self, x: f64) -> bool {
        let (m, slack) = (self.measure(x), 1e-9 * (self.high - self.low));
        m >= self.low - slack && m <= self.high + slack
    }

    /// The number at a share of the axis.
    pub fn value(&self, share: f64) -> f64 {
        let m = self.low + share * (self.high - self.low);
        if self.scale == Scale::Log { 10f64.powf(m) } else { m }
    }

    /// At most about `count` numbered ticks, and small ones between them.
    pub fn ticks(&self, count: usize) -> Vec<Tick> {
        match (self.scale, self.high - self.low) {
            (Scale::Log, span) if span >= 1.0 => self.decades(count),
            (Scale::Log, _) => self.octaves().unwrap_or_else(|| self.steps(count)),
            (Scale::Linear, _) => self.steps(count),
        }
    }

    /// Powers of two, where at least three of them that are whole numbers lie on the axis.
    fn octaves(&self) -> Option<Vec<Tick>> {
        let powers = (0..53).map(|k| (1u64 << k) as f64).filter(|x| self.shows(*x));
        let ticks: Vec<Tick> = powers.map(|x| Tick { place: self.place(x), label: Some(format!("{x}")) }).collect();
        (ticks.len() >= 3).then_some(ticks)
    }

    /// Powers of ten; between them, if there is room, the other digits, of which 2 and 5 have numbers where a single power
    /// would be no scale.
    fn decades(&self, count: usize) -> Vec<Tick> {
        let (first, last) = (self.low.ceil() as i32, self.high.floor() as i32);
        let alone = first >= last && count > 2;
        let every = ((last - first + 1) as usize).div_ceil(count.max(1)).max(1) as i32;
        let mut ticks = vec![];
        for decade in first - 1..=last {
            let numbered = decade.rem_euclid(every) == 0;
            if decade >= first {
                ticks.push(Tick { place: self.at(decade as f64), label: numbered.then(|| power(decade)) });
            }
            if every == 1 {
                let digits = (2..10).map(|d| (d, decade as f64 + f64::from(d).log10()));
                let shown = digits.filter(|(_, m)| *m >= self.low && *m <= self.high);
                let label = |d: i32| (alone && (d == 2 || d == 5)).then(|| multiple(d, decade));
                ticks.extend(shown.map(|(d, m)| Tick { place: self.at(m), label: label(d) }));
            }
        }
        ticks
    }

    /// Multiples of 1, 2 or 5 times a power of ten.
    fn steps(&self, count: usize) -> Vec<Tick> {
        let (low, high) = (self.value(0.0), self.value(1.0));
        let rough = (high - low) / count.max(1) as f64;
        let decade = 10f64.powf(rough.log10().floor());
        let round = || [1.0, 2.0, 5.0, 10.0].map(|f| f * decade).into_iter().find(|s| *s >= rough).unwrap_or(rough);
        let step = self.every.unwrap_or_else(round);
        let places = (-step.log10().floor()).max(0.0) as usize;
        let slack = 1e-9 * step;
        let (first, last) = (((low - slack) / step).ceil() as i64, ((high + slack) / step).floor() as i64);
        let label = |x: f64| if places > 5 || x.abs() >= 1e6 { format!("{x:e}") } else { format!("{x:.places$}") };
        let tick = |i: i64| {
            let x = i as f64 * step;
            let label = if i == 0 { "0".to_string() } else { label(x).replace('-', "−") };
            Tick { place: self.place(x), label: Some(label) }
        };
        (first..=last).map(tick).collect()
    }
}

/// d·10ⁿ.
fn multiple(digit: i32, exponent: i32) -> String {
    match exponent {
        0 | 1 => (digit * 10i32.pow(exponent as u32)).to_string(),
        _ => format!("{digit}·{}", power(exponent)),
    }
}

/// 10ⁿ with the exponent raised.
fn power(exponent: i32) -> String {
    let raised = |c: char| match c {
        '-' => '⁻',
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        digit => char::from_u32('⁰' as u32 + digit as u32 - '0' as u32).expect("a raised digit"),
    };
    match exponent {
        0 => "1".to_string(),
        1 => "10".to_string(),
        _ => format!("10{}", exponent.to_string().chars().map(raised).collect::<String>()),
    }
}
