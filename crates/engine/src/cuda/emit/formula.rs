//! What a scope does, as CUDA C.

use super::Writer;
use super::arguments::Name;
use crate::cuda::trace::{Entry, Formula, Index, Item, Ix, Site, Test, Value};
use crate::op::{Binary, Unary};
use crate::random::Draw;
use std::fmt::Write;

/// A scope of a kernel: what its variables' names begin with, which keeps those of nested scopes apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    /// What is done with results.
    Results,
    /// What loads an operand of a product.
    Loader,
    /// What has the entries of a reduction.
    Addend,
}

impl Scope {
    fn prefix(self) -> &'static str {
        match self {
            Scope::Results => "",
            Scope::Loader => "l",
            Scope::Addend => "k",
        }
    }

    /// A variable that is no index.
    fn variable(self, number: usize) -> String {
        format!("{}v{number}", self.prefix())
    }

    fn index(self, index: Index) -> String {
        match index {
            Index::Row => "row".to_string(),
            Index::Axis(i) => format!("d{i}"),
            Index::Lead(i) => format!("q{i}"),
            Index::X => "x".to_string(),
            Index::K => "k".to_string(),
            Index::Bound(number) => format!("{}at{number}", self.prefix()),
        }
    }

    pub fn ix(self, ix: Ix) -> String {
        match ix {
            Ix::Number(n) => n.to_string(),
            Ix::Variable(index) => self.index(index),
            Ix::Quad(index, i) => format!("(4 * {} + {i})", self.index(index)),
        }
    }

    fn test(self, test: &Test) -> String {
        match test {
            Test::Known(truth) => truth.to_string(),
            Test::Bound(number) => self.variable(*number),
            Test::IsZero(ix) => format!("{} == 0", self.ix(*ix)),
        }
    }
}

impl Writer<'_> {
    /// All statements; stores stand behind the guard.
    pub(super) fn items(&mut self, items: &[Item], scope: Scope, guard: &str) -> String {
        let mut text = String::new();
        for item in items {
            let _ = match item {
                Item::Let(number, formula) => {
                    let (kind, name) = declared(formula, *number, scope);
                    writeln!(text, "const {kind} {name} = {};", self.formula(formula, scope))
                }
                Item::Store { to, stride, at, values } => {
                    let (to, at) = (self.arguments.name(*to).to_string(), scope.ix(*at));
                    let values: Vec<String> = values.iter().map(|&v| self.value(v, scope)).collect();
                    match &values[..] {
                        [value] => writeln!(text, "{guard}{to}[(i64)r * {stride} + {at}] = {value};"),
                        four => {
                            let four = four.join(", ");
                            writeln!(text, "{guard}*(Four*)({to} + (i64)r * {stride} + {at}) = Four{{{{{four}}}}};")
                        }
                    }
                }
                Item::StorePiece { part, splits, stride, at } => {
                    let place = format!("((i64)r * {splits} + split) * {stride} + {}", scope.ix(*at));
                    let to = self.arguments.name(Name::Pieces(*part));
                    writeln!(text, "{to}[{place}] = tile.entry(shared, e);")
                }
            };
        }
        text
    }

    pub(super) fn value(&mut self, value: Value, scope: Scope) -> String {
        match value {
            Value::Bound(number) => scope.variable(number),
            Value::OfFour(number, i) => format!("{}.x[{i}]", scope.variable(number)),
            Value::Own(None) => "own".to_string(),
            Value::Own(Some(i)) => format!("own{i}"),
            Value::Literal(bits) => self.arguments.literal(bits),
            Value::Constant(owner, bits) => self.arguments.name(Name::Constant(owner, bits)).to_string(),
        }
    }

    pub(super) fn entry(&mut self, entry: &Entry, scope: Scope) -> String {
        let value = self.value(entry.value, scope);
        entry.checked.map_or_else(|| format!("(int){value}"), |len| format!("entry_({value}, {len}, clock)"))
    }

    fn formula(&mut self, formula: &Formula, scope: Scope) -> String {
        let ix = |ix: &Ix| scope.ix(*ix);
        let keys = "step, keys[2 * r], keys[2 * r + 1]";
        match formula {
            Formula::Plus(a, b) => format!("{} + {}", ix(a), ix(b)),
            Formula::Times(a, n) => format!("{} * {n}", ix(a)),
            Formula::Over(a, n) => format!("{} / {n}", ix(a)),
            Formula::Modulo(a, n) => format!("{} % {n}", ix(a)),
            Formula::Shifted { inside, ix: a, low } => {
                format!("{} ? {} - {low} : 0", scope.variable(*inside), ix(a))
            }
            Formula::Entry(entry) => self.entry(entry, scope),
            Formula::Within { ix: a, low, high } => format!("{0} >= {low} && {0} < {high}", ix(a)),
            Formula::Load(site) => {
                let entry =
                    format!("{}[{}]", self.arguments.name(Name::Buffer(site.id)).to_owned(), self.place(site, scope));
                if site.bytes { format!("shade({entry})") } else { entry }
            }
            Formula::LoadFour(site) => {
                let read = if site.bytes { "shades" } else { "*(const Four*)" };
                let buffer = self.arguments.name(Name::Buffer(site.id)).to_owned();
                format!("{read}({buffer} + {})", self.place(site, scope))
            }
            Formula::Unary(f, x) => unary(*f, &self.value(*x, scope)),
            Formula::Binary(f, x, y) => {
                let x = self.value(*x, scope);
                binary(*f, &x, &self.value(*y, scope))
            }
            Formula::MulAdd(x, y, z) => {
                let [x, y, z] = [x, y, z].map(|&v| self.value(v, scope));
                format!("fma_({x}, {y}, {z})")
            }
            Formula::Select(c, x, y) => {
                let [c, x, y] = [c, x, y].map(|&v| self.value(v, scope));
                format!("{c} != real(0) ? {x} : {y}")
            }
            Formula::Choice(tests, x, y) => {
                let tests: Vec<String> = tests.iter().map(|t| scope.test(t)).collect();
                let [x, y] = [x, y].map(|&v| self.value(v, scope));
                format!("{} ? {x} : {y}", tests.join(" && "))
            }
            Formula::Step => "(real)step".to_string(),
            Formula::Words { row, block, stream } => {
                format!("philox((u32){}, (u32){}, {stream}u, {keys})", ix(row), ix(block))
            }
            Formula::Drawn { draw, words, within } => drawn(*draw, &scope.variable(*words), *within, scope),
            Formula::Shuffled { epochs, count, rows, row, feature, stream } => {
                let place = format!("{rows}u, (u32){}, (u32){}", ix(row), ix(feature));
                format!("(real)shuffled({epochs}, {count}u, {place}, {stream}u, {keys})")
            }
        }
    }

    /// A position in a node's buffer.
    fn place(&mut self, site: &Site, scope: Scope) -> String {
        let mut text = self.arguments.name(Name::Start(site.id)).to_string();
        if let Some((entry, size)) = site.entry {
            let _ = write!(text, " + (i64){} * {size}", scope.ix(entry));
        }
        let _ = write!(text, " + {}", scope.ix(site.at));
        text
    }
}

