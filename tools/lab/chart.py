# SPDX-License-Identifier: MIT
"""The ladder as a picture, by gnuplot: SVG that takes its ink from the page, light or dark.

Each line is labelled beside its points, the first label with the name of the line: there is no key to look up.
"""
import math
import re
import shutil
import statistics
import subprocess

from testbed import Trouble

KINDS = {"copy": "--copy", "splice": "--splice", "auto": "--ink"}  # the first of a rung's name: a colour of style.css
COLOURS = {"--copy": "#c00001", "--splice": "#c00002", "--ink": "#c00003"}  # stand for them until gnuplot is done
WIDTH, HEIGHT = 420, 350             # pixels, as all that follows
LEFT, RIGHT, TOP, BOTTOM = 74, 404, 44, 284  # of what is drawn in, without its axes
FONT, LETTER, LINE = 12, 7.6, 13     # of labels: size, room that a letter takes at most, height
POINT = 5                            # room round the middle of a point
DIRECT = "no forwarder"


def _of(samples, figure):
    values = [s[figure] for s in samples if s and figure in s]
    return statistics.median(values) if values else None


def _series(by_rung, kind):
    for name, samples in by_rung.items():
        if name.split("-")[0] == kind and any(samples):
            yield _of(samples, "bytes_per_call"), _of(samples, "gbit_s"), name.partition("-")[2].upper()


class Plane:
    """Where in the picture a value is."""

    def __init__(self, points, direct):
        xs, ys = [p[0] for p in points], [p[1] for p in points] + [direct or 0]
        self.x_range, self.y_max = (min(xs) / 1.5, max(xs) * 1.5), max(ys) * 1.15

    def at(self, x, y):
        low, high = map(math.log2, self.x_range)
        return (LEFT + (math.log2(x) - low) / (high - low) * (RIGHT - LEFT),
                BOTTOM - y / self.y_max * (BOTTOM - TOP))


class Box:
    """A rectangle, by its middle."""

    def __init__(self, x, y, width, height):
        self.x, self.y, self.width, self.height = x, y, width, height

    def overlap(self, other):
        """In pixels of the smaller of both directions, 0 if they do not."""
        return max(0, min((self.width + other.width) / 2 - abs(self.x - other.x),
                          (self.height + other.height) / 2 - abs(self.y - other.y)))


class Labels:
    """Texts that are put, one after the other, where they cover least."""

    def __init__(self):
        self.put, self.points, self.lines = [], [], []

    def line(self, line):
        """Its points should not be covered, and what is between them neither, if it can be."""
        self.points += [Box(x, y, 2 * POINT, 2 * POINT) for x, y in line]
        for (x, y), (to_x, to_y) in zip(line, line[1:]):
            steps = max(1, int(math.hypot(to_x - x, to_y - y) / 4))
            self.lines += [Box(x + (to_x - x) * n / steps, y + (to_y - y) * n / steps, 2, 2) for n in range(steps)]

    def dashes(self, y):
        self.lines += [Box(x, y, 4, 2) for x in range(LEFT, RIGHT, 4)]

    def _cost(self, box, distance):
        outside = (max(0, LEFT + box.width / 2 - box.x) + max(0, box.x + box.width / 2 - WIDTH + 2) +
                   max(0, TOP - 12 + box.height / 2 - box.y) + max(0, box.y + box.height / 2 - BOTTOM + 2))
        return (1000 * outside + 1000 * sum(box.overlap(b) for b, *_ in self.put) +
                100 * sum(box.overlap(b) for b in self.points) + 5 * sum(box.overlap(b) for b in self.lines) + distance)

    def beside(self, x, y, text, colour):
        """Near a point: in one of 16 directions, as close as it can be."""
        width, tried = len(text) * LETTER, []
        for distance in range(0, 60, 4):
            for n in range(16):
                turn = n * math.tau / 16
                box = Box(x + math.cos(turn) * (POINT + 2 + distance + width / 2),
                          y + math.sin(turn) * (POINT + 2 + distance + LINE / 2), width, LINE)
                tried.append((self._cost(box, distance), len(tried), box))
        self.put.append((min(tried)[2], text, colour))

    def at(self, x, y, text, colour):
        self.put.append((Box(x, y, len(text) * LETTER, LINE), text, colour))

    def written(self):
        """In the words of gnuplot."""
        for box, text, colour in self.put:
            yield (f'set label "{text}" at screen {box.x / WIDTH:.4f},{1 - box.y / HEIGHT:.4f} center '
                   f'font ",{FONT}" textcolor rgb "{COLOURS[colour]}"')


