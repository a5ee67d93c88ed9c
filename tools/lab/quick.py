# SPDX-License-Identifier: MIT
"""A first look in 20 seconds: no root, nothing but a build of sluice, all on loopback.

Loopback misleads: there is no device and no second queue, and client, sluice and server share the cpus. That larger
calls are better, and for whom, shows all the same. `lab ladder` and `lab rr` measure it properly.
"""
import argparse

import ladder
import results
import rr
from place import above_0, build_option, ready

HELP = "a first look in 20 seconds: without root, on loopback"
SECONDS = 20
# Each sample also takes its start, its warm-up, a look whether others use the machine, and its end.
OVERHEAD = 0.9


def options(p):
    build_option(p)
    p.add_argument("--seconds", type=above_0(float), default=SECONDS, metavar="S",
                   help=f"how long all of it may take, about [{SECONDS}]")
    p.add_argument("--json", metavar="FILE", help="add the results to that file")


def run(args):
    work = argparse.Namespace(loopback=True, rounds=1, patience=0, build=args.build, iperf3=False, streams=["8"],
                              connections=["16"], rungs=["copy-8k", "copy-64k", "splice-1m", "auto"],
                              modes=["splice", "copy", "auto"])
    samples = len(work.rungs) + len(work.modes)
    work.seconds = max(0.2, args.seconds / samples - OVERHEAD)
    with ready(work) as bench:
        results.check(args)
        print(results.headline())
        bulk, small = ladder.measure(work, bench), rr.measure(work, bench)
    ladder.show("bulk, 8 streams", "on loopback", bulk["8"], ladder.FIGURES)
    rr.show_all(small)
    ladder.disturbed(bulk)
    ladder.disturbed(small)
    print("Client, sluice and server share the cpus: compare rows, and see `lab ladder` for a path with devices in it.")
    results.keep(args, "quick", {"seconds": work.seconds, "streams": bulk, "connections": small})
    return 0 if ladder.succeeded(bulk) and ladder.succeeded(small) else 1
