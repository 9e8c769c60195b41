//! A reduction by threads that share an output, and what is done with it.

use super::{Code, Needs, Writer, indices, single_spot};
use crate::cuda::THREADS;
use crate::cuda::emit::{Ix, Spot};
use crate::cuda::parts::named_spot;
use crate::cuda::reduce::{Over, Reduce};
use crate::graph::Id;
use std::fmt::Write;

/// Counts that threads keep while they look for a rank.
const BINS: usize = 256;

impl Writer<'_> {
    pub(super) fn reduce(&self, r: &Reduce) -> Code {
        let shape = &self.part.shape;
        let (len, across) = (shape.len(), THREADS / r.lanes);
        let total = self.partition.replicas * len;
        let mut needs = Needs::default();
        let (lane, out) = match r.fast {
            true => (format!("threadIdx.x % {}", r.lanes), format!("threadIdx.x / {}", r.lanes)),
            false => (format!("threadIdx.x / {across}"), format!("threadIdx.x % {across}")),
        };
        let head = format!(
            "const int lane = {lane}, split = block % {0};\nconst i64 o = (i64)(block / {0}) * {across} + {out}, e = o < {total} ? o : {total} - 1;\n\
             const int r = (int)(e / {len}), entry = (int)(e % {len});\n{1}",
            r.splits,
            indices(shape, "entry")
        );
        if let Over::Rank(rank) = r.over {
            return self.ranked(r, rank, head, needs);
        }
        let (start, join) = if r.maximum { ("real(__int_as_float(0xff800000))", "max_") } else { ("real(0)", "plus") };
        let range = match r.splits {
            1 => format!("int k = lane; k < {}; k += {}", r.length, r.lanes),
            _ => {
                let piece = r.length.div_ceil(r.splits);
                format!(
                    "int k = split * {piece} + lane; k < min((split + 1) * {piece}, {}); k += {}",
                    r.length, r.lanes
                )
            }
        };
        let (inner, value) = self.addend(r, &mut needs);
        let mut rest = format!(
            "real sum = {start};\n#pragma unroll 4\nfor ({range}) {{\n{inner}sum = {join}(sum, {value});\n}}\n"
        );
        let scale = match r.over {
            Over::Partials(bits) if bits != 1f64.to_bits() => {
                format!("{} * ", self.constant(format_args!("f{}", self.number), f64::from_bits(bits)))
            }
            _ => String::new(),
        };
        let _ = write!(
            rest,
            "const real own = {scale}combine<{}, {}>(sum, shared, [](real a, real b) {{ return {join}(a, b); }});\n\
             if (lane != 0 || o >= {total}) return;\n",
            r.lanes, r.fast
        );
        if r.splits > 1 {
            let _ = writeln!(rest, "w@{}[((i64)r * {} + split) * {len} + entry] = own;", self.number, r.splits);
        } else {
            rest.push_str(&self.scope(&mut needs, "", |e| self.results(e, single_spot, "")));
        }
        let blocks = total.div_ceil(across) * r.splits;
        self.finished(blocks, across * (r.lanes + 1), needs, &head, &rest)
    }

    /// The entry of a rank among all.
    fn ranked(&self, r: &Reduce, rank: usize, head: String, mut needs: Needs) -> Code {
        let (inner, value) = self.addend(r, &mut needs);
        let (length, total) = (r.length, self.partition.replicas);
        let mut rest = format!(
            "const real own = ranked<{length}>({rank}, (int*)shared, [&](int k) -> real {{\n{inner}return {value};\n}});\n\
             if (lane != 0) return;\n"
        );
        rest.push_str(&self.scope(&mut needs, "", |e| self.results(e, single_spot, "")));
        self.finished(total, BINS, needs, &head, &rest)
    }

    /// Entry k of what is reduced: statements, and the value.
    fn addend(&self, r: &Reduce, needs: &mut Needs) -> (String, String) {
        let k = Ix::name("k");
        let node = |id: Id| self.partition.node(id);
        if let (Over::Partials(_), Some(from)) = (r.over, self.part.sums) {
            let value = format!("w@{from}[((i64)r * {} + k) * {} + entry]", r.length, self.part.shape.len());
            return (String::new(), value);
        }
        // The halves of a split reduction have no anchor; what they reduce is found at the second.
        let anchor = self.part.anchors.first().copied().or_else(|| {
            let after = self.partition.parts.iter().find(|p| p.sums == Some(self.number))?;
            after.anchors.first().copied()
        });
        let args = &node(anchor.expect("a reduction has an anchor")).args;
        let mut value = String::new();
        let out = named_spot(&self.part.shape);
        let body = self.scope(needs, "k", |e| {
            value = match r.over {
                Over::Axis(axis) => {
                    let mut spot = out.clone();
                    spot.dims.insert(axis, k.clone());
                    e.value(args[0], spot)
                }
                Over::Rows => e.value(args[0], Spot { row: k.clone(), dims: out.dims.clone() }),
                Over::Matches => {
                    let index = e.shape(args[0]);
                    let row = e.over(&k, index.features());
                    let within = e.modulo(&k, index.features());
                    let mut dims = e.unravel(&within, &index.dims);
                    let at = e.value(args[0], Spot { row: row.clone(), dims: dims.clone() });
                    dims.extend(out.dims[1..].iter().cloned());
                    let added = e.value(args[1], Spot { row, dims });
                    let entry = e.entry(args[0], &at, self.part.shape.dims[0]);
                    format!("{entry} == {} ? {added} : real(0)", out.dims[0].text())
                }
                Over::Rank(_) => {
                    let dims = e.unravel(&k, &e.shape(args[0]).dims.clone());
                    e.value(args[0], Spot { row: Ix::Number(0), dims })
                }
                Over::Partials(_) => unreachable!("handled above"),
            };
        });
        (body, value)
    }
}
