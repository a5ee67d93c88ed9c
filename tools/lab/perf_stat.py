# SPDX-License-Identifier: MIT
"""What the processor counted in sluice while 8 streams went through it: perf stat -p, with the events of the story.

Few context switches say that no thread waits for a lock; instructions a cycle well above those of a program that
waits for memory (below 0.5 or so) say that there is no stall. Then only less work a byte makes it faster.

A virtual machine may have no hardware counters. Then what the kernel itself counts is left, and that is said.
On a machine with cores of two kinds perf counts each kind apart; a thread may have run on both, so they are added up,
and shown one by one as well.
"""
import os
import re
import shutil
import signal
import subprocess
import time

import results
from ladder import RUNGS, Stream, disturbed, show, succeeded
from place import above_0, measuring_options, ready, some_of
from rounds import Progress, interleave
from testbed import Trouble
from workloads import GIB

HELP = "perf stat of sluice under load: instructions a cycle, misses, context switches"
HARDWARE = ("cycles", "instructions", "cache-misses", "branches", "branch-misses")
SOFTWARE = ("context-switches", "cpu-migrations", "page-faults", "task-clock")
FIGURES = {
    "gbit_s": ("Gbit/s", ".1f", " "),
    "instructions_per_cycle": ("instructions a cycle", ".2f", " "),
    "cycles_per_byte": ("cycles a byte", ".2f", " "),
    "cache_misses_per_mib": ("cache misses/MiB", ".0f", " "),
    "branch_misses_percent": ("branches missed, %", ".2f", " "),
    "cpus_used": ("cpus used", ".2f", " "),
    "context_switches_per_s": ("context switches a second", ".0f", " "),
    "cpu_migrations_per_s": ("cpu migrations a second", ".1f", " "),
    "page_faults_per_s": ("page faults a second", ".1f", " "),
}

# "  1,234,567      cpu_core/cycles/u      #  1.2 GHz  (99.4%)": how many, of which kind of core, which event.
ROW = re.compile(r"^\s*([\d,.]+|<not counted>|<not supported>)\s+(?:msec\s+)?(?:(cpu_\w+)/)?([a-z][a-z-]+)"
                 r"(?:[/:](\w*))?(?=\s|$)")


def parse(text):
    """Reads what perf stat prints.

    Return: ({event: count, or None if it was not counted}, {kind of core: the same of it}). The first adds up all
    kinds of core; the second is empty where there is one kind.
    """
    counts, cores = {}, {}
    for line in text.splitlines():
        m = ROW.match(line)
        if not m or m[3] not in HARDWARE + SOFTWARE:
            continue
        value = None if m[1].startswith("<") else float(m[1].replace(",", ""))
        if m[2]:
            cores.setdefault(m[2], {})[m[3]] = value
        if value is not None or m[3] not in counts:
            counts[m[3]] = value if counts.get(m[3]) is None else counts[m[3]] + value
    return counts, cores


def user_alone(text):
    """Whether perf could not look into the kernel: then it marks each event with a "u", and counts no switch at all."""
    return any(m and m[4] == "u" for m in map(ROW.match, text.splitlines()))


def per_cycle(counts):
    cycles, instructions = counts.get("cycles"), counts.get("instructions")
    return instructions / cycles if cycles and instructions is not None else None


def figures_of(counts, got):
    """What the counts come to; figures that want an event that was not counted are left out."""
    def ratio(event, by):
        return counts[event] / by if counts.get(event) is not None and by else None
    branches = counts.get("branches")
    figures = {"instructions_per_cycle": per_cycle(counts), "cycles_per_byte": ratio("cycles", got["bytes"]),
               "cache_misses_per_mib": ratio("cache-misses", got["bytes"] / 2**20),
               "branch_misses_percent": ratio("branch-misses", branches / 100 if branches else None),
               "cpus_used": ratio("task-clock", got["seconds"] * 1000),
               "context_switches_per_s": ratio("context-switches", got["seconds"]),
               "cpu_migrations_per_s": ratio("cpu-migrations", got["seconds"]),
               "page_faults_per_s": ratio("page-faults", got["seconds"])}
    return {name: value for name, value in figures.items() if value is not None}


