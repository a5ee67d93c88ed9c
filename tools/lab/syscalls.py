# SPDX-License-Identifier: MIT
"""System calls of each thread of sluice, by strace -c -w: one strace a thread, as its table is for all it follows.

THE TRAP. strace counts the time from a call to its return. Of epoll_wait that is mostly time in which the thread
sleeps, because there is nothing to do: it is no cost, and a forwarder that is faster spends more of it. So look at
"cpu s", which the kernel counts in the thread itself, for what a thread costs; and at calls and errors (EAGAIN) for
what could be less. strace slows each call by microseconds: throughput here says nothing, and no other command traces.
"""
import contextlib
import os
import re
import shutil
import signal
import subprocess
import time

import results
from ladder import RUNGS, Stream
from place import above_0, measuring_options, ready, some_of
from rounds import Progress, quiet, say
from table import lines_of
from testbed import TICKS, Trouble

HELP = "system calls of each thread, by strace, and why epoll_wait is not what costs"
SLEEPS = ("epoll_wait", "epoll_pwait", "epoll_pwait2", "futex", "restart_syscall")
# "% time     seconds  usecs/call     calls    errors syscall": errors may be missing.
ROW = re.compile(r"^\s*[\d.]+\s+([\d.]+)\s+\d+\s+(\d+)\s+(?:(\d+)\s+)?(\w+)$", re.M)


def parse(text):
    """Reads the table of strace -c. Return: {system call: {"calls", "errors", "seconds"}}"""
    return {m[4]: {"calls": int(m[2]), "errors": int(m[3] or 0), "seconds": float(m[1])}
            for m in ROW.finditer(text) if m[4] != "total"}


def thread_name(pid, tid):
    with open(f"/proc/{pid}/task/{tid}/comm") as f:
        return f.read().strip()


def thread_cpu(pid, tid):
    """Seconds of cpu of one thread."""
    with open(f"/proc/{pid}/task/{tid}/stat") as f:
        return sum(map(int, f.read().rsplit(")", 1)[1].split()[11:13])) / TICKS


def traced(pid, tid):
    with open(f"/proc/{pid}/task/{tid}/status") as f:
        return any(line.startswith("TracerPid:") and line.split()[1] != "0" for line in f)


@contextlib.contextmanager
def strace(pid, tids, folder):
    """One for each thread; all have attached when it begins, and written their tables when it ends."""
    tracers = [subprocess.Popen(["strace", "-c", "-w", "-o", f"{folder}/strace-{tid}", "-p", tid],
                                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
               for tid in tids]
    try:
        until = time.monotonic() + 5
        while not all(traced(pid, tid) for tid in tids):
            ended = [t for t in tracers if t.poll() is not None]
            if ended or time.monotonic() > until:
                raise Trouble("strace does not attach: " +
                              (" ".join(ended[0].stderr.read().split())[:300] if ended else "it does not say why"))
            time.sleep(0.01)
        yield
    finally:
        for tracer in tracers:
            tracer.send_signal(signal.SIGINT)
        for tracer in tracers:
            tracer.communicate()


def threads_of(pid, run, folder):
    """Traces all threads while run() runs. Return: what each did, and what run() returned."""
    tids = sorted(os.listdir(f"/proc/{pid}/task"), key=int)
    with strace(pid, tids, folder):
        before = [thread_cpu(pid, tid) for tid in tids]
        got = run()
        cpu = [thread_cpu(pid, tid) - b for tid, b in zip(tids, before)]
    threads = []
    for tid, used in zip(tids, cpu):
        with open(f"{folder}/strace-{tid}") as f:
            threads.append({"tid": int(tid), "name": thread_name(pid, tid), "cpu_s": used, "calls": parse(f.read())})
    return threads, got


def sample(bench, stream, contestant):
    where = bench.start(contestant)
    stream.warm_up(bench, where)
    (pid,) = bench.testbed.forwarder.pids()
    threads, got = threads_of(pid, lambda: stream._run(bench, where, bench.seconds), bench.testbed.folder)
    return {"gbit_s": got["gbit_s"], "seconds": got["seconds"], "threads": threads}


def rows(threads):
    """Calls that took less than 5 ms in all are left to the file of --json."""
    for t in threads:
        who = f"{t['name']} {t['tid']}"
        yield [who, "cpu time of the thread", "", "", f"{t['cpu_s']:.2f}", "", "what it costs"]
        long = {name: c for name, c in t["calls"].items() if c["seconds"] >= 0.005}
        for name, c in sorted(long.items(), key=lambda item: -item[1]["seconds"]):
            yield [who, name, str(c["calls"]), str(c["errors"]), f"{c['seconds']:.2f}",
                   f"{c['seconds'] / c['calls'] * 1e6:.1f}", "mostly asleep: no cost" if name in SLEEPS else ""]


def options(p):
    measuring_options(p, rounds=None, seconds=3.0)
    sluices = [name for name in RUNGS if name != "direct"]
    p.add_argument("--rungs", type=some_of(sluices), default=["copy-8k", "splice-1m"], metavar="A,B",
                   help="these, of those of the ladder [copy-8k,splice-1m]")
    p.add_argument("--streams", type=above_0(int), default=8, metavar="N", help="how many [8]")


def run(args):
    if not shutil.which("strace"):
        raise Trouble("strace is not installed; try: apt install strace")
    progress, samples = Progress("lab", len(args.rungs)), {}
    with ready(args) as bench:
        results.check(args)
        print(results.headline())
        for name in args.rungs:
            progress.step(f"strace: {name}")
            quiet(args.patience)
            samples[name] = sample(bench, Stream(args.streams), RUNGS[name])
            bench.testbed.clean()
            say("")
            print(f"### syscalls: {name}, {args.streams} streams, {samples[name]['seconds']:.1f} s, "
                  f"{samples[name]['gbit_s']:.1f} Gbit/s while traced\n")
            head = ["thread", "call", "calls", "errors", "s", "us a call", ""]
            print("\n".join(lines_of(head, rows(samples[name]["threads"]))) + "\n", flush=True)
    print("Seconds in a call are from its start to its return. In epoll_wait a thread sleeps because there is\n"
          "nothing to do: that is no cost, and no reason why it is slow. What a thread costs is its cpu time,\n"
          "and strace's own part of that is large.")
    results.keep(args, "syscalls", {"seconds": args.seconds, "streams": args.streams, "rungs": samples})
    return 0
