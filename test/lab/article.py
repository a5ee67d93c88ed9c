#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The page of lab report has the numbers of its file of results and no others, loads nothing, and is not made of less."""
import copy
import json
import os
import re
import shutil
import subprocess
import sys

import pages
import chart   # found by pages
import stacks  # found by pages

from kit import Skip, check, equal, run, test

ROOT, MARKS = pages.ROOT, pages.MARKS


def bulk(gbit, bytes_per_call):
    calls = gbit * 1e9 / 8 * 2 / bytes_per_call
    return {"gbit_s": gbit, "product_gbit_s": gbit, "bytes_per_call": bytes_per_call, "calls_per_s": calls,
            "calls_per_mib": 2 * 2**20 / bytes_per_call, "cpu_s_per_gib": 3.25 / gbit, "machine_s_per_gib": 7.5 / gbit,
            "context_switches_per_s": 1000 * gbit, "others_cpus": 0.01}


def by_rung(factor):
    """Three rounds of a ladder; one sample of them failed, and no forwarder has few figures."""
    rungs = {"copy-8k": [bulk(factor * g, 8000) for g in (10.125, 11.5, 9.75)],
             "copy-64k": [bulk(factor * 20.0625, 64000), None, bulk(factor * 22, 65000)],
             "splice-64k": [bulk(factor * g, 60000) for g in (25, 25.5, 26)],
             "splice-1m": [bulk(factor * g, 500000) for g in (39.0625, 41, 43)],
             "auto": [bulk(factor * g, 400000) for g in (37, 38, 39)]}
    return rungs | {"direct": [{"gbit_s": factor * g, "machine_s_per_gib": 0.2} for g in (50, 51, 52)]}


def thread(name, cpu_s, **seconds):
    return {"tid": 7, "name": name, "cpu_s": cpu_s,
            "calls": {call: {"calls": int(s * 100000), "errors": int(s * 100), "seconds": s} for call, s in seconds.items()}}


def frame(name, kind, own, *callees):
    return {"n": name, "l": kind, "v": own, "c": list(callees)}


def graph(gib, *above):
    tree = frame("sluice", "root", 1, frame("main", "", 2, *above))
    return {"gbit_s": 20, "gib": gib, "seconds": 2, "cpu_s": 1, "event": "cycles", "samples": stacks.samples(tree),
            "stacks": tree}


def answers(rate):
    return {"transactions_per_s": rate, "p50_us": 1e6 / rate, "p99_us": 3e6 / rate, "p999_us": 9e6 / rate,
            "cpu_us_per_transaction": 9.25, "calls_per_transaction": 4.5, "context_switches_per_s": 3 * rate,
            "over_35ms": 0, "others_cpus": 0.02}


RESULTS = {
    "machine": {"cpus": 3, "model": "a <made up> processor", "kernel": "6.1.2-test", "sluice": "sluice 9.8.7"},
    "commands": ["lab ladder --json x", "lab flame --json 'a b'"],
    "ladder": {"date": "2001-02-03 04:05:06", "seconds": 1, "rounds": 3, "load": "sluice-load",
               "streams": {"8": by_rung(1), "1": by_rung(0.5)}},
    "stat": {"streams": 8, "hardware": True, "missing": [], "rungs": {
        name: [{"gbit_s": g, "gib": 1, "seconds": 1, "instructions_per_cycle": g / 10, "cpus_used": g / 20,
                "context_switches_per_s": 77 * g}] for name, g in (("copy-8k", 11.25), ("splice-1m", 40.75))}},
    "syscalls": {"streams": 8, "seconds": 3, "rungs": {
        "copy-8k": {"gbit_s": 5, "seconds": 3, "threads": [thread("sluice/0", 2, recvfrom=1.25, sendto=1.5, close=0.001),
                                                           thread("sluice/1", 2.5, recvfrom=1.125, epoll_wait=1.75)]},
        "splice-1m": {"gbit_s": 15, "seconds": 3, "threads": [thread("sluice/0", 1, splice=1.5, epoll_wait=1.25),
                                                              thread("sluice/1", 1.5, splice=1.75, ioctl=0.002)]}}},
    "rr": {"size_bytes": 32, "rounds": 2, "connections": {n: {
        "splice": [answers(30000.5), answers(31000)], "copy": [answers(40000), answers(42000.25)],
        "direct": [{k: v for k, v in answers(60000).items() if not k.startswith("c")}]} for n in ("1", "16")}},
    "flame": {"hz": 199, "streams": 8, "seconds": 2, "template": MARKS, "rungs": {
        "copy-64k": {"fp": graph(4, frame("send", "", 3)),
                     "dwarf": graph(4, frame("copy_fill", "", 4, frame("copy_to_user", "kernel", 400)))},
        "splice-1m": {"fp": graph(8, frame("splice", "", 3)), "dwarf": graph(8, frame("splice", "kernel", 400))}}},
}


