# SPDX-License-Identifier: MIT
"""The ladder as a picture, by gnuplot: SVG that takes its ink from the page, light or dark."""
import re
import shutil
import statistics
import subprocess

from rig import Trouble

KINDS = {"copy": "--copy", "splice": "--splice", "auto": "--ink"}  # the first of a rung's name: a colour of style.css
COLOURS = {"--copy": "#c00001", "--splice": "#c00002", "--ink": "#c00003"}  # stand for them until gnuplot is done


def _of(samples, figure):
    values = [s[figure] for s in samples if s and figure in s]
    return statistics.median(values) if values else None


def _series(by_rung, kind):
    for name, samples in by_rung.items():
        if name.split("-")[0] == kind and any(samples):
            yield _of(samples, "bytes_per_call"), _of(samples, "gbit_s"), name


def ladder(title, by_rung):
    """@by_rung: {rung: samples}. Return: <svg>"""
    if not shutil.which("gnuplot"):
        raise Trouble("charts are drawn by gnuplot, which is not installed; try: apt install gnuplot-nox")
    series = {kind: sorted(_series(by_rung, kind)) for kind in KINDS}
    direct = _of(by_rung.get("direct", []), "gbit_s")
    points = [p for of_kind in series.values() for p in of_kind]
    if not points:
        raise Trouble(f"{title}: nothing to draw, every sample has failed")
    xs, ys = [p[0] for p in points], [p[1] for p in points] + [direct or 0]
    lines = ['set terminal svg size 420,350 dynamic font "sans-serif,14"', f'set title "{title}"',
             "set logscale x 2", 'set xlabel "bytes a call"', 'set ylabel "Gbit/s"',
             f"set xrange [{min(xs) / 1.5}:{max(xs) * 1.5}]", f"set yrange [0:{max(ys) * 1.15}]",
             "set xtics (" + ", ".join(f'"{n}K" {n * 1024}' for n in (8, 16, 32, 64, 128, 256, 512, 1024)) + ")",
             "set border 3", "set tics nomirror", "set grid ytics", "unset key"]
    plots, data = [], []
    for kind, points in series.items():
        if points:
            colour, side = COLOURS[KINDS[kind]], "-0.9" if kind == "splice" else "0.8"  # above or below its point
            plots.append('"-" using 1:2 with linespoints pointtype 7 pointsize 0.8 linewidth 2 '
                         f'linecolor rgb "{colour}"')
            plots.append(f'"-" using 1:2:3 with labels offset 0,{side} font ",12" textcolor rgb "{colour}"')
            data += [f"{x} {y}" for x, y, _ in points] + ["e"]
            data += [f'{x} {y} "{name.partition("-")[2]}"' for x, y, name in points] + ["e"]
    if direct is not None:
        plots.append(f'{direct} with lines dashtype 2 linecolor rgb "{COLOURS["--ink"]}"')
    done = subprocess.run(["gnuplot"], input="\n".join([*lines, "plot " + ", ".join(plots), *data, ""]),
                          capture_output=True, text=True, check=False)
    if done.returncode:
        raise Trouble(f"gnuplot: {done.stderr.strip()}")
    svg = done.stdout[done.stdout.index("<svg"):]
    for variable, colour in COLOURS.items():
        rgb = r"rgb\(\s*%d,\s*%d,\s*%d\)" % tuple(bytes.fromhex(colour[1:]))
        svg = re.sub(f"(?i){rgb}|{colour}", f"var({variable})", svg)
    svg = re.sub(r"([\"'])(?:black|rgb\(\s*0,\s*0,\s*0\))\1", '"currentColor"', svg)
    return re.sub(r"<title>.*?</title>|<desc>.*?</desc>|xmlns(:xlink)?=\"[^\"]*\"", "", svg, flags=re.S)


def alone(title, by_rung):
    """The same as a file of its own: ink for a light ground and a dark one."""
    svg = ladder(title, by_rung)
    for variable, colour in (("--copy", "#b45f1a"), ("--splice", "#1f77b4"), ("--ink", "#777777")):
        svg = svg.replace(f"var({variable})", colour)
    return svg.replace("<svg", '<svg color="#777777" xmlns="http://www.w3.org/2000/svg" '
                       'xmlns:xlink="http://www.w3.org/1999/xlink"', 1) + "\n"