def perf(pid, run, path):
    """Has perf count in a process while run() runs. Return: what it printed, and what run() returned."""
    argv = ["perf", "stat", "-e", ",".join(HARDWARE + SOFTWARE), "-p", str(pid), "-o", path]
    with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                          text=True, env=dict(os.environ, LC_ALL="C")) as counter:
        time.sleep(0.3)  # until it has attached; an idle sluice adds next to nothing
        try:
            got = run()
        finally:
            counter.send_signal(signal.SIGINT)
            said = counter.communicate()[1]
    text = ""
    if os.path.exists(path):
        with open(path) as f:
            text = f.read()
    if not parse(text)[0]:
        raise Trouble(f"perf stat counts nothing: {' '.join((said or text).split())[:300]}")
    if user_alone(text):
        raise Trouble("perf may not count in the kernel here, where sluice does its work (kernel.perf_event_paranoid); "
                      "run it as root")
    return text, got


class Counters(Stream):
    """Bulk, with perf beside it."""

    def sample(self, bench, contestant):
        where = bench.start(contestant)
        self.warm_up(bench, where)
        text, got = perf(bench.testbed.forwarder.pids()[0], lambda: self._run(bench, where, bench.seconds),
                         bench.testbed.folder + "/perf")
        counts, cores = parse(text)
        sample = {"gbit_s": got["gbit_s"], "gib": got["bytes"] / GIB, "seconds": got["seconds"], **counts,
                  **figures_of(counts, got)}
        if cores:
            sample["cores"] = {kind: {**of_kind, "instructions_per_cycle": per_cycle(of_kind)}
                               for kind, of_kind in cores.items()}
        return sample


def options(p):
    measuring_options(p, rounds=3)
    sluices = [name for name in RUNGS if name != "direct"]
    p.add_argument("--rungs", type=some_of(sluices), default=["copy-8k", "copy-64k", "splice-1m"], metavar="A,B",
                   help="these, of those of the ladder [copy-8k,copy-64k,splice-1m]")
    p.add_argument("--streams", type=above_0(int), default=8, metavar="N", help="how many [8]")


def cores_table(samples):
    """A line a rung and kind of core, of the last sample."""
    for name, of_rung in samples.items():
        for kind, counts in next((s["cores"] for s in reversed(of_rung) if s and "cores" in s), {}).items():
            ipc = counts["instructions_per_cycle"]
            told = ", ".join(f"{event} {counts[event]:.0f}" for event in HARDWARE if counts.get(event) is not None)
            yield f"{name}, on {kind}: {told or 'not counted: no thread ran there'}" + (
                f"; {ipc:.2f} instructions a cycle" if ipc is not None else "")


def run(args):
    if not shutil.which("perf"):
        raise Trouble("perf is not installed; try: apt install linux-perf")
    with ready(args) as bench:
        results.check(args)
        perf(os.getpid(), lambda: None, bench.testbed.folder + "/perf")  # where it may not count, that is said here
        print(results.headline())
        chosen = [RUNGS[name] for name in args.rungs]
        samples = interleave(bench, Counters(args.streams), chosen, args.rounds,
                             Progress("lab", args.rounds * len(chosen)), "perf stat", args.patience)
    show("stat", f"{args.streams} streams, counted in sluice by perf", samples, FIGURES)
    taken = [s for of_rung in samples.values() for s in of_rung if s]
    missing = [event for event in HARDWARE if taken and all(s.get(event) is None for s in taken)]
    hardware = bool(taken) and len(missing) < len(HARDWARE)
    if missing:
        print(f"This machine does not count {', '.join(missing)}" +
              ("" if hardware else ": it has no hardware counters, as many virtual machines have none. "
               "What is above is what the kernel counts") + ".\n")
    print("\n".join(cores_table(samples)))
    disturbed({"": samples})
    results.keep(args, "stat", {"seconds": args.seconds, "rounds": args.rounds, "streams": args.streams,
                                "hardware": hardware, "missing": missing, "rungs": samples})
    return 0 if succeeded({"": samples}) else 1
