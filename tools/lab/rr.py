# SPDX-License-Identifier: MIT
"""Requests of 32 bytes, each answered before the next: transactions a second, and how long they took, p50 to p99.9.

On one connection each transaction waits for four wake-ups in a row: sluice, server, sluice, client. On 16 and 64 the
forwarder has enough to do, and the rate tells what a message costs. Client and server are sluice-load's, on this machine
too: compare rows.

Where netperf is installed, its TCP_RR is run through sluice as well. netperf opens a second connection, for the data,
to a port that netserver chooses and tells it by the first; a forwarder of one port cannot carry that. So two ports are
forwarded, and netserver is told the second (`-- -P ,PORT2`), the same on both sides of the forwarder.
"""
import math
import shutil
import subprocess

import results
from contestants import Contestant
from counted import Counted
from ladder import WARM_UP, disturbed, rung, show, succeeded
from place import listening, measuring_options, numbers, ready, some_of
from rounds import Progress, interleave
from testbed import Trouble
from workloads import Exchange, measured

HELP = "32-byte requests: transactions a second, p50 to p99.9; netperf's where it is installed"
SIZE = 32
CONTROL_PORT, DATA_PORT = 12865, 12866  # of netserver
FIGURES = {
    "transactions_per_s": ("a second", ".0f", "+"),
    "p50_us": ("p50 us", ".0f", "-"),
    "p99_us": ("p99 us", ".0f", "-"),
    "p999_us": ("p99.9 us", ".0f", "-"),
    "cpu_us_per_transaction": ("cpu us each", ".1f", "-"),
    "calls_per_transaction": ("calls each", ".1f", " "),
    "context_switches_per_s": ("context switches a second", ".0f", " "),
    "over_35ms": ("> 35 ms", ".0f", " "),
    "others_cpus": ("cpus of others", ".2f", " "),
}
WHO = {c.name: c for c in [rung(mode, f"--mode={mode}") for mode in ("splice", "copy", "auto")] +
       [Contestant("direct", None)]}


class Requests(Exchange):
    """Request and answer, and what they are made of."""

    def __init__(self, connections):
        super().__init__("rr", connections, SIZE, pinned=False)

    def sample(self, bench, contestant):
        where = bench.start(contestant)
        self._run(bench, where, min(WARM_UP, bench.seconds))
        counted = None if contestant.direct else Counted(bench.testbed)
        got, cpu, _, others = measured(bench, lambda: self._run(bench, where, bench.seconds))
        figures = {"transactions_per_s": got["tps"], "over_35ms": got["over_35ms"],
                   **{f"{p}_us": got[f"{p}_us"] for p in ("p50", "p99", "p999")}}
        if bench.testbed.counts:
            figures["others_cpus"] = others
        if counted:
            made = counted.since()
            figures |= {"cpu_us_per_transaction": cpu / got["transactions"] * 1e6,
                        "calls_per_transaction": made["calls"] / got["transactions"],
                        "context_switches_per_s": made["switches"] / got["seconds"]}
        return figures


def netperf(bench):
    """netperf's TCP_RR through sluice, one run. Return: its figures, or why there are none."""
    lacks = [program for program in ("netperf", "netserver") if not shutil.which(program)]
    if lacks:
        return {"missing": f"{lacks[0]} is not installed"}
    testbed = bench.testbed
    if not testbed.counts:
        return {"missing": "on loopback netserver's port and the forwarded one cannot be the same"}
    server = testbed.inside(testbed.servers, ["netserver", "-D", "-4", "-p", CONTROL_PORT], stdin=subprocess.DEVNULL,
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    two_ports = Contestant("netperf", f"{{sluice}} --workers={{workers}} {{listen}} {{target}} "
                           f"{{host}}:{DATA_PORT} {{thost}}:{DATA_PORT}")
    try:
        listening(testbed, "netserver", CONTROL_PORT)
        host, port = testbed.start(two_ports, CONTROL_PORT, None).split(":")
        argv = ["netperf", "-4", "-P", "0", "-H", host, "-p", port, "-t", "TCP_RR", "-l", math.ceil(bench.seconds),
                "--", "-P", f",{DATA_PORT}", "-r", f"{SIZE},{SIZE}", "-k", "TRANSACTION_RATE,P50_LATENCY,P99_LATENCY"]
        client = testbed.inside(testbed.clients, argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True)
        out = client.communicate()[0]
    finally:
        testbed.clean()
        server.terminate()
        server.wait()
    got = dict(line.split("=", 1) for line in out.splitlines() if "=" in line)
    if client.returncode or "TRANSACTION_RATE" not in got:
        raise Trouble(f"netperf: {out.strip()[-300:]}")
    return {"transactions_per_s": float(got["TRANSACTION_RATE"]), "p50_us": float(got["P50_LATENCY"]),
            "p99_us": float(got["P99_LATENCY"])}


def options(p):
    measuring_options(p)
    p.add_argument("--connections", type=numbers, default=["1", "16", "64"], metavar="A,B",
                   help="how many at a time [1,16,64]")
    p.add_argument("--modes", type=some_of(WHO), default=list(WHO), metavar="A,B",
                   help=f"these alone, of {','.join(WHO)}")


def measure(args, bench):
    """Return: {connections: {who: samples}}"""
    chosen = [WHO[name] for name in args.modes]
    progress = Progress("lab", len(args.connections) * args.rounds * len(chosen))
    return {n: interleave(bench, Requests(int(n)), chosen, args.rounds, progress, f"rr, {n} connections", args.patience)
            for n in args.connections}


def show_all(samples):
    for n, by_mode in samples.items():
        show(f"rr, {n} connection{'s' * (n != '1')}", f"request and answer of {SIZE} bytes", by_mode, FIGURES,
             head="mode")


def run(args):
    with ready(args) as bench:
        results.check(args)
        print(results.headline())
        samples = measure(args, bench)
        theirs = netperf(bench)
    show_all(samples)
    disturbed(samples)
    print("netperf TCP_RR: " + (theirs.get("missing") or ", ".join(f"{k} {v:g}" for k, v in theirs.items())))
    results.keep(args, "rr",
                 {"seconds": args.seconds, "rounds": args.rounds, "size_bytes": SIZE, "connections": samples,
                  "netperf": theirs})
    return 0 if succeeded(samples) else 1
