"""Chooses the settings of learnt energies (`[energies]` of minvel fit) by validation rows of data that no table uses.

Writes data of known laws (a mixture of 40 projected normals on S2 of widths 0.01 to 0.2, a ring and two bumps on T2), adds
pairs and quadruples of angles of a table of torsions if one is given, fits each with every rung of a ladder of settings, and
prints what each energy gained over the kernels on the validation rows (never the test rows), with its step and its weight.

    python bench/energy_ladder.py --minvel target/release/minvel --work target/energy-trials [--rna rna.tsv] [--jobs 2]

Needs Python alone. The seeds are 101 and up: the experiments use others.
"""
import argparse
import json
import math
import random
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path


def sphere_mixture(rows, seed):
    """Rows of x, y, z: 40 projected normals with equal weights."""
    rng = random.Random(seed)
    unit = lambda v: [x / math.sqrt(sum(y * y for y in v)) for x in v]
    centres = [unit([rng.gauss(0, 1) for _ in range(3)]) for _ in range(40)]
    widths = [rng.uniform(0.01, 0.2) for _ in range(40)]
    for _ in range(rows):
        k = rng.randrange(40)
        yield unit([c + widths[k] * rng.gauss(0, 1) for c in centres[k]])


def torus_ring(rows, seed):
    """Rows of two angles: a ring, and two bumps of different width."""
    rng = random.Random(seed)
    for _ in range(rows):
        u = rng.random()
        if u < 0.5:
            a, r = rng.uniform(0, 2 * math.pi), 1.2 + 0.1 * rng.gauss(0, 1)
            yield [r * math.cos(a), r * math.sin(a)]
        else:
            c, s = ((2.2, 2.2), 0.3) if u < 0.8 else ((-2.4, 1.0), 0.08)
            yield [((x + s * rng.gauss(0, 1) + math.pi) % (2 * math.pi)) - math.pi for x in c]


def torsions(path, columns):
    """Angles in radians of some columns of a table, which are named by their numbers."""
    for line in Path(path).read_text().splitlines():
        cells = line.split("\t")
        try:
            yield [math.radians(float(cells[c - 1])) for c in columns]
        except (ValueError, IndexError):
            continue


def write(path, names, rows):
    path.write_text("\n".join([",".join(names)] + [",".join(f"{x:.9g}" for x in row) for row in rows]) + "\n")


# name: options of minvel fit
SETS = {
    "s2-16k": ["--manifold", "sphere:2", "--layout", "xyz"],
    "t2-ring": ["--manifold", "torus:2", "--units", "radians", "--trust"],
    "rna-t2": ["--manifold", "torus:2", "--units", "radians", "--trust"],
    "rna-t4": ["--manifold", "torus:4", "--units", "radians", "--trust"],
    "rna-t7": ["--manifold", "torus:7", "--units", "radians", "--trust"],
}

# Each rung changes some settings of the defaults.
LADDER = {
    "default": [],
    "fast": ["energies.rate=3e-3"],
    "long": ["energies.steps=5000"],
    "two": ["energies.seeds=2"],
    "wide": ["energies.network.hidden=[256,256]", "energies.batch=256"],
    "small": ["energies.network.hidden=[64,64]", "energies.rate=3e-3", "energies.batch=256"],
    "low": ["energies.network.frequency=2.0"],
    "high": ["energies.network.frequency=8.0", "energies.network.spread=16.0"],
    "off": ["energies.off=0.1"],
}


def fit(minvel, work, name, rung, seed):
    out = work / "runs" / f"{name}.{rung}.{seed}"
    summary = out / "summary.json"
    if not summary.exists():
        sets = [part for change in LADDER[rung] for part in ("--set", change)]
        command = [minvel, "fit", str(work / f"{name}.csv"), *SETS[name], *sets, "--set", "seeds=2", "--seed", str(seed)]
        done = subprocess.run([*command, "--threads", "1", "--out", str(out), "--json"], capture_output=True, text=True)
        if done.returncode:
            return f"{name:8} {rung:14} failed: {done.stderr.strip()[-300:]}"
    all_ = json.loads(summary.read_text())
    tried = all_["history"]["tried"]
    words = [f"{name:8} {rung:14} {all_['seconds']:6.0f} s"]
    for t in tried:
        gain = t["gain"]
        words.append(f"\n    {t['name']:48} gains {gain['mean']:+.4f} ± {gain['std_error']:.4f}, weight {t['weight']:.2f}, steps {t['best_step']}")
    return " ".join(words)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minvel", required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--rna", help="table of torsions in degrees: seven angles from column 3 on")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--rungs", default=",".join(LADDER))
    parser.add_argument("--seed", type=int, default=101)
    parser.add_argument("--only-data", action="store_true", help="write the data and stop")
    arguments = parser.parse_args()
    work = arguments.work
    (work / "runs").mkdir(parents=True, exist_ok=True)
    makers = {
        "s2-16k": (["x", "y", "z"], lambda: sphere_mixture(20_000, 101)),
        "t2-ring": (["a", "b"], lambda: torus_ring(10_000, 101)),
        "rna-t2": (["a", "b"], lambda: torsions(arguments.rna, [4, 5])),
        "rna-t4": (["a", "b", "c", "d"], lambda: torsions(arguments.rna, [3, 5, 7, 9])),
        "rna-t7": (list("abcdefg"), lambda: torsions(arguments.rna, range(3, 10))),
    }
    names = [name for name in arguments.sets.split(",") if name in makers]
    for name in names:
        path = work / f"{name}.csv"
        if not path.exists() and (arguments.rna or not name.startswith("rna")):
            write(path, makers[name][0], makers[name][1]())
    if arguments.only_data:
        return
    units = [(name, rung) for rung in arguments.rungs.split(",") for name in names if (work / f"{name}.csv").exists()]
    with ThreadPoolExecutor(arguments.jobs) as pool:
        for text in pool.map(lambda unit: fit(arguments.minvel, work, *unit, arguments.seed), units):
            print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
