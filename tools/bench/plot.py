# SPDX-License-Identifier: MIT
"""A picture of what was measured, by gnuplot: a bar a contestant, for one figure of one workload."""
import shutil
import statistics
import subprocess

from testbed import Trouble
from workloads import FIGURES

def draw(path, workload, about, figure, samples):
    """@samples as for table.write()."""
    if not shutil.which("gnuplot"):
        raise Trouble("--svg needs gnuplot: apt install gnuplot-nox")
    bars = [(who, statistics.median(s[figure] for s in all_ if s and figure in s))
            for who, all_ in samples.items() if any(s and figure in s for s in all_)]
    if not bars:
        raise Trouble(f"{workload} has no figure {figure}; there are {', '.join(FIGURES)}")
    tics = ", ".join(f'"{who}" {i}' for i, (who, _) in enumerate(bars, 1))
    text = ['set terminal svg size 760,%d font "sans-serif,13" background "white"' % (90 + 28 * len(bars)),
            f'set output "{path}"', f'set title "{workload}: {about}\\n{FIGURES[figure][0]}"',
            "set style fill solid", "unset key", "set grid xtics", "set xrange [0:*]",
            f"set yrange [{len(bars) + 0.6}:0.4]", f"set ytics ({tics})",
            'plot "-" using (0.5*$2):1:(0.5*$2):(0.35):3 with boxxyerrorbars linecolor rgbcolor variable']
    text += [f"{i} {value} {0x2a7ab0 if who.startswith('sluice') else 0x9a9a9a}" for i, (who, value) in enumerate(bars, 1)]
    subprocess.run(["gnuplot"], input="\n".join(text + ["e", ""]), text=True, check=True)
