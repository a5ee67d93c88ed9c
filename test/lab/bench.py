#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tools/bench: who is measured when nobody is named, the ladder, piped rows, and wrong use."""
import importlib.machinery
import importlib.util
import os
import re
import subprocess
import sys

from driver import NAME, ROOT, build

from kit import Skip, check, equal, run, test  # found by driver

BENCH = os.path.join(ROOT, "tools", "bench", "run")
sys.path[:0] = [os.path.join(ROOT, "tools", folder) for folder in ("lab", "bench")]

import contestants  # noqa: E402
import demo         # noqa: E402
import ladder       # noqa: E402
import testbed      # noqa: E402
import workloads    # noqa: E402

OURS = ["copy-8k", "copy-16k", "copy-64k", "splice-1m"]
STORY = OURS + ["socat-8k", "socat-16k", "socat-64k"]
PIPED = {"rr-1-piped": 1, "rr-64-piped": 64, "rr-512-piped": 512}


def arguments(*argv):
    """What tools/bench/run makes of a command line."""
    loader = importlib.machinery.SourceFileLoader("bench_run", BENCH)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("bench_run", loader))
    loader.exec_module(module)
    return module.arguments(list(argv))


def bench(*args):
    """Return: (exit status, stdout, stderr)"""
    p = subprocess.run([BENCH, *args], capture_output=True, text=True, timeout=15, check=False)
    return p.returncode, p.stdout, p.stderr


@test()
def the_ladder_is_measured_only_if_somebody_names_it(t):
    usual = arguments("bulk-8").only
    equal(set(contestants.ALL) - set(usual), {"own", "asleep", "socat-16k", *OURS},
          "who is not measured when nobody is named")
    args = arguments("bulk-8", "--only", ",".join(STORY), "--base", "copy-8k")
    equal((args.workloads, args.only, args.base), (["bulk-8"], STORY, "copy-8k"), "the story")
    status, out, err = bench("--list")
    equal((status, err), (0, ""), "--list")
    listed = dict(line.split(None, 1) for line in out.splitlines() if line)
    for name in contestants.ALL:
        equal("(only if named)" in listed[name], name not in usual,
              f"what --list says of {name}: {listed[name]}")


@test()
def the_ladder_is_that_of_the_lab_and_of_socat(t):
    for name in OURS:
        rung = ladder.RUNGS[name].command.replace(" --stats=json", "")
        equal(contestants.ALL[name].command, rung, name)
    for k in (8, 16, 64):
        check(f" -b {k * 1024} " in contestants.ALL[f"socat-{k}k"].command, f"socat {k}K")
    names = [c.name for c in contestants.ALL.values()]
    equal(len(set(names)), len(names), "contestants with a name of their own")


@test()
def piped_rows_are_those_beside_them_with_sixteen_under_way(t):
    order = list(workloads.WORKLOADS)
    equal(order[order.index("rr-512") + 1:][:3], list(PIPED), "the rows behind rr-512")
    out = bench("--list")[1]
    for name, n in PIPED.items():
        about = f"request and answer, 32 bytes, {n} at a time"
        check(f"\n{name:15} {about}, 16 under way on each\n" in out, f"{name}: {out}")
        check(f"\nrr-{n} ".ljust(17) + about + "\n" in out, f"rr-{n}: {out}")
        equal(workloads.WORKLOADS[name].pinned, workloads.WORKLOADS[f"rr-{n}"].pinned, name)


@test()
def of_forwarders_in_a_row_each_carries_what_passes(t):
    for name in ("row-32", "row-4K"):
        work = workloads.WORKLOADS[name]
        equal((work.hops, work.pinned), (3, True), name)
        check(work.about.endswith(", 3 forwarders in a row"), work.about)
    contestants.BUILT.use(build(t))
    with testbed.Loopback() as r:
        bench_ = workloads.Bench(r, 0.2)
        bench_.serve(0)
        where = bench_.start(contestants.sluice("sluice", "--mode=copy"), hops=3)
        pids = r.forwarder.pids()
        equal(len(pids), 3, "forwarders")
        before = [switches(pid) for pid in pids]
        got = workloads.result(bench_.client("rr", where, "--seconds", 0.2, "-N", 2), "rr")
        for pid, n in zip(pids, before):
            check(switches(pid) - n >= got["transactions"] / 4, "one of them stood aside")


def switches(pid):
    """How often a process went to sleep, all of its threads."""
    slept = 0
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/status") as f:
            slept += int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)", f.read(), re.M)[1])
    return slept


ENDS_IN_3 = "trap 'exit 3' TERM; echo ready; while :; do sleep 0.01; done"


@test(each=({"dropped": 5}, {"dropped": 0}))
def a_demo_in_which_sluice_drops_bytes_or_ends_in_trouble_fails(t):
    dropped = t.way["dropped"]
    real, demo.totals = demo.totals, lambda *_: {"bytes": {"dropped": dropped}}
    t.later(setattr, demo, "totals", real)
    with testbed.Loopback() as r:
        with open(r.folder + "/log", "w") as log:
            log.write("in trouble\n")
        sluice = r.forwarder.start(["sh", "-c", ENDS_IN_3], stdout=subprocess.PIPE)
        sluice.stdout.readline()
        words = "dropped 5 bytes" if dropped else "ended with exit status 3: in trouble"
        try:
            demo.end_well(workloads.Bench(r, 1))
        except testbed.Trouble as e:
            equal(str(e), f"sluice {words}", "what it says")
        else:
            check(False, f"no trouble: {sluice.returncode}")


@test()
def a_build_or_a_name_that_is_none_is_said_in_one_line(t):
    status, out, err = bench("rr-1", "--name", "much-too-long-a-name")
    equal((status, out), (2, ""), "a name that is too long")
    check("should be 1 to 12 of a-z, 0-9 and -" in err.splitlines()[-1], err)
    if os.geteuid():
        raise Skip("only root can make network namespaces")
    status, out, err = bench("rr-1", "--name", NAME, "--build", "/nowhere")
    equal((status, out), (1, ""), "--build /nowhere")
    check(err.startswith("bench: /nowhere/src/sluice is no program"), err)
    equal(err.count("\n"), 1, "lines")


if __name__ == "__main__":
    run()
