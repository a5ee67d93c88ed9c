#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A target of several addresses: which are tried, in which order, and what becomes of those that lose."""
import re
import socket
import time

from kit import MODES, Backend, check, end_of, equal, exchange, proc, reset, run, test, told, ways
from kit.names import with_hosts
from kit.strace import Strace

EVERY_WAY = ways(workers=(2,))
LONG = "--connect-timeout=40s"  # a test that waits for it has failed
SOON_S = 10                     # far less, and far more than it should take


class Silent(Backend):
    """An address whose queue is full: connects to it stay under way."""

    def __init__(self, host, port):
        super().__init__(host=host, port=port, backlog=0)
        self.fillers = [socket.socket(self.socket.family) for _ in range(4)]
        for s in self.fillers:
            s.setblocking(False)
            s.connect_ex((host, port))
        time.sleep(0.05)

    def close(self):
        for s in self.fillers:
            s.close()
        super().close()


def name_of(t, *hosts):
    """Words before the program, for which the name "many" is these addresses."""
    return with_hosts(t, "127.0.0.1 localhost\n" + "".join(f"{h} many\n" for h in hosts))


def order_of(s):
    """The addresses of its target, in the order in which they were resolved."""
    return [li.split()[3].rsplit(":", 1)[0].strip("[]") for li in s.err.lines if " -> " in li]


def tried(strace, port):
    """The IPv4 addresses that it has connected to at this port, in order."""
    found = [re.search(rf'connect\(.*htons\({port}\), sin_addr=inet_addr\("([^"]+)"', li) for li in strace.lines()]
    return [m[1] for m in found if m]


@test(each=EVERY_WAY)
def a_dead_first_address_costs_a_moment_once_and_then_nothing(t):
    live = t.backend(host="127.0.0.3")
    port = live.addr[1]
    strace = Strace(t, trace="connect")
    s = t.forward(f"many:{port}", LONG, wrap=name_of(t, "127.0.0.2", "127.0.0.3") + strace.wrap)
    dead = order_of(s)[0]
    if dead == "127.0.0.3":
        live.close()
        live = t.backend(host="127.0.0.2", port=port)
    t.keep(Silent(dead, port))
    since = time.monotonic()
    exchange(*t.pair(s, live), 1, 1000)
    check(time.monotonic() - since < SOON_S, f"connected after {time.monotonic() - since:.3f} s")
    for n in range(5):
        exchange(*t.pair(s, live), n, 1000)
    equal(proc.count_becomes(s.pid, 13, "socket:"), 13, "sockets of six connections and of who listens")
    equal(tried(strace, port), [dead] + 6 * [live.addr[0]], "connects")
    equal(s.stats()["connections"]["connected"], 6, "connected")


@test(each=EVERY_WAY)
def the_first_of_two_that_answer_wins_and_no_other_is_tried(t):
    one = t.backend(host="127.0.0.2")
    two = t.backend(host="127.0.0.3", port=one.addr[1])
    s = t.forward(f"many:{one.addr[1]}", LONG, wrap=name_of(t, "127.0.0.2", "127.0.0.3"))
    first, second = (one, two) if order_of(s)[0] == "127.0.0.2" else (two, one)
    for n in range(10):
        exchange(*t.pair(s, first), n, 1000)
    try:
        second.accept(within=0.5)
    except socket.timeout:
        return
    check(False, "the second address has got a connection")


@test(each=EVERY_WAY)
def one_that_answers_late_and_has_lost_is_closed_without_a_trace(t):
    live = t.backend(host="127.0.0.3")
    port = live.addr[1]
    s = t.forward(f"many:{port}", LONG, wrap=name_of(t, "127.0.0.2", "127.0.0.3"))
    if order_of(s)[0] == "127.0.0.3":
        live.close()
        live = t.backend(host="127.0.0.2", port=port)
    silent = t.keep(Silent(order_of(s)[0], port))
    client, server = t.pair(s, live)
    exchange(client, server, 1, 1000)
    equal(proc.count_becomes(s.pid, 3, "socket:"), 3, "sockets")
    for f in silent.fillers:
        f.close()
    silent.socket.listen(64)
    exchange(client, server, 2, 1000)
    server.close()
    equal(end_of(client), "FIN", "end of the one that has won")


@test(each=EVERY_WAY)
def when_all_refuse_the_client_is_told_soon_also_behind_a_silent_one(t):
    backend = t.backend(host="127.0.0.2")
    port = backend.addr[1]
    backend.close()
    s = t.forward(f"many:{port}", "--connect-timeout=1s", wrap=name_of(t, *(f"127.0.0.{i}" for i in range(2, 9))))
    since = time.monotonic()
    for _ in range(5):
        equal(told(s), "RST", "what a client is told")
    check(time.monotonic() - since < SOON_S, f"five told after {time.monotonic() - since:.3f} s")
    silent = [t.keep(Silent(f"127.0.0.{i}", port)) for i in (2, 3, 4)]
    since = time.monotonic()
    equal(told(s), "RST", "what a client is told when some do not answer")
    check(0.9 < time.monotonic() - since < SOON_S, f"told after {time.monotonic() - since:.3f} s")
    check(len(silent) == 3, silent)
    ended = s.stats_at_rest()["connections"]["ended"]
    equal(ended["connect_failed"] + ended["connect_timeout"], 6, f"failed in {ended}")
    equal(proc.count_becomes(s.pid, 1, "socket:"), 1, "sockets left")


@test(each=EVERY_WAY)
def a_bounded_number_of_attempts_is_under_way_and_a_reset_ends_them_all(t):
    hosts = [f"127.0.0.{i}" for i in range(2, 10)]
    port = t.backend(host=hosts[0]).addr[1]
    s = t.forward(f"many:{port}", LONG, wrap=name_of(t, *hosts[1:]))
    for h in hosts[1:]:
        t.keep(Silent(h, port))
    client = t.connect(s)
    equal(proc.count_becomes(s.pid, 6, "socket:"), 6, "sockets: listening, client, four attempts")
    time.sleep(0.6)
    equal(proc.count(s.pid, "socket:"), 6, "sockets a while later")
    check(proc.awake(s.pid, 0.3) < 0.3, "it spins")
    reset(client)
    equal(proc.count_becomes(s.pid, 1, "socket:"), 1, "sockets left")
    equal(s.stats()["connections"]["ended"]["client_left"], 1, "client_left")


@test(each=MODES)
def a_connection_to_one_address_registers_its_sockets_and_arms_no_timer(t):
    backend = t.backend()
    strace = Strace(t, trace="epoll_ctl,timerfd_settime,connect,socket")
    s = t.forward(backend, "--workers=1", wrap=strace.wrap)
    exchange(*t.pair(s, backend), 1, 10)  # the first arms the timer
    before = len(strace.lines())
    exchange(*t.pair(s, backend), 2, 10)
    s.stats()
    calls = [(li.split(None, 1)[0], li.split(None, 1)[1].split("(")[0]) for li in strace.lines()[before:] if "(" in li]
    worker = [thread for thread, name in calls if name == "connect"]
    names = [name for thread, name in calls if thread in worker]  # the main thread has timers of its own
    equal(sorted(names), ["connect", "epoll_ctl", "epoll_ctl", "socket"], "calls of the second connection")


if __name__ == "__main__":
    run(at_once=2)
