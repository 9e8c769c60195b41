"""The report of bench/compare-fit: its JSON as a page of Markdown and a figure."""

import json
import math

NAMES = {"sphere": "S²", "torus2": "T²", "plane": "R²", "torus7": "T⁷"}
PEERS = {"minvel": "minvel", "kernel-density": "KernelDensity (scikit-learn)", "gaussian-mixture": "GaussianMixture (scikit-learn)",
         "gaussian-kde": "gaussian_kde (scipy)", "fft-kde": "FFTKDE (KDEpy)"}
COLOURS = {"minvel": "#c0392b", "kernel-density": "#2471a3", "gaussian-mixture": "#1e8449", "gaussian-kde": "#7d3c98",
           "fft-kde": "#b9770e"}
QUIET_LOAD = 0.5  # before the first cell
GOALS = {"steepest_slope": 1.15, "fit_seconds": {100_000: 30, 1_000_000: 300}, "rows_per_second": {"torus7": 20_000},
         "rows_per_second_else": 200_000, "map_seconds": 1, "report_seconds": 3, "speedup_by_two": 1.8}

ABOUT = """\
minvel: the whole commands `minvel fit {options}` (with split, baselines, figures and report) and `minvel score` (with start,
loading the model, reading and writing). Peers: reading, tuning by held-out rows and fitting, without start and imports; scores of rows in
memory. minvel splits the rows into training, validation and test rows of its own (80, 10 and 10 %); the peers fit all of them. NLL: {test}
further rows, with respect to the volume of the manifold; the excess over the truth is paired. Every row is one run; `> N s`: the
cell (fit and score together) reached its limit of {limit} s, or {peer_limit} s of a peer; in brackets: not run, since fewer rows reached it.

How peers become densities on the manifold: KernelDensity (ball tree, rtol 1e-4, one process per thread to score) works on 3-vectors and on
(cos, sin) of angles, where its Gaussians are exactly von Mises–Fisher and von Mises kernels, and gets their normalisers.
GaussianMixture is fitted to 3-vectors and projected to the sphere (closed form), or fitted to angles cut where they are rarest, and
wrapped. gaussian_kde (one process per thread to score) works on 3-vectors, normalised on the sphere by quadrature, or on cut angles with
copies of the rows near the cut. FFTKDE (one thread) is a grid, interpolated linearly: R², T² with copies; it has no sphere and no grid in
seven dimensions. Each peer contains one n-th of a wide density, against single far test rows. The laws: `bench/fit_laws.py --help`;
GaussianMixture has the right family on T² and T⁷, and nearly so on S²."""


def number(value, form="{:.3g}"):
    if value is None:
        return "–"
    if abs(value) >= 1000:
        return f"{value:,.0f}".replace(",", " ")
    return form.format(value).replace("-", "−")


def timed(cell, key, limits, value=None):
    """A number of a cell, or what stands in its place."""
    limit = limits[cell["contender"] != "minvel"]
    if key in cell:
        return number(value if value is not None else cell[key])
    return {"slow": f"> {limit} s", "skipped": f"(> {limit} s)", "failed": "failed"}.get(cell["status"], "–")


def line(cell, limits):
    rate = timed(cell, "score_rows_per_second", limits)
    per_cpu = number(cell["score_rows"] / cell["score_cpu_seconds"]) if "score_cpu_seconds" in cell else "–"
    memory = number(cell["peak_bytes"] / 1e6) if "peak_bytes" in cell else "–"
    nll = f"{cell['nll']:.4f} ± {cell['nll_error']:.4f}" if "nll" in cell else "–"
    excess = f"{cell['excess']:.4f} ± {cell['excess_error']:.4f}" if "excess" in cell else "–"
    note = cell.get("note", "").splitlines()[0] if cell.get("note") else ""
    return (f"| {number(cell['rows'])} | {PEERS[cell['contender']]} | {timed(cell, 'fit_seconds', limits)} | "
            f"{timed(cell, 'fit_cpu_seconds', limits)} | {rate} | {per_cpu} | {memory} | {nll} | {excess} | {note} |")


# ---- slopes and goals -----------------------------------------------------------------------------------------------


def slope(points):
    """Of log y against log x by least squares; None with fewer than two points."""
    if len(points) < 2:
        return None
    x, y = ([math.log(p[i]) for p in points] for i in (0, 1))
    mean = sum(x) / len(x)
    return sum((a - mean) * b for a, b in zip(x, y)) / sum((a - mean) ** 2 for a in x)


def series(cells, law, contender, key):
    return [(c["rows"], c[key]) for c in cells if (c["law"], c["contender"]) == (law, contender) and key in c]


def present(cells, key):
    return list(dict.fromkeys(cell[key] for cell in cells))


