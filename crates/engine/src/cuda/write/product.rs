//! A tile of a sum of products, and what is done with it while it is at hand.

use super::{Code, Needs, Writer, lead, single_spot};
use crate::cuda::THREADS;
use crate::cuda::emit::Ix;
use crate::cuda::parts::{named_spot, quad_spots, row_spots};
use crate::cuda::product::{Product, Rows, Term};
use crate::cuda::strided::Address;
use std::fmt::Write;

/// One side of a term: how its entries are copied, whether k is contiguous, and the function that has them.
struct Loader {
    how: &'static str,
    fast: bool,
    load: String,
}

impl Loader {
    fn how(&self) -> String {
        format!("{}, {}", self.how, self.fast)
    }
}

impl Writer<'_> {
    pub(super) fn product(&self, p: &Product) -> Code {
        let (g, t) = (&p.geometry, p.tile);
        let (mt, nt) = p.tiles();
        let (height, width) = (g.height(), g.width());
        let matrices: usize = g.lead.iter().product();
        let (lead_text, lead_names) = lead(&g.lead);
        let mut needs = Needs::default();
        let tiles = nt * mt;
        let head = format!(
            "const int n0 = block % {nt} * {}, m0 = block / {nt} % {mt} * {}, split = block / {tiles} % {splits};\n\
             const int r = block / {whole} / {matrices}, matrix = block / {whole} % {matrices};\n{lead_text}",
            t.n,
            t.m,
            splits = p.splits,
            whole = tiles * p.splits,
        );
        let sides: Vec<[Loader; 2]> = p
            .terms
            .iter()
            .map(|term| [true, false].map(|left| self.loader(p, term, left, &lead_names, &mut needs)))
            .collect();
        let along = [0, 1].map(|side| sides.iter().all(|s| !s[side].fast));
        let name = t.name(self.partition.arithmetic.precision, p.depth(), along);
        let (mut fetches, mut products) = (String::new(), String::new());
        // Numbers of shared memory for the blocks of k on their way.
        let mut room = 0;
        let mut scale = p.terms[0].scale;
        for (i, (term, [left, right])) in p.terms.iter().zip(&sides).enumerate() {
            if term.scale != scale {
                let factor = self.constant(format_args!("s{}_{i}", self.number), scale / term.scale);
                let _ = writeln!(products, "tile.scale({factor});");
                scale = term.scale;
            }
            let (how, size) = (format!("{}, {}", left.how(), right.how()), format!("m0, {height}, n0, {width}"));
            let loads = format!("{},\n{}", left.load, right.load);
            let block = t.block(t.m, left.fast) + t.block(t.n, right.fast);
            if t.stages == 1 {
                let at = format!("shared + {room}");
                room += block;
                let _ = writeln!(fetches, "fetch<{name}, {how}>({at}, {size}, 0, {}, {loads});", term.depth);
                let _ = writeln!(products, "multiply<{}, {}>(tile, {at});", left.fast, right.fast);
            } else {
                room = room.max(t.stages * block);
                let (range, test) = p.range(term);
                let _ = writeln!(
                    products,
                    "{test}accumulate<{}, {how}>(tile, shared, {size}, {range}, {loads});",
                    t.stages
                );
            }
        }
        if t.stages == 1 {
            fetches.push_str("arrived();\n__syncthreads();\n");
            products.push_str("__syncthreads();\n");
        }
        let mut rest = format!("{name} tile = {{}};\n{fetches}{products}");
        // Large tiles are finished four entries at a time.
        let four = self.by_four() && p.splits == 1 && g.n > 1 && g.rows != Rows::Right && t.m * t.n >= 1024;
        // Entries beyond the edge are then computed like the last, and not stored: without branches, the loads of several turns
        // go out before the first is waited for.
        let exact = height.is_multiple_of(t.m) && width.is_multiple_of(t.n);
        let guard = if four && !exact { "if (inside) " } else { "" };
        let each = |body: &str, own: &str| {
            let (row, column) = (format!("m0 + e / {}", t.n), format!("n0 + e % {}", t.n));
            let place = match four && !exact {
                true => format!(
                    "const int m = min({row}, {}), n = min({column}, {});\n\
                     const bool inside = {row} < {height} && {column} < {width};\n",
                    height - 1,
                    width - 4
                ),
                false => format!("const int m = {row}, n = {column};\n"),
            };
            let test = if exact || four { String::new() } else { format!("if (m < {height} && n < {width}) ") };
            // Several entries at a time, so that they wait for memory together.
            let step = if four { 4 } else { 1 };
            let turns = (t.m * t.n).div_ceil(THREADS * step);
            let head = format!("#pragma unroll 4\nfor (int turn = 0; turn < {turns}; turn++) {{\n");
            let bound = if t.m * t.n < THREADS { format!("if (e >= {}) break;\n", t.m * t.n) } else { String::new() };
            let place = format!("const int e = (turn * THREADS + threadIdx.x) * {step};\n{bound}{place}");
            format!("{head}{place}{test}{{\n{}{own}{body}}}\n}}\n", self.entry(p, four))
        };
        let factor = self.constant(format_args!("f{}", self.number), p.factor());
        let own = |e: &str| format!("{factor} * tile.entry(shared, {e})");
        let epilogue = if p.splits > 1 {
            let place = self.scope(&mut needs, "", |e| {
                let shape = &self.part.shape;
                let flat = e.flat(&named_spot(shape), shape).text();
                let piece = format!("((i64)r * {} + split) * {} + {flat}", p.splits, shape.len());
                let _ = writeln!(e.body, "w@{}[{piece}] = tile.entry(shared, e);", self.number);
            });
            each(&place, "")
        } else if p.thin() {
            let body = self.scope(&mut needs, "", |e| self.results(e, row_spots, ""));
            let owns: String =
                (0..g.n).map(|i| format!("const real own{i} = {};\n", own(&format!("e * {} + {i}", t.n)))).collect();
            format!(
                "for (int e = threadIdx.x; e < {}; e += THREADS) {{\nconst int row = m0 + e;\nif (row >= {height}) continue;\n{owns}{body}}}\n",
                t.m
            )
        } else {
            let body =
                self.scope(&mut needs, "", |e| self.results(e, if four { quad_spots } else { single_spot }, guard));
            let owns: String = match four {
                true => {
                    let entry = |i| format!("const real own{i} = {factor} * four.x[{i}];\n");
                    "const Pack<4> four = tile.template entries<4>(shared, e);\n".to_string()
                        + &(0..4).map(entry).collect::<String>()
                }
                false => format!("const real own = {};\n", own("e")),
            };
            each(&body, &owns)
        };
        rest.push_str("tile.stage(shared);\n");
        rest.push_str(&epilogue);
        let blocks = p.batch * p.splits * tiles;
        self.finished(blocks, room.max(t.staged()), needs, &head, &rest)
    }

    /// How one side is loaded.
    fn loader(&self, p: &Product, term: &Term, left: bool, lead: &[Ix], needs: &mut Needs) -> Loader {
        if let Some(Address { root, k_is_fast, by_four, load }) = self.partition.address(p, term, left, lead) {
            needs.reads.insert(root);
            let how = if by_four { "BY_FOUR" } else { "SINGLY" };
            return Loader { how, fast: k_is_fast, load };
        }
        let id = if left { term.left } else { term.right };
        let mut value = String::new();
        let body = self.scope(needs, "l", |e| {
            let spot = p.spot(e, term, left, lead, &Ix::name("x"), &Ix::name("k"));
            value = e.value(id, spot);
        });
        Loader {
            how: "COMPUTED",
            fast: false,
            load: format!("[&](int x, int k) -> real {{\n{body}return {value};\n}}"),
        }
    }

    /// Declares `row`, `d0`, … of entry (m, n); in fours, the last counts fours.
    fn entry(&self, p: &Product, four: bool) -> String {
        let g = &p.geometry;
        let (row, m, n) = match g.rows {
            Rows::Left if four => (format!("m / {}", g.m), format!("m % {}", g.m), "n / 4".to_string()),
            _ if four => ("0".to_string(), "m".to_string(), "n / 4".to_string()),
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
}
