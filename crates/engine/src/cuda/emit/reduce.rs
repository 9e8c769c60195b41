//! A reduction by threads that share an output, and what is done with it.

use super::{Code, Name, Scope, Writer, indices};
use crate::cuda::THREADS;
use crate::cuda::reduce::{Over, Reduce};
use crate::cuda::trace::Owner;
use crate::cuda::work::{Addend, Work};
use std::fmt::Write;

/// Counts that threads keep while they look for a rank.
const BINS: usize = 256;

impl Writer<'_> {
    pub(super) fn reduce(&mut self, number: usize, r: &Reduce, work: &Work) -> Code {
        let shape = &self.partition.parts[number].shape;
        let (len, across) = (shape.len(), THREADS / r.lanes);
        let total = self.partition.replicas * len;
        let (lane, out) = match r.fast {
            true => (format!("threadIdx.x % {}", r.lanes), format!("threadIdx.x / {}", r.lanes)),
            false => (format!("threadIdx.x / {across}"), format!("threadIdx.x % {across}")),
        };
        let mut text = format!(
            "const int lane = {lane}, split = block % {0};\nconst i64 o = (i64)(block / {0}) * {across} + {out}, e = o < {total} ? o : {total} - 1;\n\
             const int r = (int)(e / {len}), entry = (int)(e % {len});\n{1}",
            r.splits,
            indices(shape, "entry")
        );
        text.push_str(&self.starts(work));
        if let Over::Rank(rank) = r.over {
            text.push_str(&self.ranked(number, r, rank, work));
            return Code { blocks: self.partition.replicas, shared: BINS, text };
        }
        let (start, join) = if r.maximum { ("real(__int_as_float(0xff800000))", "max_") } else { ("real(0)", "plus") };
        let (inner, value) = self.addend(number, r, work);
        let _ = write!(
            text,
            "real sum = {start};\n#pragma unroll 4\nfor ({}) {{\n{inner}sum = {join}(sum, {value});\n}}\n",
            range(r)
        );
        let scale = match r.over {
            Over::Partials(bits) if bits != 1f64.to_bits() => {
                format!("{} * ", self.arguments.number(Owner::Part(number), f64::from_bits(bits)))
            }
            Over::Partials(_) | Over::Axis(_) | Over::Rows | Over::Matches | Over::Rank(_) => String::new(),
        };
        let _ = write!(
            text,
            "const real own = {scale}combine<{}, {}>(sum, shared, [](real a, real b) {{ return {join}(a, b); }});\n\
             if (lane != 0 || o >= {total}) return;\n",
            r.lanes, r.fast
        );
        if r.splits > 1 {
            let pieces = self.arguments.name(Name::Pieces(number));
            let _ = writeln!(text, "{pieces}[((i64)r * {} + split) * {len} + entry] = own;", r.splits);
        }
        text.push_str(&self.items(&work.ending, Scope::Results, ""));
        Code { blocks: total.div_ceil(across) * r.splits, shared: across * (r.lanes + 1), text }
    }

    /// The entry of a rank among all.
    fn ranked(&mut self, number: usize, r: &Reduce, rank: usize, work: &Work) -> String {
        let (inner, value) = self.addend(number, r, work);
        let head = format!(
            "const real own = ranked<{}>({rank}, (int*)shared, [&](int k) -> real {{\n{inner}return {value};\n}});\n\
             if (lane != 0) return;\n",
            r.length
        );
        head + &self.items(&work.ending, Scope::Results, "")
    }

    /// Entry k of what is reduced: statements, and the value.
    fn addend(&mut self, number: usize, r: &Reduce, work: &Work) -> (String, String) {
        match work.addend.as_ref().expect("a reduction adds something") {
            Addend::Piece(from) => {
                let len = self.partition.parts[number].shape.len();
                let pieces = self.arguments.name(Name::Pieces(*from));
                (String::new(), format!("{pieces}[((i64)r * {} + k) * {len} + entry]", r.length))
            }
            Addend::Value(items, value) => {
                let inner = self.items(items, Scope::Addend, "");
                (inner, self.value(*value, Scope::Addend))
            }
            Addend::Match { items, entry, at, value } => {
                let inner = self.items(items, Scope::Addend, "");
                let entry = self.entry(entry, Scope::Addend);
                let value = self.value(*value, Scope::Addend);
                (inner, format!("{entry} == {} ? {value} : real(0)", Scope::Addend.ix(*at)))
            }
        }
    }
}

/// The loop of a thread over its entries.
fn range(r: &Reduce) -> String {
    let (length, lanes) = (r.length, r.lanes);
    if r.splits == 1 {
        return format!("int k = lane; k < {length}; k += {lanes}");
    }
    let piece = length.div_ceil(r.splits);
    format!("int k = split * {piece} + lane; k < min((split + 1) * {piece}, {length}); k += {lanes}")
}
