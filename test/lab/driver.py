# SPDX-License-Identifier: MIT
"""Runs the lab as somebody would, with the build under test, in namespaces and a subnet of its own; reads what it says."""
import json
import os
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "test", "daemon"))

from kit import check, equal  # noqa: E402

NAME = f"slt{os.getpid()}"
NET = f"10.{100 + os.getpid() % 100}"
BRIEF = ("--patience", "0", "--rounds", "1", "--seconds", "0.2")


def command(t, *args, root=ROOT):
    """The words that run a command of the lab with the build under test."""
    build = os.path.dirname(os.path.dirname(t.binary))
    place = [] if args[0] == "quick" else ["--name", NAME, "--net", NET]
    return [os.path.join(root, "tools", "lab", "run"), args[0], *place, "--build", build, *args[1:]]


def lab(t, *args, **kwargs):
    """Runs a command to its end. Return: (exit status, stdout, stderr)"""
    p = subprocess.run(command(t, *args), capture_output=True, text=True, check=False,
                       **{"timeout": 60, **kwargs})
    return p.returncode, p.stdout, p.stderr


def well(t, *args, **kwargs):
    """The same of one that must succeed, without a word on stderr. Return: stdout"""
    status, out, err = lab(t, *args, **kwargs)
    check(status == 0 and not err, f"lab {args}: exit status {status}: {err[-1500:]}{out[-300:]}")
    return out


def table(out, title):
    """The first table behind a title. Return: {row: {column: cell}}"""
    lines = out[out.index(title):].splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("|"))
    rows = []
    for line in lines[start:]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return {row[0]: dict(zip(rows[0][1:], row[1:])) for row in rows[2:]}


def results(path):
    with open(path) as f:
        return json.load(f)


def agrees(cells, samples, columns):
    """Whether the cells of a row are the medians of the samples."""
    for column, (key, form) in columns.items():
        values = [s[key] for s in samples]
        equal(cells[column].split()[0], format(statistics.median(values), form), f"{column}, of {values}")
