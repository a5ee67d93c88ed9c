#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Where there is no pipe to be had a direction uses a buffer, and the totals say why by its own name."""
import resource
import socket

from kit import (KIB, MIB, Job, Skip, check, equal, exchange, half_close, proc, receive_to_end, run, send_until_full,
                 test)
from kit.strace import Attached, Strace
from kit.user import hog_pipes, pipe_limits, spare_user

NAMES = {"EMFILE": "pipe_descriptors", "ENFILE": "pipe_quota", "EPERM": "pipe_refused", "ENOMEM": "pipe_refused",
         "ENOSYS": "pipe_refused"}
SMALL = [(socket.SOL_SOCKET, socket.SO_RCVBUF, 16 * KIB)]


def small_backend(t):
    """One that leaves most of what is sent to it with the forwarder."""
    return t.backend(options=SMALL)


def connected_pairs(t, s, backend, n):
    pairs = t.pairs(s, backend, n, rcvbuf=16 * KIB)
    s.stats_when(lambda totals: totals["connections"]["connected"] >= n)
    return pairs


def stall(pairs):
    """Fills every direction, so that each asks for a pipe of its own. Return: bytes of each."""
    jobs = [(Job(send_until_full, c, 2 * n), Job(send_until_full, b, 2 * n + 1)) for n, (c, b) in enumerate(pairs)]
    return [(up.result(), down.result()) for up, down in jobs]


def read_all(s, pairs, sizes):
    """Reads what was stalled, to the ends, and checks it. Return: totals at rest."""
    jobs = []
    for n, ((client, server), (up, down)) in enumerate(zip(pairs, sizes)):
        half_close(client)
        half_close(server)
        jobs += [(Job(receive_to_end, server, 2 * n), up), (Job(receive_to_end, client, 2 * n + 1), down)]
    for job, size in jobs:
        equal(job.result(), ("FIN", size), "stream")
    totals = s.stats_at_rest()
    everything = sum(map(sum, sizes))
    equal((totals["bytes"]["read"], totals["bytes"]["delivered"]), (everything,) * 2, "read and delivered")
    equal((totals["pipes"]["out"], totals["buffers"]["now"]), (0, 0), "pipes and buffers out at rest")
    return totals


def reasons(totals):
    return {k for k, n in totals["fallbacks"].items() if n}


@test(each=[{"error": e, "when": w} for e, w in (("EMFILE", "1"), ("ENFILE", "1"), ("EPERM", "1"), ("EMFILE", "2+2"),
                                                 ("ENOMEM", "2+2"))])
def a_pipe_that_is_refused_later_on_is_a_buffer_this_time(t):
    error, when = t.way["error"], t.way["when"]
    t.way = {"mode": "splice", "workers": 1}
    backend = small_backend(t)
    s = t.forward(backend, leaks=False)
    pairs = connected_pairs(t, s, backend, 3)
    Attached(t, s, f"pipe2:error={error}:when={when}", trace="pipe2")
    totals = read_all(s, pairs, stall(pairs))
    equal(reasons(totals), {NAMES[error]}, f"reasons of {error}")
    check(totals["bytes"]["by_pipe"] and totals["bytes"]["by_buffer"], totals["bytes"])


@test(each=[{"error": e} for e in NAMES])
def pipes_that_are_always_refused_are_buffers_and_the_reason_is_the_kernel_s(t):
    error = t.way.pop("error")
    backend = small_backend(t)
    strace = Strace(t, f"pipe2:error={error}", trace="pipe2")
    s = t.forward(backend, "--mode=splice", "--workers=2", wrap=strace.wrap)
    exchange(*connected_pairs(t, s, backend, 1)[0], 1, MIB)
    totals = s.stats_when(lambda totals: totals["bytes"]["delivered"] == 2 * MIB)
    equal(reasons(totals), {NAMES[error]}, f"reasons of {error}")
    equal((totals["bytes"]["by_pipe"], totals["pipes"]["made"]), (0, 0), "by pipe, and pipes made")


@test(each=[{"error": e} for e in ("EMFILE", "ENFILE", "EPERM")])
def a_pipe_that_is_refused_at_the_start_alone_is_asked_for_again(t):
    error = t.way.pop("error")
    backend = small_backend(t)
    # the first of each thread: what the program tries at its start, and the worker's own first
    strace = Strace(t, f"pipe2:error={error}:when=1", trace="pipe2")
    s = t.forward(backend, "--mode=splice", "--workers=1", wrap=strace.wrap)
    total = 0
    for n in range(400):  # it may hold off for a while
        client, server = connected_pairs(t, s, backend, 1)[0]
        exchange(client, server, n, 100)
        total += 200
        client.close()
        server.close()
        if n % 100 == 99 and s.stats()["bytes"]["by_pipe"]:
            break
    totals = s.stats_at_rest()
    equal(totals["bytes"]["delivered"], total, "delivered")
    equal(reasons(totals), {NAMES[error]}, f"reasons of {error}")
    check(totals["bytes"]["by_pipe"] > 0, f"no pipe was tried again in {n + 1} connections: {totals['fallbacks']}")


