# SPDX-License-Identifier: MIT
"""What each option that tunes a socket, a worker or its pipes does here, beside sluice as it comes.

8 streams of bulk and 16 connections with requests, each option in each round. "again" is sluice as it comes once more:
what it differs by is noise. A ratio counts as beyond noise if its median lies outside all that "again" made, and all
rounds agree on whether it is more or less.
"""
import statistics

import results
from ladder import FIGURES as BULK_FIGURES
from ladder import Stream, disturbed, rung, show, succeeded
from place import measuring_options, ready
from rounds import Progress, interleave
from rr import FIGURES as RR_FIGURES
from rr import Requests
from table import ratios

HELP = "what --rcvbuf, --sndbuf, --notsent-lowat, --congestion, --busy-poll and --pipes=own do here"
BASE = "as it comes"
OPTIONS = [f"--{name}={size}" for name in ("rcvbuf", "sndbuf") for size in ("64K", "256K", "4M")] + \
          ["--notsent-lowat=16K", "--notsent-lowat=128K", "--busy-poll=off", "--busy-poll=50", "--pipes=own"]
WORK = {"bulk-8": (Stream(8), BULK_FIGURES, ("gbit_s", "cpu_s_per_gib")),
        "rr-16": (Requests(16), RR_FIGURES, ("transactions_per_s", "p99_us", "cpu_us_per_transaction"))}


def options(p):
    measuring_options(p, seconds=1.0)
    p.add_argument("--only", metavar="TEXT", default="", help="only options that contain this, such as rcvbuf")


def congestions():
    """Those that this kernel has ready, but for the one that is set."""
    with open("/proc/sys/net/ipv4/tcp_available_congestion_control") as f, \
         open("/proc/sys/net/ipv4/tcp_congestion_control") as now:
        return [f"--congestion={name}" for name in sorted(set(f.read().split()) - {now.read().strip()})]


def remarks(bench, who):
    """What sluice warns of with each option: one that the kernel does not grant says nothing. Yields lines."""
    for contestant in who:
        bench.start(contestant)
        with open(bench.testbed.folder + "/log") as log:
            for line in log:
                if "warning: " in line:
                    yield f"- `{contestant.name}`: {line.split('warning: ')[1].strip()}"
        bench.testbed.clean()


def judge(samples, figures):
    """For each option and figure: its ratio to BASE, and whether that is more than noise."""
    verdict = {}
    for who, of_one in samples.items():
        for figure in figures if who not in (BASE, "again") else ():
            got, noise = ratios(of_one, samples[BASE], figure), ratios(samples["again"], samples[BASE], figure)
            if got and noise:
                ratio, least, most = statistics.median(got), min(noise + [1]), max(noise + [1])
                beyond = not least <= ratio <= most and not min(got) <= 1 <= max(got)
                verdict.setdefault(who, {})[figure] = {
                    "ratio": ratio, "least": min(got), "most": max(got), "noise_least": least, "noise_most": most,
                    "beyond_noise": beyond}
    return verdict


def sentences(verdict, known):
    for who, figures in verdict.items():
        said = [f"{known[f][0]} {v['ratio']:.2f}" for f, v in figures.items() if v["beyond_noise"]]
        yield f"- `{who}`: " + (", ".join(said) or "nothing beyond noise")


def run(args):
    with ready(args) as bench:
        results.check(args)
        print(results.headline())
        chosen = [o for o in OPTIONS + congestions() if args.only in o]
        who = [rung(BASE, "--mode=splice"), rung("again", "--mode=splice")] + \
              [rung(o, "--mode=splice", o) for o in chosen]
        said = list(remarks(bench, who))
        print("\n".join(["Not as asked for:", *said, ""] if said else []))
        progress = Progress("lab", len(WORK) * args.rounds * len(who))
        samples, verdict = {}, {}
        for name, (workload, known, figures) in WORK.items():
            samples[name] = interleave(bench, workload, who, args.rounds, progress, name, args.patience)
            verdict[name] = judge(samples[name], figures)
            show(name, workload.about, samples[name], known, BASE, "option")
            print("\n".join(sentences(verdict[name], known)) + "\n", flush=True)
    disturbed(samples)
    results.keep(args, "experiments",
                 {"seconds": args.seconds, "rounds": args.rounds, "work": samples, "verdict": verdict})
    return 0 if succeeded(samples) else 1