def slopes(cells):
    found = []
    for law in present(cells, "law"):
        for contender in present(cells, "contender"):
            fit, rate = (series(cells, law, contender, key) for key in ("fit_seconds", "score_rows_per_second"))
            if len(fit) > 1:
                per_row = [(n, 1 / r) for n, r in rate]
                found.append({"law": law, "contender": contender, "from": fit[0][0], "to": fit[-1][0], "fit": slope(fit),
                              "score_per_row": slope(per_row)})
    return found


def matched(others, ours):
    """Those that are not worse than we are by more than our ±, that of the excess, which is paired on the same test rows."""
    return [o for o in others if "excess" in o and o["excess"] <= ours["excess"] + ours["excess_error"]]


def faster(sentence, rate, others):
    """Whether we score faster than all of these, and how many times as fast as the fastest."""
    if not others:
        return f"{sentence}: there is none", True
    best = max(others, key=lambda o: o["score_rows_per_second"])
    times = rate / best["score_rows_per_second"]
    return f"{sentence}: {times:.2g} times {PEERS[best['contender']]}", times > 1


def goals(cells, threads):
    """(sentence, met) for what was measured."""
    found = []
    for law in present(cells, "law"):
        ours = [c for c in cells if c["law"] == law and c["contender"] == "minvel" and c["status"] != "skipped"]
        wanted = GOALS["rows_per_second"].get(law, GOALS["rows_per_second_else"])
        for c in ours:
            at, rate = f"{NAMES[law]}, {number(c['rows'])} rows", c.get("score_rows_per_second")
            if rate is None:
                found.append((f"{at}: fit and score within the limit", False))
                continue
            found.append((f"{at}: scores at least {number(wanted)} rows a second: {number(rate)}", rate >= wanted))
            others = [o for o in cells if (o["law"], o["rows"]) == (law, c["rows"]) and o["contender"] != "minvel"
                      and "score_rows_per_second" in o]
            if others:
                alike = f"{at}: scores faster than every peer whose NLL is at most {c['excess_error']:.4f} worse"
                found += [faster(f"{at}: scores faster than every peer", rate, others), faster(alike, rate, matched(others, c))]
            if c["rows"] in GOALS["fit_seconds"]:
                most, took = GOALS["fit_seconds"][c["rows"]], c["fit_seconds"]
                found.append((f"{at}: fit in at most {most} s: {took:.0f} s", took <= most))
            for key, what in (("map_seconds", "a map"), ("report_seconds", "figures and report")):
                if key in c:
                    found.append((f"{at}: {what} in under {GOALS[key]} s: {c[key]:.2f} s", c[key] < GOALS[key]))
            for what in ("fit", "score"):
                if (alone := c.get(f"{what}_seconds_of_one_thread")) and threads == 2:
                    gain, most = alone / c[f"{what}_seconds"], ""
                    if what == "fit" and (beside := c.get("fit_seconds_of_one_thread_on_each_core")):
                        most = f" (two programs side by side, of one thread each: {2 * alone / beside:.2f})"
                    found.append((f"{at}: {what} with two threads at least {GOALS['speedup_by_two']} times as fast as with one: {gain:.2f}{most}",
                                  gain >= GOALS["speedup_by_two"]))
        steep, excess = slope(series(ours, law, "minvel", "fit_seconds")), series(ours, law, "minvel", "excess")
        if steep is not None:
            found.append((f"{NAMES[law]}: slope of fit at most {GOALS['steepest_slope']}: {steep:.2f}", steep <= GOALS["steepest_slope"]))
        if len(excess) > 1:
            falls = all(b < a for (_, a), (_, b) in zip(excess, excess[1:]))
            found.append((f"{NAMES[law]}: the excess over the truth falls with every step: "
                          + ", ".join(f"{e:.4f}" for _, e in excess), falls))
    return found


# ---- Markdown -------------------------------------------------------------------------------------------------------


def busy(facts):
    if facts["load_before"] and facts["load_before"][0] > QUIET_LOAD:
        return ["**Warning: other programs were running. Compare CPU seconds, and do not quote seconds.**", ""]
    return []


