# SPDX-License-Identifier: MIT
"""Runs the lab, or its load, as somebody would, and reads what it says.

With the build under test, in namespaces and a subnet of its own.
"""
import json
import os
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "test", "daemon"))

from kit import check, equal  # noqa: E402
from kit.sluice import tied  # noqa: E402

NAME = f"slt{os.getpid()}"
NET = f"10.{100 + os.getpid() % 100}"
BRIEF = ("--patience", "0", "--rounds", "1", "--seconds", "0.2")


def build(t):
    """The build under test."""
    return os.path.dirname(os.path.dirname(t.binary))


def command(t, *args, root=ROOT):
    """The words that run a command of the lab with the build under test."""
    place = [] if args[0] in ("quick", "demo") else ["--name", NAME, "--net", NET]
    lab_run = os.path.join(root, "tools", "lab", "run")
    # This Python need not be one that another user may run, who has a copy of his own.
    return [*[sys.executable] * (root == ROOT), lab_run, args[0], *place, "--build", build(t), *args[1:]]


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


class Load:
    """A run of sluice-load. @wrap: words of strace to put before it"""

    def __init__(self, t, *args, wrap=()):
        program = os.path.join(build(t), "tools", "load", "sluice-load")
        # LeakSanitizer cannot work while it is traced.
        env = dict(os.environ, ASAN_OPTIONS="detect_leaks=0") if wrap else None
        self.process = subprocess.Popen(
            tied([*wrap, program, *map(str, args)]), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, env=env)
        t.keep(self)

    def result(self, within=20):
        """Waits for its end. Return: (exit status, what it counted or None, stderr)"""
        out, err = self.process.communicate(timeout=within)
        return self.process.returncode, json.loads(out) if out.startswith("{") else None, err

    def well(self, within=20):
        """The same of one that must succeed, without a word on stderr. Return: what it counted"""
        status, got, err = self.result(within)
        equal((status, err), (0, ""), f"{self.process.args[1:]}: exit status and stderr")
        return got

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()


class Served(Load):
    """The server of the load, at a free port."""

    def __init__(self, t):
        super().__init__(t, "serve", "127.0.0.1:0")
        self.where = self.process.stdout.readline().split()[1]

    def end(self):
        """Return: what it counted."""
        self.process.terminate()
        return self.well()