@test()
def a_size_that_is_refused_is_halved_until_it_is_granted(t):
    for when, size in (("1", 512 * KIB), ("1..3", 128 * KIB)):
        strace = Strace(t, f"fcntl:error=EPERM:when={when}", trace="fcntl")
        backend = t.backend()
        s = t.forward(backend, "--mode=splice", "--workers=1", wrap=strace.wrap)
        hit = [li for li in strace.lines() if "INJECTED" in li]
        check(hit and all("F_SETPIPE_SZ" in li for li in hit), strace.lines())
        check(s.err.find(rf"pipes of {size} bytes \(requested 1048576\)"), s.err.lines)
        exchange(*t.pair(s, backend), 1, 2 * MIB)
        totals = s.stats_when(lambda totals: totals["bytes"]["delivered"] == 4 * MIB)
        equal((totals["bytes"]["by_pipe"], reasons(totals)), (4 * MIB, set()), "by pipe, and fallbacks")


@test()
def a_pipe_that_cannot_be_grown_at_all_is_taken_as_it_is(t):
    strace = Strace(t, "fcntl:error=EPERM:when=1..5", trace="fcntl")  # 1M, 512K, 256K, 128K, 64K
    backend = t.backend()
    s = t.forward(backend, "--mode=splice", "--workers=1", wrap=strace.wrap)
    check(s.err.find(r"pipes of 65536 bytes \(requested 1048576\)"), s.err.lines)
    exchange(*t.pair(s, backend), 1, MIB)
    equal(reasons(s.stats()), set(), "fallbacks")


@test(each=[{"mode": "splice", "workers": n} for n in (1, 2)])
def with_no_descriptor_left_it_goes_on_with_buffers(t):
    backend = small_backend(t)
    s = t.forward(backend)
    pairs = connected_pairs(t, s, backend, 4)
    used = proc.descriptors(s.pid)
    full = next(n for n in range(len(used) + 1) if n not in used)
    hard = resource.prlimit(s.pid, resource.RLIMIT_NOFILE)[1]
    resource.prlimit(s.pid, resource.RLIMIT_NOFILE, (full, hard))
    sizes = stall(pairs)
    resource.prlimit(s.pid, resource.RLIMIT_NOFILE, (hard, hard))
    totals = read_all(s, pairs, sizes)
    equal(reasons(totals), {"pipe_descriptors"}, "reasons")
    check(totals["bytes"]["by_pipe"] and totals["bytes"]["by_buffer"], totals["bytes"])


@test()
def a_worker_whose_share_of_pipes_is_out_uses_buffers_and_takes_pipes_from_the_stalled(t):
    t.way = {"mode": "splice", "workers": 1}
    backend = small_backend(t)
    s = t.forward(backend, limits={resource.RLIMIT_NOFILE: 128})
    m = s.err.find(r"ready: .* (\d+) pipes")
    check(1 < int(m[1]) < 16, m[0])
    pairs = connected_pairs(t, s, backend, 10)
    sizes = stall(pairs)
    totals = s.stats()
    check(reasons(totals) <= {"pipe_share"}, reasons(totals))
    equal(totals["pipes"]["out"], int(m[1]), "pipes out")
    client, server = t.pair(s, backend)
    for n in range(200):  # messages of one that is not stalled
        exchange(client, server, n, 3000)
    after = s.stats()
    check(after["bytes"]["by_pipe"] > totals["bytes"]["by_pipe"], "no pipe for the one that is not stalled")
    check(after["bytes"]["spilled"] > 0, after["bytes"])
    client.close()
    server.close()
    for n, ((c, b), (up, down)) in enumerate(zip(pairs, sizes)):
        half_close(c)
        half_close(b)
        job = Job(receive_to_end, b, 2 * n)
        equal(receive_to_end(c, 2 * n + 1), ("FIN", down), "stream down")
        equal(job.result(), ("FIN", up), "stream up")
    totals = s.stats_at_rest()
    equal(totals["bytes"]["read"], totals["bytes"]["delivered"], "read, against delivered")


def as_user(t, backend, user):
    return t.forward(backend, "--mode=splice", "--workers=1", user=user)


@test()
def when_the_user_s_quota_of_pipes_is_used_up_the_reason_is_the_quota(t):
    if not pipe_limits()[0]:
        raise Skip("no quota of pipes here")
    user = spare_user()
    hog_pipes(t, user)
    backend = small_backend(t)
    s = as_user(t, backend, user)
    pairs = connected_pairs(t, s, backend, 2)
    totals = read_all(s, pairs, stall(pairs))
    equal(reasons(totals), {"pipe_quota"}, "reasons")
    equal(totals["bytes"]["by_pipe"], 0, "by pipe")


@test()
def when_the_quota_is_used_up_later_what_it_has_goes_on_being_used(t):
    if not pipe_limits()[0]:
        raise Skip("no quota of pipes here")
    user = spare_user()
    backend = small_backend(t)
    s = as_user(t, backend, user)
    pairs = connected_pairs(t, s, backend, 3)
    hog_pipes(t, user)
    totals = read_all(s, pairs, stall(pairs))
    equal(reasons(totals), {"pipe_quota"}, "reasons")
    check(totals["bytes"]["by_pipe"] and totals["bytes"]["by_buffer"], totals["bytes"])
    check(min(proc.pipe_sizes(s.pid).values()) >= 64 * KIB, proc.pipe_sizes(s.pid))


@test()
def an_ordinary_user_gets_the_largest_pipe_that_there_is(t):
    most = pipe_limits()[1]
    user = spare_user()
    backend = t.backend()
    s = t.forward(backend, "--mode=splice", "--workers=1", f"--pipe-size={4 * most}", user=user)
    check(s.err.find(rf"pipes of {most} bytes \(requested {4 * most}\)"), s.err.lines)
    equal(set(proc.pipe_sizes(s.pid).values()), {most}, "sizes of its pipes")


if __name__ == "__main__":
    run(at_once=2)