def report(t, results, *args):
    """Runs lab report on these results. Return: (exit status, lines of stderr, the page or None)"""
    folder = t.folder()
    if results is not None:
        with open(folder + "/results.json", "w") as f:
            json.dump(results, f)
    p = subprocess.run([sys.executable, os.path.join(ROOT, "tools/lab/run"), "report", "--from",
                        folder + "/results.json", "--out", folder + "/page.html", *args], capture_output=True, text=True, timeout=30, check=False)
    page = None
    if os.path.exists(folder + "/page.html"):
        with open(folder + "/page.html") as f:
            page = f.read()
    return p.returncode, p.stderr.splitlines(), page


def made(t):
    if not shutil.which("gnuplot"):
        raise Skip("gnuplot is not installed")
    status, said, page = report(t, RESULTS)
    equal((status, said), (0, []), "exit status, stderr")
    return page


@test()
def tables_have_exactly_the_numbers_of_the_results(t):
    pages.tables_are_those_of(RESULTS, pages.Tables(made(t)).tables)


@test()
def system_calls_are_those_of_all_threads_and_none_is_left_out(t):
    table = pages.Tables(made(t)).tables["syscalls"]
    pages.calls_are_those_of(RESULTS["syscalls"]["rungs"], table)
    calls = [row[0] for row in table]
    check("close" not in calls and "epoll_wait" in calls, f"calls that have a row: {calls}")


@test()
def words_say_what_the_numbers_are(t):
    page = re.sub(r"\s", " ", made(t))
    for said in ("From 10.1 to 41.0 Gbit/s: the same 8 streams, more bytes a call", "reach 51.0 Gbit/s", "4.0×",
                 "As copy-8k, sluice moved 7.8 KiB a system call; as splice-1m, 488 KiB",
                 "copy did 41,000 a second, splice 26 % less", "sluice 9.8.7 on 3 processors (a &lt;made up&gt; processor)",
                 "2001-02-03", "&#x27;a b&#x27;", "1.12 as copy-8k and 4.08 as splice-1m",
                 "<code>copy_fill</code>"):
        check(said in page, f"not on the page: {said}")
    other = copy.deepcopy(RESULTS)
    for of_rung in other["ladder"]["streams"]["8"].values():
        for s in of_rung:
            if s:
                s["gbit_s"] *= 2
    check("From 20.2 to 82.0 Gbit/s" in re.sub(r"\s", " ", report(t, other)[2]), "the headline does not follow the numbers")


@test()
def the_page_loads_nothing(t):
    page = made(t)
    found = pages.Tables(page)
    equal([load for load in found.loads if not load[2].startswith("#")], [], "attributes that load")
    equal(re.findall(r"@import|url\((?!#)|<link|<base|fetch\(|XMLHttpRequest|import\(", page), [], "what else could load")


CLOSE = {"copy-8k": (10.9, 8180), "copy-16k": (17.9, 16378), "copy-64k": (32.2, 65339), "copy-256k": (44.3, 259595),
         "splice-64k": (40, 65232), "splice-256k": (57.2, 236339), "splice-1m": (57.9, 404690), "auto": (60, 459190)}