def _labels(series, direct, plane):
    """The labels of all lines: those of auto first, which has a single point, then splice."""
    labels = Labels()
    for points in series.values():
        labels.line([plane.at(x, y) for x, y, _ in points])
    if direct is not None:
        y = plane.at(1, direct)[1]
        labels.dashes(y)
        labels.at(LEFT + 4 + len(DIRECT) * LETTER / 2, y - 9, DIRECT, "--ink")
    for kind, points in reversed(series.items()):
        for n, (x, y, size) in enumerate(points):
            text = f"{kind} {size}".strip() if not n else size
            labels.beside(*plane.at(x, y), text, KINDS[kind])
    return labels


def _frame(title, plane):
    sizes = ", ".join(f'"{n}K" {n * 1024}' for n in (8, 16, 32, 64, 128, 256, 512, 1024))
    return [f'set terminal svg size {WIDTH},{HEIGHT} dynamic font "sans-serif,14"', f'set title "{title}"',
            "set logscale x 2", 'set xlabel "bytes a call"', 'set ylabel "Gbit/s"',
            f"set lmargin at screen {LEFT / WIDTH}", f"set rmargin at screen {RIGHT / WIDTH}",
            f"set tmargin at screen {1 - TOP / HEIGHT}", f"set bmargin at screen {1 - BOTTOM / HEIGHT}",
            "set xrange [{}:{}]".format(*plane.x_range), f"set yrange [0:{plane.y_max}]", f"set xtics ({sizes})",
            "set border 3", "set tics nomirror", "set grid ytics", "unset key"]


def _drawn(lines):
    """Return: <svg>, in the colours of the page."""
    done = subprocess.run(["gnuplot"], input="\n".join([*lines, ""]), capture_output=True, text=True, check=False)
    if done.returncode:
        raise Trouble(f"gnuplot: {done.stderr.strip()}")
    svg = done.stdout[done.stdout.index("<svg"):]
    for variable, colour in COLOURS.items():
        rgb = r"rgb\(\s*%d,\s*%d,\s*%d\)" % tuple(bytes.fromhex(colour[1:]))
        svg = re.sub(f"(?i){rgb}|{colour}", f"var({variable})", svg)
    svg = re.sub(r"([\"'])(?:black|rgb\(\s*0,\s*0,\s*0\))\1", '"currentColor"', svg)
    return re.sub(r"<title>.*?</title>|<desc>.*?</desc>|xmlns(:xlink)?=\"[^\"]*\"", "", svg, flags=re.S)


def ladder(title, by_rung):
    """@by_rung: {rung: samples}. Return: <svg>"""
    if not shutil.which("gnuplot"):
        raise Trouble("charts are drawn by gnuplot, which is not installed; try: apt install gnuplot-nox")
    series = {kind: sorted(_series(by_rung, kind)) for kind in KINDS}
    direct = _of(by_rung.get("direct", []), "gbit_s")
    all_points = [p for points in series.values() for p in points]
    if not all_points:
        raise Trouble(f"{title}: nothing to draw, every sample has failed")
    plane = Plane(all_points, direct)
    plots, data = [], []
    for kind, points in series.items():
        if points:
            plots.append('"-" using 1:2 with linespoints pointtype 7 pointsize 0.8 linewidth 2 '
                         f'linecolor rgb "{COLOURS[KINDS[kind]]}"')
            data += [f"{x} {y}" for x, y, _ in points] + ["e"]
    if direct is not None:
        plots.append(f'{direct} with lines dashtype 2 linecolor rgb "{COLOURS["--ink"]}"')
    return _drawn([*_frame(title, plane), *_labels(series, direct, plane).written(), "plot " + ", ".join(plots), *data])


def alone(title, by_rung):
    """The same as a file of its own: ink for a light ground and a dark one."""
    svg = ladder(title, by_rung)
    for variable, colour in (("--copy", "#b45f1a"), ("--splice", "#1f77b4"), ("--ink", "#777777")):
        svg = svg.replace(f"var({variable})", colour)
    return svg.replace("<svg", '<svg color="#777777" xmlns="http://www.w3.org/2000/svg" '
                       'xmlns:xlink="http://www.w3.org/1999/xlink"', 1) + "\n"
