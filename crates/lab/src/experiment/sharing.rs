//! Units shared by several processes in one folder, on one machine or many.
//!
//! **Statement.** Whoever creates `units/UNIT.claim.G` works on the unit; creation is exclusive (`O_EXCL`), which also network
//! folders keep. G counts owners: the claim of an owner that died is not removed but followed by the next, created in the
//! same exclusive way, so that of many who see a dead claim one takes it over. The highest G is the owner. After a claim the
//! unit is looked up once more, since it may have been finished in between.
//! **Conventions.** A claim names machine, process and its start. On the same machine an owner is dead if its process is gone;
//! elsewhere if the claim's time of modification, which the owner renews, has not changed for a while by the clock of the one who
//! waits: clocks of two machines are never compared.
//! **Error.** A machine that is cut off for longer than that and comes back does its unit twice. Both results have the same bits.
//! **Checked by** tests/lab/sharing.rs, and by killing processes in crates/cli/tests/interruptions/shard.rs.

use minvel::Error;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How often an owner says that it lives.
const BEAT: Duration = Duration::from_secs(5);
/// How long a claim of another machine may be silent. Network folders may show a change up to a minute late.
const PATIENCE: Duration = Duration::from_secs(90);

/// How this process shares units with others.
#[derive(Clone, Debug)]
pub struct Sharing {
    /// Where it begins: part `index` of `count`, from 0. All units are its own nevertheless.
    pub index: usize,
    /// See `index`.
    pub count: usize,
    /// How long a claim of another machine may be silent before its owner counts as dead.
    pub patience: Duration,
    /// Units of which the observer knows that they are finished.
    told: Arc<Mutex<BTreeSet<PathBuf>>>,
    /// Claims of other machines: their time of modification, and since when it is known.
    seen: Arc<Mutex<BTreeMap<PathBuf, (SystemTime, Instant)>>>,
}

/// Who works on a unit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// Name of the machine.
    pub machine: String,
    /// What tells machines, and worlds of process numbers on one machine, apart; empty where the system does not say.
    world: String,
    /// Number of the process.
    pub pid: u32,
    /// When the process began, in ticks of its system, since numbers are used again.
    began: u64,
    /// When the claim was made, in seconds since 1970.
    since: u64,
}

/// A unit that is this process's own until it is dropped.
pub struct Claim {
    folder: PathBuf,
    unit: String,
    generation: u64,
    /// Dropped to end the heartbeat.
    alive: Option<Sender<()>>,
    heart: Option<JoinHandle<()>>,
}

impl Sharing {
    /// Part `index` of `count`, from 0.
    pub fn new(index: usize, count: usize) -> Self {
        assert!(index < count, "sharing: part {index} of {count}");
        Sharing { index, count, patience: PATIENCE, told: Arc::default(), seen: Arc::default() }
    }

    /// Whether this is the first time that a unit is known to be finished: there are several passes over them.
    pub(super) fn is_news(&self, folder: &Path, unit: &str) -> bool {
        self.told.lock().unwrap_or_else(PoisonError::into_inner).insert(folder.join(unit))
    }

    /// Makes a unit one's own, unless somebody who lives works on it.
    pub fn claim(&self, folder: &Path, unit: &str) -> Result<Option<Claim>, Error> {
        let generation = match last(folder, unit)? {
            None => 0,
            Some(generation) if self.is_dead(&path(folder, unit, generation)) => generation + 1,
            Some(_) => return Ok(None),
        };
        Claim::create(folder, unit, generation)
    }

    /// Whether a claim would succeed now.
    pub fn is_free(&self, folder: &Path, unit: &str) -> Result<bool, Error> {
        Ok(last(folder, unit)?.is_none_or(|generation| self.is_dead(&path(folder, unit, generation))))
    }

    /// Who works on a unit, if somebody does.
    pub fn owner(&self, folder: &Path, unit: &str) -> Result<Option<Owner>, Error> {
        let Some(generation) = last(folder, unit)? else { return Ok(None) };
        Ok(fs::read(path(folder, unit, generation)).ok().and_then(|text| serde_json::from_slice(&text).ok()))
    }