def chart_of(factors, direct=61.1):
    """The chart of a ladder in which most points are close to others."""
    rungs = {name: [bulk(gbit * factors.get(name, 1), size)] for name, (gbit, size) in CLOSE.items()}
    return chart.ladder("8 streams", {**rungs, "direct": [{"gbit_s": direct}]})


def labels_of(svg):
    """(text, x, y) of the labels, which have a size of their own; each is centred at x, and stands on y."""
    found = re.findall(r'translate\(([\d.]+),([\d.]+)\)"[^>]*font-size="12.00"[^>]*text-anchor="middle"\s*>\s*<text>'
                       r"<tspan[^>]*>([^<]*)<", svg)
    return [(text.strip(), float(x), float(y)) for x, y, text in found]


@test()
def labels_of_a_chart_name_every_line_and_do_not_overlap(t):
    if not shutil.which("gnuplot"):
        raise Skip("gnuplot is not installed")
    for factors, direct in (({}, 61.1), ({"copy-64k": 1.24, "copy-256k": 1.29}, 61.1), ({"auto": 0.965}, 57.9),
                            ({name: 40 / gbit for name, (gbit, _) in CLOSE.items()}, 40)):
        labels = labels_of(chart_of(factors, direct))
        equal(sorted(text for text, _, _ in labels),
              sorted(["copy 8K", "16K", "64K", "256K", "splice 64K", "256K", "1M", "auto", "no forwarder"]), "labels")
        for n, (one, x, y) in enumerate(labels):
            wide = len(one) * 6.5 / 2
            check(wide <= x <= 420 - wide and 12 <= y <= 350, f"{one} at {x},{y} leaves the picture")
            for other, at_x, at_y in labels[:n]:
                check(abs(x - at_x) >= wide + len(other) * 6.5 / 2 or abs(y - at_y) >= 11,
                      f"{one} at {x},{y} is over {other} at {at_x},{at_y}")


@test()
def flame_graphs_are_those_of_the_results(t):
    page = made(t)
    pages.graphs_are_those_of(RESULTS, page)
    rows = pages.Tables(page).tables["diff"]
    rows = {row[0]: [float(value) for value, _ in row[1:4]] for row in rows}
    ms = 1000 / 199
    equal([round(x, 6) for x in rows["copy_to_user"]], [round(x, 6) for x in (100 * ms, 0, -100 * ms)], "ms/GiB")
    equal(rows["main"], [2 * ms / 4, 2 * ms / 8, 2 * ms / 8 - 2 * ms / 4], "ms/GiB of what both have")


@test()
def without_a_section_there_is_no_page_and_one_line_says_which(t):
    for name in ("machine", "commands", "ladder", "stat", "syscalls", "rr", "flame"):
        status, said, page = report(t, {k: v for k, v in RESULTS.items() if k != name})
        equal((status, len(said), page), (1, 1, None), f"without {name}: exit status, lines, page")
        check(f"no results of {name}" in said[0], said)


@test()
def what_it_needs_is_looked_for_before_anything_is_measured(t):
    folder = t.folder()
    argv = [sys.executable, os.path.join(ROOT, "tools/lab/run"), "report", "--out", folder + "/page.html"]
    p = subprocess.run(argv, capture_output=True, text=True, timeout=30, check=False, env={"PATH": folder})
    equal((p.returncode, len(p.stderr.splitlines()), os.listdir(folder)), (1, 1, []), f"status, lines, files: {p.stderr}")
    lacking = "not installed: ip, perf, strace, gnuplot; try: apt install iproute2 linux-perf strace gnuplot-nox"
    check((lacking if os.geteuid() == 0 else "run it as root") in p.stderr, p.stderr)


@test()
def without_results_there_is_no_page(t):
    status, said, page = report(t, None)
    equal((status, len(said), page), (1, 1, None), "exit status, lines, page")
    check("no such file" in said[0], said)


if __name__ == "__main__":
    run()
