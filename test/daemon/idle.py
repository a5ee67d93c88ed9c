#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What connections cost that have nothing to say, and those whose readers do not read."""
import resource
import time

from kit import (KIB, MODES, FullBacklog, Job, check, equal, exchange, half_close, proc, receive, run, send_until_full, test,
                 ways)

WATCH_S = 0.6
LITTLE = 0.1  # of a core; a spin takes a whole one


def costs_nothing(s, what):
    """For a while it must use no cpu, and hardly wake up."""
    cpu, wakeups = proc.cpu(s.pid), proc.wakeups(s.pid)
    awake = proc.awake(s.pid, WATCH_S)
    cpu, wakeups = proc.cpu(s.pid) - cpu, proc.wakeups(s.pid) - wakeups
    check(cpu <= LITTLE * WATCH_S and awake < 0.3, f"{cpu:.2f} s of cpu in {WATCH_S} s, awake for {awake:.0%}, with {what}")
    check(wakeups < 20, f"{wakeups} wake-ups in {WATCH_S} s with {what}")


@test(each=ways())
def an_idle_connection_costs_two_descriptors_and_nothing_else(t):
    backend = t.backend()
    s = t.forward(backend)
    exchange(*t.pair(s, backend), 1, 1000)
    before = proc.count(s.pid), proc.count(s.pid, "socket:")
    pairs = t.pairs(s, backend, 100)
    equal(proc.count(s.pid, "socket:") - before[1], 200, "sockets of 100 connections")
    equal(proc.count(s.pid) - before[0], 200, "descriptors of 100 connections that have said nothing")
    for n, (client, server) in enumerate(pairs):
        exchange(client, server, n, 5000)
    s.stats_when(lambda totals: not totals["pipes"]["out"])
    made = s.stats()["pipes"]["now"]
    equal(proc.count(s.pid, "socket:") - before[1], 200, "sockets of 100 used connections")
    check(proc.count(s.pid, "pipe:") <= 2 * made + 2, f"{proc.count(s.pid, 'pipe:')} ends of pipes, totals say {made}")
    equal(s.stats()["buffers"]["now"], 0, "buffers")
    costs_nothing(s, "100 idle connections")


@test(each=[{"mode": "splice", "pipes": "own", "workers": 1}])
def own_pipes_cost_a_pair_for_each_connection_that_was_used(t):
    backend = t.backend()
    s = t.forward(backend)
    pairs = t.pairs(s, backend, 20)
    before = proc.count(s.pid, "pipe:")
    for n, (client, server) in enumerate(pairs):
        exchange(client, server, n, 1000)
    s.stats_when(lambda totals: totals["pipes"]["out"] == 40)
    check(40 <= (proc.count(s.pid, "pipe:") - before) / 2 + 1 <= 42,
          f"{proc.count(s.pid, 'pipe:') - before} more ends of pipes for 20 connections")
    costs_nothing(s, "20 connections with pipes of their own")
    for client, server in pairs:
        client.close()
        server.close()
    equal(s.stats_at_rest()["pipes"]["out"], 0, "pipes out")


@test(each=[{"mode": "splice", "workers": 1}])
def free_pipes_are_closed_after_a_while(t):
    backend = t.backend()
    s = t.forward(backend)
    pairs = t.pairs(s, backend, 8, rcvbuf=16 * KIB)
    sizes = [send_until_full(server, 1, quiet=0.05) for _, server in pairs]
    check(s.stats()["pipes"]["now"] >= 8, s.stats()["pipes"])
    for (client, _), size in zip(pairs, sizes):
        receive(client, 1, size)
    totals = s.stats_when(lambda totals: totals["pipes"]["now"] == 1, within=14)
    equal(totals["pipes"]["now"], 1, "pipes left")
    equal(proc.count_becomes(s.pid, 4, "pipe:"), 4, "ends of pipes, with its stdout and stderr")


@test(each=ways(workers=(1,)))
def readers_that_do_not_read_cost_no_cpu(t):
    backend = t.backend()
    s = t.forward(backend)
    pairs = t.pairs(s, backend, 20, rcvbuf=16 * KIB)
    jobs = [Job(send_until_full, server, 1) for _, server in pairs]
    for job in jobs:
        check(job.result() > 100 * KIB, "nothing was queued")
    costs_nothing(s, "20 stalled readers")


@test(each=ways(workers=(1,)))
def half_closed_connections_cost_no_cpu(t):
    backend = t.backend()
    s = t.forward(backend)
    pairs = t.pairs(s, backend, 30)
    for n, (client, server) in enumerate(pairs):
        half_close((client, server)[n % 2])
    time.sleep(0.1)
    costs_nothing(s, "30 half-closed connections")
    equal(s.stats()["connections"]["open"], 30, "open")


@test(each=ways(workers=(1,)))
def without_a_connection_it_sleeps(t):
    s = t.forward("127.0.0.1:9")
    costs_nothing(s, "nothing to do")


@test(each=MODES)
def clients_whose_target_does_not_answer_cost_no_cpu(t):
    target = t.keep(FullBacklog())
    s = t.forward(target)
    for _ in range(30):
        t.connect(s).sendall(b"anybody there?")
    s.stats_when(lambda totals: totals["connections"]["open"] == 30)
    costs_nothing(s, "30 connects under way")


@test(each=MODES)
def the_descriptor_limit_is_raised_to_the_hard_limit(t):
    s = t.forward("127.0.0.1:9", limits={resource.RLIMIT_NOFILE: (100, 3000)})
    equal(resource.prlimit(s.pid, resource.RLIMIT_NOFILE), (3000, 3000), "limit")
    m = s.err.find(r"descriptors for (\d+) connections")
    check(1000 < int(m[1]) <= 1500, m[0])


if __name__ == "__main__":
    run(at_once=6)