    fn is_dead(&self, path: &Path) -> bool {
        // opened first, which makes a network folder look again
        let Ok(mut file) = File::open(path) else { return false };
        let Ok(modified) = file.metadata().and_then(|data| data.modified()) else { return false };
        let mut text = vec![];
        let owner = file.read_to_end(&mut text).ok().and_then(|_| serde_json::from_slice::<Owner>(&text).ok());
        match owner {
            Some(owner) if !owner.world.is_empty() && owner.world == world() => {
                process_began(owner.pid) != Some(owner.began)
            }
            _ => {
                let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
                let known = seen.entry(path.to_path_buf()).or_insert((modified, Instant::now()));
                if known.0 != modified {
                    *known = (modified, Instant::now());
                }
                known.1.elapsed() >= self.patience
            }
        }
    }
}

impl Owner {
    fn here() -> Self {
        let pid = std::process::id();
        let since = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |age| age.as_secs());
        Owner { machine: machine(), world: world(), pid, began: process_began(pid).unwrap_or(0), since }
    }
}

impl Claim {
    /// `None` if another was faster.
    fn create(folder: &Path, unit: &str, generation: u64) -> Result<Option<Self>, Error> {
        let path = path(folder, unit, generation);
        let mut file = match File::options().write(true).create_new(true).open(&path) {
            Err(e) if e.kind() == ErrorKind::AlreadyExists => return Ok(None),
            file => file.map_err(|e| Error::file(&path, "create", e))?,
        };
        let text = serde_json::to_vec(&Owner::here()).expect("an owner is plain data");
        file.write_all(&text).map_err(|e| Error::file(&path, "write", e))?;
        let (alive, ended) = mpsc::channel::<()>();
        let beat = move || {
            while ended.recv_timeout(BEAT) == Err(RecvTimeoutError::Timeout) {
                // where it fails, the next may succeed
                let _ = file.set_modified(SystemTime::now());
            }
        };
        let heart = std::thread::Builder::new().name("heartbeat".into()).spawn(beat).ok();
        Ok(Some(Claim { folder: folder.to_path_buf(), unit: unit.to_string(), generation, alive: Some(alive), heart }))
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        drop(self.alive.take());
        let _ = self.heart.take().map(JoinHandle::join);
        // those of dead owners, then its own
        for generation in generations(&self.folder, &self.unit).into_iter().flatten().filter(|g| *g <= self.generation)
        {
            let _ = fs::remove_file(path(&self.folder, &self.unit, generation));
        }
    }
}

fn path(folder: &Path, unit: &str, generation: u64) -> PathBuf {
    folder.join(format!("{unit}.claim.{generation}"))
}

/// Claims of a unit in the order in which they were made.
fn generations(folder: &Path, unit: &str) -> Result<Vec<u64>, Error> {
    let wrong = |e| Error::file(folder, "read", e);
    let mut found = vec![];
    for entry in fs::read_dir(folder).map_err(wrong)? {
        let name = entry.map_err(wrong)?.file_name();
        let rest: Option<u64> =
            name.to_str().and_then(|name| name.strip_prefix(unit)?.strip_prefix(".claim.")?.parse().ok());
        found.extend(rest);
    }
    found.sort_unstable();
    Ok(found)
}

fn last(folder: &Path, unit: &str) -> Result<Option<u64>, Error> {
    Ok(generations(folder, unit)?.pop())
}

fn line(file: &str) -> Option<String> {
    fs::read_to_string(file).ok().map(|text| text.trim().to_string()).filter(|text| !text.is_empty())
}

/// Name of this machine.
fn machine() -> String {
    line("/proc/sys/kernel/hostname").or_else(|| std::env::var("HOSTNAME").ok()).unwrap_or_else(|| "unknown".into())
}

/// Start of the system and world of process numbers: two containers of one machine have the same name, perhaps, and the same
/// process numbers.
fn world() -> String {
    let numbers = fs::read_link("/proc/self/ns/pid").ok().map(|link| link.to_string_lossy().into_owned());
    let both = line("/proc/sys/kernel/random/boot_id").zip(numbers);
    both.map_or(String::new(), |(boot, numbers)| format!("{boot} {numbers}"))
}

/// When a process of this machine began; `None` if there is none of that number that lives.
fn process_began(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // the name, in parentheses, may hold anything
    let mut fields = status.rsplit_once(") ")?.1.split(' ');
    let is_over = matches!(fields.next()?, "Z" | "X");
    (!is_over).then(|| fields.nth(18)?.parse().ok())?
}
