//! `--shard`: this process is one of several that share the units of a run in one folder.

use minvel::Error;
use minvel_lab::experiment::Sharing;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

/// Between two looks at units that others work on: at first, and at most.
const LOOK: [Duration; 2] = [Duration::from_millis(50), Duration::from_secs(1)];

/// Ranks that launchers give, each with the number of processes.
const RANKS: [(&str, &str); 3] =
    [("SLURM_PROCID", "SLURM_NTASKS"), ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"), ("PMI_RANK", "PMI_SIZE")];

/// Which of the processes this is, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    index: usize,
    count: usize,
}

impl FromStr for Shard {
    type Err = String;

    /// `k/n`, from 1, or `auto`.
    fn from_str(text: &str) -> Result<Self, String> {
        if text == "auto" {
            return Shard::found(|name| std::env::var(name).ok());
        }
        let number = |text: &str| text.trim().parse::<usize>().ok().filter(|n| *n > 0);
        let parts = text.split_once('/').and_then(|(k, n)| Some((number(k)?, number(n)?)));
        match parts {
            Some((k, n)) if k <= n => Ok(Shard { index: k - 1, count: n }),
            Some((k, n)) => Err(format!("there is no process {k} of {n}; expected K/N with K from 1 to {n}")),
            None => Err("expected K/N, for example 3/8 for the third of eight processes, or auto".into()),
        }
    }
}

impl Shard {
    /// The only process.
    pub const ALONE: Shard = Shard { index: 0, count: 1 };

    /// One of several parts of this process.
    pub fn part(self, k: usize, of: usize) -> Self {
        Shard { index: self.index * of + k, count: self.count * of }
    }

    /// As the launcher says in variables of the environment: an array of jobs, ranks within a job, or both.
    fn found(variable: impl Fn(&str) -> Option<String>) -> Result<Self, String> {
        let number = |name: &str| -> Result<Option<usize>, String> {
            let Some(text) = variable(name).filter(|text| !text.is_empty()) else { return Ok(None) };
            text.parse().map(Some).map_err(|_| format!("{name} is `{text}`, which is no number"))
        };
        let array = match (number("SLURM_ARRAY_TASK_ID")?, number("SLURM_ARRAY_TASK_COUNT")?) {
            (Some(id), Some(count)) => {
                let (first, step) = (number("SLURM_ARRAY_TASK_MIN")?, number("SLURM_ARRAY_TASK_STEP")?);
                Some((id.saturating_sub(first.unwrap_or(0)) / step.unwrap_or(1).max(1), count))
            }
            _ => None,
        };
        let mut rank = None;
        for (index, count) in RANKS {
            if let (None, Some(index), Some(count)) = (rank, number(index)?, number(count)?) {
                rank = Some((index, count));
            }
        }
        let (index, count) = match (array, rank) {
            (Some((task, tasks)), Some((rank, ranks))) => (task * ranks + rank, tasks * ranks),
            (Some(one), None) | (None, Some(one)) => one,
            (None, None) => {
                let names: Vec<String> = RANKS.iter().map(|(index, count)| format!("{index} and {count}")).collect();
                return Err(format!(
                    "auto: the environment names no process; expected SLURM_ARRAY_TASK_ID and SLURM_ARRAY_TASK_COUNT, {}; \
                     or give K/N",
                    names.join(", ")
                ));
            }
        };
        // a rank beyond the count only shifts where it begins
        Ok(Shard { index: index % count.max(1), count: count.max(1) })
    }

    /// How its process shares units.
    pub fn sharing(self) -> Sharing {
        Sharing::new(self.index, self.count)
    }
}

/// Waits until one of the units is finished or free.
pub struct Wait<'a> {
    /// How units are shared.
    pub sharing: &'a Sharing,
    /// Units that others work on, with the folder of their files.
    pub units: Vec<(PathBuf, String)>,
}

impl Wait<'_> {
    /// Returns when there is something to do, or when `stop` says so.
    pub fn for_change(&self, stop: impl Fn() -> bool) -> Result<(), Error> {
        let mut pause = LOOK[0];
        while !stop() {
            for (folder, unit) in &self.units {
                let is_finished = folder.join(format!("{unit}.json")).is_file();
                if is_finished || self.sharing.is_free(folder, unit)? {
                    return Ok(());
                }
            }
            std::thread::sleep(pause);
            pause = (2 * pause).min(LOOK[1]);
        }
        Ok(())
    }

    /// Who works on the units, in words.
    pub fn owners(&self) -> String {
        let owner = |(folder, unit): &(PathBuf, String)| {
            let owner = self.sharing.owner(folder, unit).ok().flatten();
            owner.map_or(unit.clone(), |o| format!("{unit} (process {} on {})", o.pid, o.machine))
        };
        self.units.iter().map(owner).collect::<Vec<_>>().join(", ")
    }
}

/// An error unless all processes are told the same folder.
pub fn check_folder(shard: Option<Shard>, out: Option<&Path>, resume: Option<&Path>) -> Result<(), Error> {
    if shard.is_some() && out.is_none() && resume.is_none() {
        let what = "--shard requires --out DIR, the folder that all processes share (or --resume DIR to join a run)";
        return Err(Error::config(what));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(variables: &[(&str, &str)]) -> Result<Shard, String> {
        Shard::found(|name| variables.iter().find(|(own, _)| *own == name).map(|(_, value)| value.to_string()))
    }

    #[test]
    fn launchers_are_understood() {
        let shard = |index, count| Ok(Shard { index, count });
        let array = [("SLURM_ARRAY_TASK_ID", "7"), ("SLURM_ARRAY_TASK_COUNT", "4"), ("SLURM_ARRAY_TASK_MIN", "4")];
        assert_eq!(found(&array), shard(3, 4));
        assert_eq!(
            found(&[&array[..2], &[("SLURM_ARRAY_TASK_MIN", "1"), ("SLURM_ARRAY_TASK_STEP", "2")]].concat()),
            shard(3, 4)
        );
        let ranks = [("SLURM_PROCID", "1"), ("SLURM_NTASKS", "2")];
        assert_eq!(found(&ranks), shard(1, 2));
        assert_eq!(found(&[&array[..], &ranks].concat()), shard(7, 8));
        assert_eq!(found(&[("OMPI_COMM_WORLD_RANK", "0"), ("OMPI_COMM_WORLD_SIZE", "5")]), shard(0, 5));
        assert_eq!(found(&[("PMI_RANK", "2"), ("PMI_SIZE", "3")]), shard(2, 3));
        assert!(found(&[]).unwrap_err().contains("SLURM_ARRAY_TASK_ID"));
        assert!(found(&[("PMI_RANK", "x"), ("PMI_SIZE", "3")]).unwrap_err().contains("PMI_RANK is `x`"));
    }

    #[test]
    fn parts_are_counted_from_one() {
        assert_eq!("3/8".parse(), Ok(Shard { index: 2, count: 8 }));
        for wrong in ["3/2", "0/2", "1/0", "3", "a/b", "-1/2", ""] {
            assert!(wrong.parse::<Shard>().is_err(), "{wrong}");
        }
        assert!("3/2".parse::<Shard>().unwrap_err().contains("K from 1 to 2"));
    }
}