/// Type and name of the variable of a formula.
fn declared(formula: &Formula, number: usize, scope: Scope) -> (&'static str, String) {
    let kind = match formula {
        Formula::Plus(..) | Formula::Times(..) | Formula::Over(..) | Formula::Modulo(..) => "int",
        Formula::Shifted { .. } | Formula::Entry(_) => "int",
        Formula::Within { .. } => "bool",
        Formula::LoadFour(_) => "Four",
        Formula::Words { .. } => "Words",
        Formula::Load(_) | Formula::Unary(..) | Formula::Binary(..) | Formula::MulAdd(..) => "real",
        Formula::Select(..) | Formula::Choice(..) | Formula::Step => "real",
        Formula::Drawn { .. } | Formula::Shuffled { .. } => "real",
    };
    (kind, if kind == "int" { scope.index(Index::Bound(number)) } else { scope.variable(number) })
}

/// An element of four words.
fn drawn(draw: Draw, words: &str, within: Ix, scope: Scope) -> String {
    let word = |ix: &str| format!("word({words}, {ix})");
    let w = scope.ix(within);
    match (draw, within) {
        (Draw::Uniform, _) => format!("uniform({})", word(&w)),
        (Draw::Rademacher, _) => format!("rademacher({})", word(&w)),
        (Draw::Integer(n), _) => format!("integer({}, {n}u)", word(&w)),
        (Draw::Normal, Ix::Number(k)) => {
            let pair = k / 2 * 2;
            format!("normal({}, {}, {})", word(&pair.to_string()), word(&(pair + 1).to_string()), k % 2 == 1)
        }
        (Draw::Normal, _) => {
            format!("normal({}, {}, {w} & 1)", word(&format!("{w} & 2")), word(&format!("({w} & 2) + 1")))
        }
        (Draw::Bits | Draw::Permutation(_) | Draw::Epoch(_), _) => format!("(real){}", word(&w)),
    }
}

fn unary(op: Unary, x: &str) -> String {
    match op {
        Unary::Neg => format!("-({x})"),
        Unary::Abs => format!("fabs({x})"),
        Unary::Sign => format!("sign_({x})"),
        Unary::Floor => format!("floor({x})"),
        Unary::Recip => format!("div_(real(1), {x})"),
        Unary::Sqrt => format!("sqrt_({x})"),
        Unary::Rsqrt => format!("rsqrt_({x})"),
        Unary::Exp => format!("exp_({x})"),
        Unary::Expm1 => format!("expm1_({x})"),
        Unary::Log => format!("log_({x})"),
        Unary::Log1p => format!("log1p_({x})"),
        Unary::Tanh => format!("tanh_({x})"),
        Unary::Sigmoid => format!("sigmoid_({x})"),
        Unary::Softplus => format!("softplus_({x})"),
        Unary::Sin => format!("sin_({x})"),
        Unary::Cos => format!("cos_({x})"),
    }
}

fn binary(op: Binary, x: &str, y: &str) -> String {
    let truth = |symbol: &str| format!("{x} {symbol} {y} ? real(1) : real(0)");
    match op {
        Binary::Add => format!("{x} + {y}"),
        Binary::Sub => format!("{x} - {y}"),
        Binary::Mul => format!("{x} * {y}"),
        Binary::Div => format!("div_({x}, {y})"),
        Binary::Min => format!("min_({x}, {y})"),
        Binary::Max => format!("max_({x}, {y})"),
        Binary::Atan2 => format!("atan2_({x}, {y})"),
        Binary::Less => truth("<"),
        Binary::LessEqual => truth("<="),
        Binary::Equal => truth("=="),
    }
}
