#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What the lab reads of others' output.

In printed/, perf-software and strace were printed by perf 6.1 and strace 6.1, of a sluice under load; perf-plain and
perf-hybrid are in the form in which perf prints on such machines, with numbers that are made up.
"""
import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [os.path.join(ROOT, *folder) for folder in (("test", "daemon"), ("tools", "lab"), ("tools", "bench"))]

from kit import Job, check, equal, proc, run, test  # noqa: E402

import counted      # noqa: E402
import experiments  # noqa: E402
import perf_stat    # noqa: E402
import syscalls     # noqa: E402


def printed(name):
    with open(os.path.join(HERE, "printed", name)) as f:
        return f.read()


@test()
def perf_of_an_ordinary_machine_is_read(t):
    counts, cores = perf_stat.parse(printed("perf-plain"))
    equal(cores, {}, "kinds of core")
    equal(counts, {"cycles": 30412880115, "instructions": 43794547366, "cache-misses": 18420733, "branches": 8211004982,
                   "branch-misses": 41055025, "context-switches": 2811, "cpu-migrations": 37, "page-faults": 2,
                   "task-clock": 8659.76}, "counts")
    figures = perf_stat.figures_of(counts, {"bytes": 10 << 30, "seconds": 5})
    equal(round(figures["instructions_per_cycle"], 2), 1.44, "as perf itself says")
    equal(round(figures["branch_misses_percent"], 2), 0.50, "as perf itself says")
    equal(round(figures["context_switches_per_s"]), 562, "2811 in 5 s")
    equal(round(figures["cpus_used"], 3), 1.732, "as perf itself says")


@test()
def perf_of_a_hybrid_machine_is_read_by_kind_of_core_and_added_up(t):
    counts, cores = perf_stat.parse(printed("perf-hybrid"))
    equal(sorted(cores), ["cpu_atom", "cpu_core"], "kinds of core")
    equal(counts["cycles"], 16e9, "cycles of both")
    equal(counts["branch-misses"], 20e6, "branch misses of both")
    equal(counts["cache-misses"], 1.5e6, "cache misses, of which one kind was not counted")
    equal(cores["cpu_atom"]["cache-misses"], None, "cache misses that were not counted")
    equal(counts["context-switches"], 911, "context switches, which no core counts")
    equal([perf_stat.per_cycle(cores[kind]) for kind in ("cpu_core", "cpu_atom")], [2.0, 1.0], "instructions a cycle")
    equal(perf_stat.per_cycle(counts), 1.75, "instructions a cycle of both")


@test()
def a_thread_that_ran_on_one_kind_of_core_has_counts_of_that(t):
    _, cores = perf_stat.parse("  <not counted>   cpu_atom/cycles/   (0.00%)\n  7  cpu_core/cycles/\n")
    lines = list(perf_stat.cores_table({"rung": [{"cores": {kind: {**c, "instructions_per_cycle": None}
                                                            for kind, c in cores.items()}}]}))
    check("rung, on cpu_atom: not counted" in lines[0] and "rung, on cpu_core: cycles 7" in lines[1], lines)


@test()
def perf_without_hardware_counters_gives_what_the_kernel_counts(t):
    counts, cores = perf_stat.parse(printed("perf-software"))
    equal(cores, {}, "kinds of core")
    equal([counts[event] for event in perf_stat.HARDWARE], [None] * 5, "hardware events")
    equal([counts[event] for event in perf_stat.SOFTWARE], [6121, 0, 33, 351.27], "software events")
    figures = perf_stat.figures_of(counts, {"bytes": 1 << 30, "seconds": 0.5})
    equal(sorted(figures), ["context_switches_per_s", "cpu_migrations_per_s", "cpus_used", "page_faults_per_s"],
          "figures that need no hardware")


@test()
def perf_that_could_not_look_into_the_kernel_is_not_believed(t):
    for text, alone in (("  0  context-switches:u  # 0.000 /sec\n", True), ("  12  cpu_core/cycles/u  (74.10%)\n", True),
                        (printed("perf-plain"), False), (printed("perf-hybrid"), False)):
        equal(perf_stat.user_alone(text), alone, f"whether it counted in user space alone: {text}")
    equal(perf_stat.parse("  12  cpu_core/cycles/u  (74.10%)\n")[0], {"cycles": 12}, "counts")


@test()
def the_table_of_strace_is_read(t):
    calls = syscalls.parse(printed("strace"))
    equal(len(calls), 11, "system calls")
    equal(calls["epoll_wait"], {"calls": 538, "errors": 0, "seconds": 0.509175}, "epoll_wait, without errors")
    equal(calls["sendto"], {"calls": 8508, "errors": 2, "seconds": 0.174867}, "sendto, with errors")
    equal(sum(c["calls"] for c in calls.values()), 17585, "calls in all, as strace says")


@test()
def the_table_tells_cost_from_sleep(t):
    calls = syscalls.parse(printed("strace"))
    rows = list(syscalls.rows([{"tid": 7, "name": "sluice/0", "cpu_s": 0.33, "calls": calls}]))
    equal([(r[1], r[6]) for r in rows], [("cpu time of the thread", "what it costs"),
                                         ("epoll_wait", "mostly asleep: no cost"), ("sendto", ""), ("recvfrom", "")],
          "rows of what took 5 ms or more")


@test()
def a_thread_that_sleeps_is_switched(t):
    before = counted.switches(os.getpid())
    sleeper = Job(lambda: [time.sleep(0.001) for _ in range(300)])
    counts_them = proc.wait_for(lambda: counted.switches(os.getpid()) >= before + 100, within=1)
    sleeper.result()
    check(counts_them, "a thread sleeps 300 times, and fewer than 100 switches are counted")


@test()
def an_experiment_counts_only_beyond_noise(t):
    def of(*values):
        return [{"gbit_s": v} for v in values]
    verdict = experiments.judge({experiments.BASE: of(10, 10, 10), "again": of(9, 10, 11), "slower": of(5, 6, 7),
                                 "within": of(9, 9.5, 10), "wild": of(5, 30, 30), "failed": [None, None, None]},
                                ("gbit_s",))
    equal({who: v["gbit_s"]["beyond_noise"] for who, v in verdict.items()},
          {"slower": True, "within": False, "wild": False}, "beyond noise")
    equal(verdict["slower"]["gbit_s"]["ratio"], 0.6, "median ratio")


if __name__ == "__main__":
    run()
