# SPDX-License-Identifier: MIT
"""What is on a page of lab report, and whether that is what its file of results has."""
import html.parser
import json
import os
import re
import statistics
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [os.path.join(ROOT, *folder)
                for folder in (("test", "daemon"), ("tools", "lab"), ("tools", "bench"))]

from kit import check, equal  # noqa: E402

import ladder     # noqa: E402
import perf_stat  # noqa: E402
import rr         # noqa: E402
import stacks     # noqa: E402

MARKS = ("<!doctype html><script>"
         f"var s = [{stacks.MARK_STACKS}], o = [{stacks.MARK_OPTIONS}];</script>")
LOADS = ("src", "href", "srcset", "xlink:href", "action", "data")


class Tables(html.parser.HTMLParser):
    """{id: [[what stands first, (data-value, as shown), ...], ...]}, and every attribute that could
    load something."""

    def __init__(self, page):
        super().__init__()
        self.tables, self.loads, self._row, self._cell, self._small = {}, [], None, None, False
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.loads += [(tag, k, v) for k, v in attrs.items() if k in LOADS]
        if tag == "table":
            self.tables[attrs["id"]] = self._rows = []
        elif tag == "tr":
            self._row = []
        elif tag == "td":
            self._cell = [attrs.get("data-value"), ""]
        self._small = tag == "small"

    def handle_endtag(self, tag):
        if tag == "td":
            self._row.append(tuple(self._cell) if self._row else self._cell[1])
            self._cell = None
        elif tag == "tr" and self._row:
            self._rows.append(self._row)
        self._small = False

    def handle_data(self, data):
        if self._cell and not self._small:
            self._cell[1] += data


def medians(samples, known):
    """The rows that a table of these must have: exact, and as shown."""
    def row(who, all_):
        for f in figures:
            values = [s[f] for s in all_ if s and f in s]
            median = statistics.median(values) if values else None
            yield (repr(median), f"{median:,{known[f][1]}}") if values else (None, "–")
    figures = [f for f in known if any(s and f in s for all_ in samples.values() for s in all_)]
    return [[who, *row(who, all_)] for who, all_ in samples.items()]


def tables_are_those_of(results, tables):
    """Fails unless the page has these tables, of exactly the numbers in the results."""
    for n, samples in results["ladder"]["streams"].items():
        equal(tables[f"ladder-{n}"], medians(samples, ladder.FIGURES), f"ladder of {n} streams")
    for n, samples in results["rr"]["connections"].items():
        equal(tables[f"rr-{n}"], medians(samples, rr.FIGURES), f"rr on {n} connections")
    equal(tables["stat"], medians(results["stat"]["rungs"], perf_stat.FIGURES), "stat")
    _costs_are_those_of(results["flame"], tables["diff"])
    own = [f"ladder-{n}" for n in results["ladder"]["streams"]]
    own += [f"rr-{n}" for n in results["rr"]["connections"]]
    equal(sorted(tables), sorted([*own, "stat", "syscalls", "diff"]), "tables")


def calls_are_those_of(rungs, table):
    """Fails unless system calls are those of all threads, and none is left out."""
    rows = {row[0]: row[1:] for row in table}
    for place, rung in enumerate((list(rungs)[0], list(rungs)[-1])):
        total = {}
        for th in rungs[rung]["threads"]:
            for name, call in th["calls"].items():
                there = total.get(name, (0, 0, 0))
                total[name] = [a + b for a, b in zip(there, call.values())]
        cells = {name: [float(value) for value, _ in row[3 * place:3 * place + 3]]
                 for name, row in rows.items() if row[3 * place][0] is not None}
        named = [name for name in cells if name != "all others"]
        equal({n: cells[n] for n in named}, {n: total[n] for n in named}, f"calls of {rung}")
        rest = [sum(column) for column in zip(*(v for k, v in total.items() if k not in named),
                                              (0, 0, 0))]
        equal(cells["all others"], rest, f"all other calls of {rung}")


def _costs_are_those_of(flame, table):
    """What a function costs a GiB is as many samples as it has, of so long each."""
    graphs = [flame["rungs"][name]["dwarf"] for name in (list(flame["rungs"])[0],
                                                         list(flame["rungs"])[-1])]
    check(table, "no function differs")
    for name, *cells in table:
        ms = [stacks.own(g["stacks"]).get(name, 0) * 1000 / flame["hz"] / g["gib"] for g in graphs]
        got = [float(value) for value, _ in cells[:3]]
        for a, b in zip(got, (*ms, ms[1] - ms[0])):
            check(abs(a - b) < 1e-6, f"{name}: {got} ms/GiB, and by its samples {ms}")


def graphs_are_those_of(results, page):
    """Fails unless each flame graph on the page is that of the results."""
    found = re.findall(r'<script type="application/json" id="([\w-]+)">(.*?)</script>', page, re.S)
    kept, rungs = {name: json.loads(text) for name, text in found}, results["flame"]["rungs"]
    equal(kept.pop("flame-page"), MARKS, "the page of graphs")
    for name, both in rungs.items():
        for how, g in both.items():
            equal(kept.pop(f"graph-{name}-{how}")["stacks"], g["stacks"], f"{name} by {how}")
    equal(sorted(kept), sorted(f"graph-{name}-diff" for name in rungs), "other graphs")
