# SPDX-License-Identifier: MIT
"""Flame graphs of sluice under load: perf record at 199 Hz, by frame pointers and by DWARF, side by side.

Each graph is a page that needs no network: FOLDER/RUNG-fp.html, FOLDER/RUNG-dwarf.html; FOLDER/index.html shows all.
A frame is as wide as the time that was spent in it and in what it called; blue is the kernel, green is not. Click to
look closer.

By frame pointers the kernel follows saved registers: that is cheap, and a function built without them, as those of
Debian's libc are, hides who called it. For DWARF perf copies 16 KiB of stack with each sample and unwinds it later:
all callers are there, and the copying costs time of its own.

--diff compares the first rung with the last: what each function costs a GiB. Frames have other colours there: red costs
more than in the other, blue less, green the same as far as so few samples can tell. (The page itself knows no
differences; it has three kinds of frame, and these are lent to them.)

In the file of --json: "flame": {"command", "date", "seconds", "streams", "hz", "template": the page of d3-flame-graph,
"rungs": {RUNG: {"fp": GRAPH, "dwarf": GRAPH}}}; a GRAPH is {gbit_s, gib, seconds, cpu_s, "event", "samples", "stacks"}.

The pages are those of d3-flame-graph 4.1.3 (5.x has none), which npm fetches once, into ~/.cache/sluice-lab.
"""
import hashlib
import html
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time

import results
import stacks
from ladder import RUNGS, Stream
from place import above_0, measuring_options, ready, some_of
from rounds import Progress, interleave
from table import lines_of
from testbed import Trouble
from workloads import GIB, measured

HELP = "flame graphs, by frame pointers and by DWARF, and what differs between two modes"
HZ = 199  # no multiple or divisor of what else happens at a steady rate
CALL_GRAPHS = {"fp": "fp", "dwarf": "dwarf,16384"}
D3 = "d3-flame-graph@4.1.3"
MEMBER = "package/dist/templates/d3-flamegraph-base.html"
SHA256 = "64aba4b35cfaba17b37d57a4036876f1999f3cfc4c8d4d3a0781d08a1ad97d5a"
MOST = 12  # rows of a comparison


def cache():
    return os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "sluice-lab", D3 + ".html")


def fetch(path):
    """Has npm fetch the package, and takes the page out of it."""
    how = "install npm, or name a copy of dist/templates/d3-flamegraph-base.html with --template"
    if not shutil.which("npm"):
        raise Trouble(f"the page of {D3} is not here, and npm is not installed; {how}")
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(["npm", "pack", "--silent", D3], cwd=folder, capture_output=True, text=True, check=False)
        packed = os.path.join(folder, done.stdout.strip().split("\n")[-1])
        if done.returncode or not os.path.isfile(packed):
            raise Trouble(f"npm pack {D3}: {done.stderr.strip() or 'no package came'}; {how}")
        with tarfile.open(packed) as tar:
            page = tar.extractfile(MEMBER).read()
    if hashlib.sha256(page).hexdigest() != SHA256:
        raise Trouble(f"npm pack {D3}: not the page that is known by that name; {how}")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(page)


def template(named):
    """Return: the path of the page that graphs are put into, and what it holds."""
    path = named or cache()
    if not named and not os.path.exists(path):
        fetch(path)
    with open(path) as f:
        text = f.read()
    if stacks.MARK_STACKS not in text:
        raise Trouble(f"{path} is no template of d3-flame-graph: there is no {stacks.MARK_STACKS} in it")
    return path, text


def perf(folder, *args):
    """perf in a folder that holds, or gets, its perf.data. Return: what it printed."""
    done = subprocess.run(["perf", *args], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          check=False)
    if done.returncode:
        raise Trouble(f"perf {args[0]}: {' '.join(done.stderr.split())[:300]}")
    return done.stdout


def record(pid, how, run, folder):
    """Has perf sample a process while run() runs. Return: what that returned."""
    data = folder + "/perf.data"
    argv = ["perf", "record", "-F", str(HZ), "--call-graph", CALL_GRAPHS[how], "-p", str(pid), "-o", data]
    with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                          text=True) as recorder:
        time.sleep(0.3)  # until it has attached; an idle sluice adds next to nothing
        try:
            got = run()
        finally:
            recorder.send_signal(signal.SIGINT)
            said = recorder.communicate()[1]
    if not os.path.exists(data):
        raise Trouble(f"perf record: {' '.join(said.split())[:300]}")
    return got


# "cycles:P", "cpu_core/cycles/P", "cpu-clock:uppH": the event, and marks; "u" is for: without the kernel.
EVENT = re.compile(r"^(\S+?)(?:[:/](\w*))?$", re.M)


def event_of(folder):
    """What perf took a sample by, as "cycles"."""
    events = EVENT.findall(perf(folder, "evlist"))
    if any("u" in marks for _, marks in events):
        raise Trouble("perf may not look into the kernel here, where sluice does its work (kernel.perf_event_paranoid); "
                      "run it as root")
    return ", ".join(event for event, _ in events)