def markdown(report, name):
    facts, cells, limits = report["machine"], report["cells"], (report["limit"], report["peer_limit"])
    versions = ", ".join(f"{k} {v}" for k, v in report["versions"].items() if k != "minvel_sha256")
    load = f"; load before: {facts['load_before'][0]}" if facts["load_before"] else ""
    text = [f"# Densities of known laws, {facts['date']}", "",
            f"`{report['command']}` with the program of commit {report['commit']}: {facts['cpu']}, {facts['threads']} threads for everybody; "
            f"{versions}{load}. All numbers: [{name}.json]({name}.json).", "",
            *busy(facts), ABOUT.format(options=" ".join(report["fit_options"] or []), test=number(report["test_rows"]),
                                                limit=limits[0], peer_limit=limits[1]), "",
            f"![Seconds to fit]({name}.svg)"]
    for law in present(cells, "law"):
        here = [c for c in cells if c["law"] == law]
        truth = next((c["truth_nll"] for c in here if "truth_nll" in c), None)
        text += ["", f"## {NAMES[law]}: NLL of the truth {number(truth, '{:.4f}')}", "",
                 "| rows | contender | fit s | CPU s | rows scored per s | per CPU s | peak MB | NLL | excess | model |",
                 "|---:|---|---:|---:|---:|---:|---:|---:|---:|---|"] + [line(c, limits) for c in here]
    if found := slopes(cells):
        text += ["", "## Slopes of log seconds against log rows", "", "| law | contender | rows | fit | score, per row |",
                 "|---|---|---|---:|---:|"]
        text += [f"| {NAMES[s['law']]} | {PEERS[s['contender']]} | {number(s['from'])} to {number(s['to'])} | {s['fit']:.2f} | "
                 f"{number(s['score_per_row'], '{:.2f}')} |" for s in found]
    if reached := goals(cells, facts["threads"]):
        text += ["", "## Goals", "", "| goal: measured | |", "|---|---|"]
        text += [f"| {sentence} | {'met' if met else 'missed'} |" for sentence, met in reached]
    return "\n".join(text) + "\n"


# ---- figure ---------------------------------------------------------------------------------------------------------

PANEL, MARGIN, GAP = 220, 50, 30


def svg(report):
    """A panel per law: seconds to fit against rows, both logarithmic; a contender without a line has one finished cell."""
    cells = report["cells"]
    laws, known = present(cells, "law"), [c for c in cells if "fit_seconds" in c]
    if not known:
        return None
    ends = [[f(math.log10(v)) for f in (math.floor, math.ceil)] for v in
            (min(c["rows"] for c in known), max(c["rows"] for c in known), *(e(c["fit_seconds"] for c in known) for e in (min, max)))]
    x0, x1, y0, y1 = ends[0][0], max(ends[1][1], ends[0][0] + 1), ends[2][0], max(ends[3][1], ends[2][0] + 1)
    down = lambda seconds: MARGIN + PANEL * (y1 - math.log10(seconds)) / (y1 - y0)
    width, height = MARGIN + len(laws) * (PANEL + GAP), 2 * MARGIN + PANEL + 20 * len(PEERS)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" font-size="12">',
             f'<rect width="{width}" height="{height}" fill="white"/>']
    for i, law in enumerate(laws):
        left = MARGIN + i * (PANEL + GAP)
        across = lambda n: left + PANEL * (math.log10(n) - x0) / (x1 - x0)
        parts.append(f'<rect x="{left}" y="{MARGIN}" width="{PANEL}" height="{PANEL}" fill="none" stroke="#888"/>'
                     f'<text x="{left}" y="{MARGIN - 8}">{NAMES[law]}: seconds to fit against rows</text>')
        for e in range(x0, x1 + 1):
            parts.append(f'<text x="{across(10**e):.1f}" y="{MARGIN + PANEL + 16}" text-anchor="middle">1e{e}</text>')
        for e in range(y0, y1 + 1):
            y = down(10.0**e)
            parts.append(f'<line x1="{left}" x2="{left + PANEL}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>')
            if i == 0:
                parts.append(f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">1e{e}</text>')
        for contender in present(cells, "contender"):
            places = [f"{across(n):.1f},{down(s):.1f}" for n, s in series(cells, law, contender, "fit_seconds")]
            parts.append(f'<polyline points="{" ".join(places)}" fill="none" stroke="{COLOURS[contender]}" stroke-width="2"/>')
            parts += [f'<circle cx="{p.split(",")[0]}" cy="{p.split(",")[1]}" r="3" fill="{COLOURS[contender]}"/>' for p in places]
    for i, contender in enumerate(present(cells, "contender")):
        y = MARGIN + PANEL + 40 + 20 * i
        parts.append(f'<circle cx="{MARGIN + 5}" cy="{y - 4}" r="4" fill="{COLOURS[contender]}"/>'
                     f'<text x="{MARGIN + 16}" y="{y}">{PEERS[contender]}</text>')
    return "\n".join(parts) + "\n</svg>\n"


def write(report, base):
    """BASE.json, BASE.md and BASE.svg."""
    whole = report | {"slopes": slopes(report["cells"]),
                      "goals": [{"goal": sentence, "met": met} for sentence, met in goals(report["cells"], report["machine"]["threads"])]}
    for ending, text in (("json", json.dumps(whole, indent=1) + "\n"), ("md", markdown(report, base.name)), ("svg", svg(report))):
        if text:
            base.with_name(f"{base.name}.{ending}").write_text(text)
