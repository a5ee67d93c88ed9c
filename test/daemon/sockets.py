#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Options that change the sockets, and how a worker waits for them."""
import time

from kit import MODES, Job, check, equal, exchange, half_close, proc, receive_to_end, run, send_until_full, test


def fits(t, *options):
    """How many bytes a client can say to a target that does not read."""
    backend = t.backend()
    s = t.forward(backend, *options)
    client, server = t.pair(s, backend, sndbuf=16384)
    sent = send_until_full(client, 1)
    reader = Job(receive_to_end, server, 1)
    half_close(client)
    equal(reader.result(), ("FIN", sent), "what the target heard")
    return sent


@test(each=MODES)
def small_buffers_hold_little(t):
    few = fits(t, "--rcvbuf=16K", "--sndbuf=16K")
    many = fits(t)
    check(few < many / 2, f"{few} bytes fit in with buffers of 16K, and {many} with the kernel's own")


@test(each=MODES)
def bytes_are_carried_with_every_setting(t):
    backend = t.backend()
    s = t.forward(backend, "--rcvbuf=8K", "--sndbuf=8K", "--notsent-lowat=4K", "--congestion=reno")
    client, server = t.pair(s, backend)
    exchange(client, server, 1, 500000)


@test()
def a_size_that_the_kernel_does_not_grant_is_said_once(t):
    s = t.forward("127.0.0.1:9", "--rcvbuf=1G", "--sndbuf=1G", stats=None)
    s.stop()
    for name, limit in (("rcvbuf", "net.core.rmem_max"), ("sndbuf", "net.core.wmem_max")):
        lines = [li for li in s.err.lines if f"--{name}=1073741824: the kernel grants" in li and limit in li]
        equal(len(lines), 1, f"lines about --{name}, of {s.err.lines}")


@test()
def a_congestion_control_that_is_not_there_is_refused(t):
    status, out, err = t.sluice("--congestion=nothing", "127.0.0.1:0", "127.0.0.1:9", ready=False, stats=None).result()
    equal((status, out, len(err)), (1, "", 1), "exit status, stdout, lines on stderr")
    check("--congestion=nothing" in err[0] and "tcp_available_congestion_control" in err[0], err)


@test(each=MODES)
def a_worker_told_to_looks_before_it_sleeps(t):
    backend = t.backend()
    s = t.forward(backend, "--busy-poll=20000", "--workers=1")
    client, server = t.pair(s, backend)
    for n in range(20):
        exchange(client, server, n, 100)
    looks = s.stats()["busy_poll"]
    check(looks["found"] >= 20, f"of {looks['polls']} looks {looks['found']} found something, in 40 messages")


@test(each=MODES)
def messages_go_through_while_it_learns(t):
    backend = t.backend()
    s = t.forward(backend, "--busy-poll=auto", "--workers=1")
    client, server = t.pair(s, backend)
    for n in range(500):
        exchange(client, server, n, 64)
    check(s.stats()["busy_poll"]["polls"] > 3, "it has never tried to look")
    exchange(client, server, 1, 3000000)


@test(each=[{}, {"busy-poll": "auto"}, {"busy-poll": "off"}])
def unless_told_otherwise_it_learns(t):
    backend = t.backend()
    s = t.forward(backend, "--workers=1")
    client, server = t.pair(s, backend)
    for n in range(100):
        exchange(client, server, n, 64)
    looks = s.stats()["busy_poll"]["polls"]
    equal(looks > 0, t.way.get("busy-poll") != "off", f"that it looks, {looks} times")


@test(each=[{"busy-poll": "auto"}, {"busy-poll": "50"}, {"busy-poll": "off"}])
def at_rest_it_sleeps_whatever_it_was_told(t):
    backend = t.backend()
    s = t.forward(backend)
    pairs = t.pairs(s, backend, 20)
    for n, (client, server) in enumerate(pairs):
        exchange(client, server, n, 1000)
    time.sleep(0.3)
    before = s.stats()["busy_poll"]["polls"], proc.cpu(s.pid)
    time.sleep(1)
    check(proc.cpu(s.pid) - before[1] <= 0.03, "it uses the cpu")
    looks = s.stats()["busy_poll"]["polls"]
    check(looks - before[0] <= 10, f"{looks - before[0]} looks in a second in which nothing happened")
    if t.way["busy-poll"] == "off":
        equal(looks, 0, "polls")


if __name__ == "__main__":
    run(at_once=3)
