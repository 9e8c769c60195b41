//! A tile of a sum of products, and what is done with it while it is at hand.

use super::{Code, Name, Scope, Writer};
use crate::cuda::THREADS;
use crate::cuda::product::{Geometry, Product, Rows};
use crate::cuda::strided::{Address, Direct, Strided, Way, Windowed};
use crate::cuda::trace::Owner;
use crate::cuda::work::{Operand, Work};
use crate::op::Window;
use std::fmt::Write;

impl Writer<'_> {
    pub(super) fn product(&mut self, number: usize, p: &Product, work: &Work) -> Code {
        let (g, t) = (&p.geometry, p.tile);
        let (mt, nt) = p.tiles();
        let matrices: usize = g.lead.iter().product();
        let tiles = nt * mt;
        let mut text = format!(
            "const int n0 = block % {nt} * {}, m0 = block / {nt} % {mt} * {}, split = block / {tiles} % {splits};\n\
             const int r = block / {whole} / {matrices}, matrix = block / {whole} % {matrices};\n{lead}",
            t.n,
            t.m,
            splits = p.splits,
            whole = tiles * p.splits,
            lead = lead(&g.lead),
        );
        text.push_str(&self.starts(work));
        let along = [0, 1].map(|side| work.operands.iter().all(|sides| !sides[side].k_is_fast()));
        let name = t.name(self.partition.arithmetic.precision, p.depth(), along);
        let _ = writeln!(text, "{name} tile = {{}};");
        let (products, room) = match t.stages {
            1 => self.at_once(number, p, work, &name),
            _ => self.in_stages(number, p, work),
        };
        text.push_str(&products);
        text.push_str("tile.stage(shared);\n");
        text.push_str(&if p.thin() { self.thin_ending(number, p, work) } else { self.ending(number, p, work) });
        Code { blocks: p.batch * p.splits * tiles, shared: room.max(t.staged()), text }
    }

    /// All terms on their way at once, then all products; and numbers of shared memory for the operands.
    fn at_once(&mut self, number: usize, p: &Product, work: &Work, name: &str) -> (String, usize) {
        let t = p.tile;
        let (mut text, mut room, mut places) = (String::new(), 0, vec![]);
        for (term, [left, right]) in p.terms.iter().zip(&work.operands) {
            let (how, depth) = (how(left, right), term.depth);
            let loads = format!("{},\n{}", self.load(p, left), self.load(p, right));
            let _ = writeln!(text, "fetch<{name}, {how}>(shared + {room}, {}, 0, {depth}, {loads});", size(p));
            places.push(room);
            room += t.block(t.m, left.k_is_fast()) + t.block(t.n, right.k_is_fast());
        }
        text.push_str("arrived();\n__syncthreads();\n");
        for (i, ([left, right], at)) in work.operands.iter().zip(places).enumerate() {
            text.push_str(&self.rescale(number, p, i));
            let _ = writeln!(text, "multiply<{}, {}>(tile, shared + {at});", left.k_is_fast(), right.k_is_fast());
        }
        text.push_str("__syncthreads();\n");
        (text, room)
    }

    /// One term after another, some blocks of k on their way at a time; and numbers of shared memory for those.
    fn in_stages(&mut self, number: usize, p: &Product, work: &Work) -> (String, usize) {
        let t = p.tile;
        let (mut text, mut room) = (String::new(), 0);
        for (i, (term, [left, right])) in p.terms.iter().zip(&work.operands).enumerate() {
            text.push_str(&self.rescale(number, p, i));
            let (how, (range, test)) = (how(left, right), p.range(term));
            let loads = format!("{},\n{}", self.load(p, left), self.load(p, right));
            let stages = t.stages;
            let _ = writeln!(text, "{test}accumulate<{stages}, {how}>(tile, shared, {}, {range}, {loads});", size(p));
            room = room.max(stages * (t.block(t.m, left.k_is_fast()) + t.block(t.n, right.k_is_fast())));
        }
        (text, room)
    }

    /// The sum so far in units of term i, where these change.
    fn rescale(&mut self, number: usize, p: &Product, i: usize) -> String {
        let (before, now) = (p.terms[i.saturating_sub(1)].scale, p.terms[i].scale);
        if before == now {
            return String::new();
        }
        format!("tile.scale({});\n", self.arguments.number(Owner::Term(number, i), before / now))
    }

    /// What loads one side of a term.
    fn load(&mut self, p: &Product, operand: &Operand) -> String {
        match operand {
            Operand::Computed(items, value) => {
                let body = self.items(items, Scope::Loader, "");
                format!("[&](int x, int k) -> real {{\n{body}return {};\n}}", self.value(*value, Scope::Loader))
            }
            Operand::Copied(address) => match &address.way {
                Way::Strided(direct @ Direct { x, k, .. }, [whole_x, whole_k]) => {
                    let from = self.first(&p.geometry, direct);
                    format!("Strided<{x}, {k}, {whole_x}, {whole_k}>{{{from}}}")
                }
                Way::Function(direct @ Direct { x, k, .. }) => {
                    let from = self.first(&p.geometry, direct);
                    format!("[&](int x, int k, bool&) {{ return {from} + (i64)x * {x} + (i64)k * {k}; }}")
                }
                Way::Windows(windows) => self.windows(windows),
            },
        }
    }

    /// The address of entry (0, 0).
    fn first(&mut self, g: &Geometry, direct: &Direct) -> String {
        let mut text = self.arguments.name(Name::Buffer(direct.root)).to_string();
        let start = self.arguments.name(Name::Start(direct.root));
        let _ = write!(text, " + {start} + {}", direct.offset);
        for (ix, stride) in g.lead_indices().into_iter().zip(&direct.lead) {
            let _ = write!(text, " + {} * {stride}", Scope::Results.ix(ix));
        }
        text
    }

    /// The address of entry (x, k) of windows; outside of the image there is none.
    fn windows(&mut self, windows: &Windowed) -> String {
        let Window { kernel: [_, kw], stride, pad: [[top, _], [left, _]] } = windows.window;
        let [h, w, c] = windows.image;
        let [oh, ow] = windows.window.output([h, w]);
        let (place, entry) = if windows.contracts { ("k", "x") } else { ("x", "k") };
        let Strided { root, offset, row, dims } = &windows.from;
        let whole = oh * ow;
        let buffer = self.arguments.name(Name::Buffer(*root)).to_string();
        let start = self.arguments.name(Name::Start(*root));
        format!(
            "[&](int x, int k, bool& inside) {{\n\
             const int pixel = {place} % {whole}, tap = {entry} / {c};\n\
             const int line = pixel / {ow} * {stride} + tap / {kw} - {top};\n\
             const int column = pixel % {ow} * {stride} + tap % {kw} - {left};\n\
             inside = inside && (u32)line < {h}u && (u32)column < {w}u;\n\
             const i64 at = (i64)({place} / {whole}) * {row} + line * {} + column * {} + {entry} % {c};\n\
             return {buffer} + {start} + {offset} + (inside ? at : 0);\n}}",
            dims[0], dims[1],
        )
    }

    /// A row of the tile for each thread.
    fn thin_ending(&mut self, number: usize, p: &Product, work: &Work) -> String {
        let (g, t) = (&p.geometry, p.tile);
        let factor = self.arguments.number(Owner::Part(number), p.factor());
        let own = |i| format!("const real own{i} = {factor} * tile.entry(shared, e * {} + {i});\n", t.n);
        let owns: String = (0..g.n).map(own).collect();
        format!(
            "for (int e = threadIdx.x; e < {}; e += THREADS) {{\nconst int row = m0 + e;\nif (row >= {}) continue;\n{owns}{}}}\n",
            t.m,
            g.height(),
            self.items(&work.ending, Scope::Results, "")
        )
    }

    /// The entries of the tile, one or four at a time.
    fn ending(&mut self, number: usize, p: &Product, work: &Work) -> String {
        let (g, t, four) = (&p.geometry, p.tile, work.four);
        let (height, width) = (g.height(), g.width());
        // Large tiles are finished four entries at a time. Entries beyond the edge are then computed like the last, and not stored:
        // without branches, the loads of several turns go out before the first is waited for.
        let exact = height.is_multiple_of(t.m) && width.is_multiple_of(t.n);
        let (row, column) = (format!("m0 + e / {}", t.n), format!("n0 + e % {}", t.n));
        let place = if four && !exact {
            format!(
                "const int m = min({row}, {}), n = min({column}, {});\n\
                 const bool inside = {row} < {height} && {column} < {width};\n",
                height - 1,
                width - 4
            )
        } else {
            format!("const int m = {row}, n = {column};\n")
        };
        let test = if exact || four { String::new() } else { format!("if (m < {height} && n < {width}) ") };
        // Several entries at a time, so that they wait for memory together.
        let step = if four { 4 } else { 1 };
        let turns = (t.m * t.n).div_ceil(THREADS * step);
        let bound = if t.m * t.n < THREADS { format!("if (e >= {}) break;\n", t.m * t.n) } else { String::new() };
        let own = self.own(number, p, four);
        let body = self.items(&work.ending, Scope::Results, if four && !exact { "if (inside) " } else { "" });
        format!(
            "#pragma unroll 4\nfor (int turn = 0; turn < {turns}; turn++) {{\n\
             const int e = (turn * THREADS + threadIdx.x) * {step};\n{bound}{place}{test}{{\n{}{own}{body}}}\n}}\n",
            entry(g, four)
        )
    }

    /// Declares the sum at the entry at hand, or at four; pieces of a sum are stored as they are.
    fn own(&mut self, number: usize, p: &Product, four: bool) -> String {
        if p.splits > 1 {
            return String::new();
        }
        let factor = self.arguments.number(Owner::Part(number), p.factor());
        if four {
            let entry = |i| format!("const real own{i} = {factor} * four.x[{i}];\n");
            let four = "const Pack<4> four = tile.template entries<4>(shared, e);\n".to_string();
            four + &(0..4).map(entry).collect::<String>()
        } else {
            format!("const real own = {factor} * tile.entry(shared, e);\n")
        }
    }
}

