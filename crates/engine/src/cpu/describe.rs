//! A plan in words: what runs in which stage, for people who want to know where time goes.

use super::plan::{Instr, Lanes, Plan, Slot, Stage};
use std::fmt;

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let kib = |n: usize| n.div_ceil(1024);
        writeln!(f, "{} Ki elements of memory, {} Ki per worker", kib(self.memory), kib(self.arena))?;
        for (i, stage) in self.stages.iter().enumerate() {
            match stage {
                Stage::Rows { tiling, instrs, .. } => {
                    let (tiles, chunks, pitch) = (tiling.tiles(), tiling.chunks(), tiling.pitch());
                    writeln!(f, "stage {i}: rows, {tiles} tiles of at most {pitch} in {chunks} chunks")?;
                    instrs.iter().try_for_each(|instr| writeln!(f, "  {instr}"))?;
                }
                Stage::Whole { instrs } => {
                    writeln!(f, "stage {i}: whole")?;
                    instrs.iter().try_for_each(|instr| writeln!(f, "  {instr}"))?;
                }
            }
        }
        Ok(())
    }
}

/// An instruction as it is.
fn debug(instr: &Instr, f: &mut fmt::Formatter) -> fmt::Result {
    f.write_str(&format!("{instr:?}"))
}

impl fmt::Display for Instr {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Instr::Chain(c) => {
                let lanes = match c.lanes {
                    Lanes::Tile => "rows".to_string(),
                    Lanes::Fixed(n) => n.to_string(),
                };
                write!(f, "chain over {:?}×{}×{lanes}:", c.outer, c.features)?;
                for op in &c.ops {
                    let name = |i: usize| match c.operands[i].slot {
                        Slot::At(at) => format!("b{}+{}", at.buffer, at.offset),
                        Slot::Register(r) => format!("r{r}"),
                    };
                    write!(
                        f,
                        " {} = {:?}({}, {}, {});",
                        name(op.dst),
                        op.code,
                        name(op.src[0]),
                        name(op.src[1]),
                        name(op.src[2])
                    )?;
                }
                Ok(())
            }
            Instr::Product(p) => {
                let [a, b] = p.turns;
                write!(
                    f,
                    "product {}×{} of {:?}, {} times: b{} = b{} · b{}",
                    p.n,
                    p.k,
                    p.lanes,
                    a.count * b.count,
                    p.c.buffer,
                    p.w.buffer,
                    p.a.buffer
                )
            }
            Instr::Contraction(c) => {
                let [a, b] = c.turns;
                write!(
                    f,
                    "contraction {}×{}, {} times: b{} += b{} · b{}",
                    c.m,
                    c.n,
                    a.count * b.count,
                    c.c.buffer,
                    c.a.buffer,
                    c.b.buffer
                )
            }
            Instr::Contractions { .. } | Instr::Load { .. } | Instr::Save { .. } | Instr::Random { .. } => {
                debug(self, f)
            }
            Instr::Fill { .. } | Instr::FillLanes { .. } | Instr::Copy { .. } => debug(self, f),
            Instr::Im2col { .. } | Instr::Col2im { .. } | Instr::Gather { .. } | Instr::Scatter { .. } => {
                debug(self, f)
            }
            Instr::Collect { .. } | Instr::Kth { .. } => debug(self, f),
        }
    }
}
