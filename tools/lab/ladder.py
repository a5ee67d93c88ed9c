# SPDX-License-Identifier: MIT
"""The ladder: the same 8 streams, and 1, with more and more bytes a call.

What a forwarder moves is bytes a call times calls a second. A larger buffer or pipe makes fewer calls of more bytes;
the last columns put that product beside what the client measured. Each byte is moved twice, in and out, so the
product is halved.

Calls and bytes are those of sluice's own totals, which cost nothing; context switches are those of
/proc/PID/task/*/status; cpu time is that of its cgroup (with --loopback: of /proc/PID/stat).
"""
import json
import math
import shutil
import subprocess

import chart
import results
from contestants import Contestant, sluice
from counted import Counted
from place import IPERF_PORT, measuring_options, numbers, ready, some_of
from rounds import Progress, interleave
from table import write
from testbed import Trouble
from workloads import GIB, MIB, Bulk, measured

HELP = "throughput against bytes a call: copy with 8K to 256K, splice with 64K to 1M, auto"
WARM_UP = 0.3  # seconds
FIGURES = {
    "gbit_s": ("Gbit/s", ".1f", "+"),
    "product_gbit_s": ("bytes a call x calls / 2, Gbit/s", ".1f", " "),
    "bytes_per_call": ("bytes a call", ".0f", " "),
    "calls_per_s": ("calls a second", ".0f", " "),
    "calls_per_mib": ("calls/MiB", ".1f", " "),
    "cpu_s_per_gib": ("cpu s/GiB", ".3f", "-"),
    "machine_s_per_gib": ("of the machine, s/GiB", ".3f", "-"),
    "context_switches_per_s": ("context switches a second", ".0f", " "),
    "others_cpus": ("cpus of others", ".2f", " "),
}


def rung(name, *options):
    return sluice(name, *options, "--stats=json")


RUNGS = {c.name: c for c in
         [rung(f"copy-{k}k", "--mode=copy", f"--buffer-size={k}K") for k in (8, 16, 64, 256)] +
         [rung(f"splice-{name}", "--mode=splice", f"--pipe-size={name}") for name in ("64k", "256k", "1m")] +
         [rung("auto", "--mode=auto"), Contestant("direct", None)]}


class Stream(Bulk):
    """Bulk, and what it is made of."""

    def sample(self, bench, contestant):
        where = bench.start(contestant)
        self.warm_up(bench, where)
        counted = None if contestant.direct else Counted(bench.testbed)
        got, cpu, machine, others = measured(bench, lambda: self._run(bench, where, bench.seconds))
        gib = got["bytes"] / GIB
        figures = {"gbit_s": got["gbit_s"], "machine_s_per_gib": machine / gib}
        if bench.testbed.counts:
            figures["others_cpus"] = others
        return figures if contestant.direct else figures | made_of(counted.since(), got, cpu)

    def warm_up(self, bench, where):
        self._run(bench, where, min(WARM_UP, bench.seconds))


class Iperf(Stream):
    """The same by iperf3, as in the story; it knows whole seconds alone."""

    def _run(self, bench, where, seconds):
        host, port = where.split(":")
        argv = ["iperf3", "-c", host, "-p", port, "-t", math.ceil(seconds), "-J", *self.args]
        client = bench.testbed.inside(bench.testbed.clients, argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                      text=True)
        got = json.loads(client.communicate()[0])
        if "error" in got:
            raise Trouble(f"iperf3: {got['error']}")
        end = got["end"]["sum_received"]
        return {"bytes": end["bytes"], "seconds": end["seconds"], "gbit_s": end["bits_per_second"] / 1e9}


def made_of(counted, got, cpu):
    """Figures of what sluice counted while a client got @got through."""
    calls_per_s, bytes_per_call = counted["calls"] / got["seconds"], counted["moved"] / counted["calls"]
    return {"cpu_s_per_gib": cpu / got["bytes"] * GIB, "calls_per_s": calls_per_s,
            "calls_per_mib": counted["calls"] / got["bytes"] * MIB, "bytes_per_call": bytes_per_call,
            "product_gbit_s": calls_per_s * bytes_per_call * 8 / 2 / 1e9,
            "by_pipe": counted["by_pipe"] / counted["delivered"],
            "context_switches_per_s": counted["switches"] / got["seconds"]}


def options(p):
    measuring_options(p)
    p.add_argument("--rungs", type=some_of(RUNGS), default=list(RUNGS), metavar="A,B",
                   help=f"these alone, of {','.join(RUNGS)}")
    p.add_argument("--streams", type=numbers, default=["8", "1"], metavar="A,B", help="how many [8,1]")
    p.add_argument("--svg", metavar="FILE", help="draw that of most streams there, with gnuplot")
    p.add_argument("--iperf3", action="store_true", help="load it with iperf3 -P, not with sluice-load")


def check_iperf(args):
    if args.iperf3 and not shutil.which("iperf3"):
        raise Trouble("--iperf3: it is not installed; try: apt install iperf3")
    if args.iperf3 and args.loopback:
        raise Trouble("--iperf3 goes through the namespaces, where its server is; leave out --loopback")


def measure(args, bench):
    """Return: {streams: {rung: samples}}"""
    chosen = [RUNGS[name] for name in args.rungs]
    progress = Progress("lab", len(args.streams) * args.rounds * len(chosen))
    if args.iperf3:
        bench.port = IPERF_PORT
    kind = Iperf if args.iperf3 else Stream
    return {n: interleave(bench, kind(int(n)), chosen, args.rounds, progress, f"{n} streams", args.patience)
            for n in args.streams}


def show(name, about, samples, figures, base=None, head="rung"):
    print("\n".join(write(name, about, samples, {}, base, figures, head)), flush=True)


def disturbed(samples):
    """Says how many samples others have disturbed: numbers of these are worth less."""
    all_ = [s for by_rung in samples.values() for of_rung in by_rung.values() for s in of_rung if s]
    n = sum("disturbed" in s for s in all_)
    if n:
        print(f"{n} of {len(all_)} samples were taken while others used the machine.\n")


def succeeded(samples):
    return all(any(of_rung) for by_rung in samples.values() for of_rung in by_rung.values())


def run(args):
    check_iperf(args)
    with ready(args) as bench:
        results.check(args)
        print(results.headline())
        samples = measure(args, bench)
    for n, by_rung in samples.items():
        how = "on loopback" if args.loopback else "through namespaces"
        show(f"ladder, {n} stream{'s' * (n != '1')}", how, by_rung, FIGURES)
    disturbed(samples)
    if args.svg:
        most = max(samples, key=int)
        with open(args.svg, "w") as f:
            f.write(chart.alone(f"{most} streams", samples[most]))
    results.keep(args, "ladder",
                 {"seconds": args.seconds, "rounds": args.rounds, "load": "iperf3" if args.iperf3 else "sluice-load",
                  "streams": samples})
    return 0 if succeeded(samples) else 1