/// How both sides of a term are copied, as arguments of templates.
fn how(left: &Operand, right: &Operand) -> String {
    let how = |operand: &Operand| match operand {
        Operand::Computed(..) => "COMPUTED",
        Operand::Copied(Address { by_four: true, .. }) => "BY_FOUR",
        Operand::Copied(Address { by_four: false, .. }) => "SINGLY",
    };
    format!("{}, {}, {}, {}", how(left), left.k_is_fast(), how(right), right.k_is_fast())
}

/// Where the tile lies, and where the matrix ends.
fn size(p: &Product) -> String {
    format!("m0, {}, n0, {}", p.geometry.height(), p.geometry.width())
}

/// Declares `row`, `d0`, … of entry (m, n); in fours, the last counts fours.
fn entry(g: &Geometry, four: bool) -> String {
    let (row, m, n) = match g.rows {
        Rows::Left if four => (format!("m / {}", g.m), format!("m % {}", g.m), "n / 4".to_string()),
        Rows::Right | Rows::Summed | Rows::Nowhere if four => ("0".to_string(), "m".to_string(), "n / 4".to_string()),
        Rows::Left => (format!("m / {}", g.m), format!("m % {}", g.m), "n".to_string()),
        Rows::Right => (format!("n / {}", g.n), "m".to_string(), format!("n % {}", g.n)),
        Rows::Summed | Rows::Nowhere => ("0".to_string(), "m".to_string(), "n".to_string()),
    };
    let mut text = format!("const int row = {row};\n");
    let values: Vec<String> = (0..g.lead.len()).map(|i| format!("q{i}")).chain([m, n]).collect();
    let dims: Vec<usize> = g.lead.iter().copied().chain([g.m, g.n]).collect();
    let long = values.iter().zip(&dims).filter(|(_, d)| **d != 1);
    for (i, (value, _)) in long.enumerate() {
        let _ = writeln!(text, "const int d{i} = {value};");
    }
    text
}

/// Declares the leading axes of a product, from the number of the matrix.
fn lead(dims: &[usize]) -> String {
    let mut text = String::new();
    let mut below: usize = dims.iter().product();
    let mut rest = "matrix".to_string();
    for (i, &d) in dims.iter().enumerate() {
        below /= d;
        if d != 1 {
            let _ = writeln!(text, "const int q{i} = {rest} / {below};");
            rest = format!("({rest} % {below})");
        }
    }
    text
}