class Sampled(Stream):
    """Bulk, with perf beside it; a page of perf's own in @out, made with @template."""

    def __init__(self, streams, how, template_path, out):
        super().__init__(streams)
        self.how, self.template, self.out = how, template_path, out

    def sample(self, bench, contestant):
        where = bench.start(contestant)
        self.warm_up(bench, where)
        with tempfile.TemporaryDirectory() as folder:
            got, cpu, _, _ = measured(bench, lambda: record(
                bench.testbed.forwarder.pids()[0], self.how, lambda: self._run(bench, where, bench.seconds), folder))
            return {"gbit_s": got["gbit_s"], "gib": got["bytes"] / GIB, "seconds": got["seconds"], "cpu_s": cpu,
                    **self._read(contestant, folder)}

    def _read(self, contestant, folder):
        flamegraph = ("script", "report", "flamegraph")
        perf(folder, *flamegraph, "--template", self.template, "-o", f"{self.out}/{contestant.name}-{self.how}.html")
        tree = stacks.merged(json.loads(perf(folder, *flamegraph, "-f", "json", "-o", "-")), "sluice")
        if not stacks.samples(tree):
            raise Trouble("perf record took no sample")
        return {"event": event_of(folder), "samples": stacks.samples(tree), "stacks": tree}


def options(p):
    measuring_options(p, rounds=None, seconds=5.0)
    sluices = [name for name in RUNGS if name != "direct"]
    p.add_argument("--rungs", type=some_of(sluices), default=["copy-64k", "splice-1m"], metavar="A,B",
                   help="these, of those of the ladder [copy-64k,splice-1m]")
    p.add_argument("--streams", type=above_0(int), default=8, metavar="N", help="how many [8]")
    p.add_argument("--diff", action="store_true", help="compare the first of the rungs with the last")
    p.add_argument("--out", default="flame", metavar="FOLDER", help="where the pages go [flame]")
    p.add_argument("--template", metavar="FILE", help=f"the page of {D3}, where npm cannot fetch it")


def side_by_side(rows):
    """A page that shows other pages: (title, [file, ...]) a row."""
    yield "<!doctype html><meta charset=utf-8><title>Flame graphs of sluice</title>"
    yield "<style>body{font:16px sans-serif}div{display:flex}iframe{flex:1;min-width:0;height:36em}</style>"
    for title, pages in rows:
        yield f"<h2>{html.escape(title)}</h2><div>" + "".join(f"<iframe src='{p}'></iframe>" for p in pages) + "</div>"


def measure(args, bench, path):
    """Return: {rung: {"fp": graph, "dwarf": graph}}"""
    chosen, graphs = [RUNGS[name] for name in args.rungs], {name: {} for name in args.rungs}
    progress = Progress("lab", len(chosen) * len(CALL_GRAPHS))
    for how in CALL_GRAPHS:
        taken = interleave(bench, Sampled(args.streams, how, path, args.out), chosen, 1, progress, how, args.patience)
        for name, (graph,) in taken.items():
            if graph is None:
                raise Trouble(f"{name}: no graph by {how}")
            graphs[name][how] = graph
    return graphs


def show(graphs):
    rows = [[name, how, str(g["samples"]), f"{g['cpu_s'] / g['gib']:.3f}", str(len(stacks.users(g["stacks"])))]
            for name, both in graphs.items() for how, g in both.items()]
    print("\n".join(lines_of(["rung", "stacks by", "samples", "cpu s/GiB, with perf", "functions outside the "
          "kernel"], rows)))
    for name, both in graphs.items():
        print(f"\n{name}, seen by DWARF alone: {', '.join(stacks.hidden(both)) or 'nothing'}")
    event = next(iter(graphs.values()))["fp"]["event"]
    if "clock" in event:
        print(f"\nThis machine has no hardware counter to sample by: perf took {event}, a timer of the kernel. Where "
              "interrupts\nare off it comes late, so such time is shown where they are allowed again.")


def compare(args, graphs, text):
    """Two pages, and a table of what differs most. Return: the files."""
    one, other = args.rungs[0], args.rungs[-1]
    a, b = (graphs[name]["dwarf"] for name in (one, other))
    print(f"\n### {one} against {other}: functions whose own time a GiB differs most\n")
    rows = [[name, f"{x * 1000:.1f}", f"{y * 1000:.1f}", f"{(y - x) * 1000:+.1f}", "" if real else "may be chance"]
            for name, x, y, real in stacks.differences(a, b, HZ)[:MOST]]
    print("\n".join(lines_of(["function", f"{one}, ms/GiB", f"{other}, ms/GiB", "difference", ""], rows)))
    files = []
    for name, graph, against in ((one, a, b), (other, b, a)):
        files.append(f"{name}-diff.html")
        with open(f"{args.out}/{files[-1]}", "w") as f:
            f.write(stacks.page(text, stacks.compared(graph, against, HZ), f"{name}: red costs more here, blue less"))
    return files


def run(args):
    if not shutil.which("perf"):
        raise Trouble("perf is not installed; try: apt install linux-perf")
    if args.diff and len(args.rungs) < 2:
        print("lab: flame: --diff compares two rungs, and --rungs names one", file=sys.stderr)
        return 2
    path, text = template(args.template)
    os.makedirs(args.out, exist_ok=True)
    with ready(args) as bench:
        results.check(args)
        record(os.getpid(), "fp", lambda: None, bench.testbed.folder)  # where it may not, that is said here
        event_of(bench.testbed.folder)
        print(results.headline())
        graphs = measure(args, bench, os.path.abspath(path))
    show(graphs)
    pages = [(f"{name}: by frame pointers, by DWARF", [f"{name}-{how}.html" for how in CALL_GRAPHS])
             for name in args.rungs]
    if args.diff:
        pages.append(("Compared: red costs more a GiB than in the other, blue less", compare(args, graphs, text)))
    with open(args.out + "/index.html", "w") as f:
        f.write("\n".join(side_by_side(pages)))
    print(f"\nTo look at: {args.out}/index.html")
    results.keep(args, "flame", {"seconds": args.seconds, "streams": args.streams, "hz": HZ, "template": text,
                                 "rungs": graphs})
    return 0
