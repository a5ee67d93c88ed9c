# SPDX-License-Identifier: MIT
"""What `tools/run` shows: splicing and copying side by side, every byte verified first. No root; all on loopback.

It measures as `lab ladder` and `lab rr` do, one sample of each; and it fails if a byte is wrong, missing or dropped, or
if sluice does not end well.
"""
import argparse
import os
import platform

from counted import totals
from ladder import Stream, rung
from place import above_0, build_option, ready
from rounds import Progress, interleave
from rr import SIZE, Requests
from testbed import Trouble
from workloads import GIB, Bulk, result

HELP = "what tools/run shows: splice beside copy, every byte verified, in 25 seconds, without root, on loopback"
STREAMS, CONNECTIONS = 8, 16
SECONDS = {"checked": 1, "bulk": 4, "rr": 2}  # of a sample of each; the first has two, one each way
MODES = ("splice", "copy")
ROWS = ((f"bulk, {STREAMS} streams", "Gbit/s", "bulk", "gbit_s", 1, ".1f"),
        ("  cpu time of sluice", "s/GiB", "bulk", "cpu_s_per_gib", 1, ".3f"),
        ("  calls of splice, recv and send", "per MiB", "bulk", "calls_per_mib", 1, ".1f"),
        ("  bytes a call", "KiB", "bulk", "bytes_per_call", 1024, ".1f"),
        ("  of the bytes went by pipe", "%", "bulk", "by_pipe", 0.01, ".0f"),
        (f"{SIZE}-byte requests, {CONNECTIONS} connections", "per s", "rr", "transactions_per_s", 1, ".0f"),
        ("  99 of 100 answered within", "us", "rr", "p99_us", 1, ".0f"),
        ("verified, not one byte wrong", "GiB", "checked", "bytes", GIB, ".1f"))


def end_well(bench):
    """Ends sluice, which must have dropped nothing."""
    (sluice,) = bench.testbed.forwarder.children
    dropped = totals(bench.testbed, sluice.pid)["bytes"]["dropped"]
    if dropped:
        raise Trouble(f"sluice dropped {dropped} bytes")
    bench.testbed.forwarder.end()
    if sluice.returncode:
        with open(bench.testbed.folder + "/log", errors="replace") as log:
            raise Trouble(f"sluice ended with exit status {sluice.returncode}: {log.read().strip()[-300:]}")


class Verified:
    """Streams of which every byte is checked, up and down."""

    def sample(self, bench, contestant):
        where, checked = bench.start(contestant), 0
        for way in (), ("--reverse",):
            got = result(bench.client("bulk", where, "-P", STREAMS, "--seconds", bench.seconds, "--check", *way), "bulk")
            if got["errors"]:
                raise Trouble("bytes are wrong or missing" + (", from the server" if way else ", to the server"))
            checked += got["checked"]
        return {"bytes": checked}


class Ending:
    """The same as another workload, and sluice ends well after it."""

    def __init__(self, workload):
        self.workload = workload

    def sample(self, bench, contestant):
        got = self.workload.sample(bench, contestant)
        end_well(bench)
        return got


WORK = {"checked": ("every byte verified", Verified()), "bulk": (f"{STREAMS} streams", Stream(STREAMS)),
        "rr": (f"requests, {CONNECTIONS} connections", Requests(CONNECTIONS))}


def options(p):
    build_option(p)
    p.add_argument("--seconds", type=above_0(float), default=1, metavar="S",
                   help="so much of the usual time for each sample [1]")


def measure(bench, scale):
    """Return: {workload: {mode: its sample, None if it failed}}"""
    modes, progress, measured = [rung(m, f"--mode={m}") for m in MODES], Progress("demo", len(WORK) * len(MODES)), {}
    for name, (what, workload) in WORK.items():
        bench.seconds = SECONDS[name] * scale
        samples = interleave(bench, Ending(workload), modes, 1, progress, what, patience=0)
        measured[name] = {mode: of_mode[0] for mode, of_mode in samples.items()}
    return measured


def table(measured):
    yield f"  {'':43}" + "".join(f"{mode:>10}" for mode in MODES)
    for text, unit, work, figure, of, form in ROWS:
        yield f"  {text:34} {unit:8}" + "".join(f"{measured[work][m][figure] / of:10{form}}" for m in MODES)


def run(args):
    with ready(argparse.Namespace(loopback=True, build=args.build, seconds=1)) as bench:
        measured = measure(bench, args.seconds)
    if not all(all(of.values()) for of in measured.values()):
        return 1  # which has been said
    print(f"\nclient - sluice - server, all here: loopback, {os.cpu_count()} cpus, Linux {platform.release()}\n")
    print("\n".join(table(measured)))
    print("\nAll three share the cpus, so compare the columns and do not take the\n"
          "numbers for what sluice does with a network. To forward a port of your own:\n\n"
          "    tools/run 127.0.0.1:8080 192.0.2.7:80\n")
    return 0
