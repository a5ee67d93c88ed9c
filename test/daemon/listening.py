#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A listening socket that fails, or whose options are refused: defined, reported, and never a spin."""
import socket
import time

from kit import Skip, check, equal, exchange, netns, proc, run, test
from kit.seccomp import refuse
from kit.strace import Attached, Strace

# What the manual pages list for each call, and what sandboxes answer.
ACCEPT = ("EAGAIN EBADF ECONNABORTED EFAULT EINTR EINVAL EMFILE ENFILE ENOBUFS ENOMEM ENOTSOCK EOPNOTSUPP EPERM EPROTO "
          "ENETDOWN ENOPROTOOPT EHOSTDOWN ENONET EHOSTUNREACH ENETUNREACH ENOSR ESOCKTNOSUPPORT EPROTONOSUPPORT "
          "ETIMEDOUT ECONNRESET EACCES ENOSYS").split()
PAUSE = "EMFILE ENFILE ENOBUFS ENOMEM ENOSR EFAULT EACCES ENOSYS".split()
GONE = "EBADF EINVAL ENOTSOCK".split()
LISTEN = "EADDRINUSE EBADF ENOTSOCK EOPNOTSUPP EPERM ENOSYS".split()
BIND = ("EACCES EADDRINUSE EBADF EINVAL ENOTSOCK EADDRNOTAVAIL EFAULT ELOOP ENAMETOOLONG ENOENT ENOMEM ENOTDIR EROFS "
        "EPERM ENOSYS").split()
SOCKET = "EACCES EAFNOSUPPORT EINVAL EMFILE ENFILE ENOBUFS ENOMEM EPROTONOSUPPORT EPERM ENOSYS".split()
SETSOCKOPT = "EBADF EFAULT EINVAL ENOPROTOOPT ENOTSOCK EPERM ENOSYS EOPNOTSUPP".split()

SPIN_S = 0.35  # of cpu in a second; a spin takes all of it that it gets


def cpu_of_a_second(s):
    before = proc.cpu(s.pid)
    time.sleep(1)
    return proc.cpu(s.pid) - before


def served(t, s, backend, addr=None):
    client, server = t.pair(addr or s, backend)
    exchange(client, server, 1, 1000)
    client.close()
    server.close()


def knock(t, s):
    """A client that may be reset before it knows that it is connected."""
    try:
        t.connect(s)
    except ConnectionResetError:
        pass


@test(each=[{"error": e} for e in ACCEPT])
def accept_that_fails_for_ever_is_no_spin_and_is_told(t):
    error = t.way.pop("error")
    s = t.forward("127.0.0.1:9", "--workers=1", wrap=refuse("accept4", error))
    knock(t, s)
    words = "listening socket failed on" if error in GONE else "accept paused for [0-9]+ ms on"
    check(s.err.find(f"warning: {words} 127.0.0.1:{s.addr[1]}: "), s.err.lines)
    used = cpu_of_a_second(s)
    check(used < SPIN_S, f"{used} s of cpu in a second")
    c = s.stats()["connections"]
    name = "accept_reopened" if error in GONE else "accept_pauses"
    check(0 < c[name] < 40, c)
    check(c["accept_errors"] < 200, c)


@test(each=[{"error": e} for e in ACCEPT if e != "EAGAIN"])
def accept_that_fails_once_delays_a_client_at_most(t):
    error = t.way.pop("error")
    strace = Strace(t, f"accept4:error={error}:when=1", trace="accept4")
    backend = t.backend()
    s = t.forward(backend, "--workers=1", wrap=strace.wrap)
    if error in GONE:  # who waits at a socket that has died is reset
        knock(t, s)
        check(s.err.find("listening socket replaced on 127.0.0.1"), s.err.lines)
    served(t, s, backend)
    c = s.stats_at_rest()["connections"]
    want = int(error != "EMFILE"), int(error in PAUSE and error != "EMFILE"), int(error in GONE)  # it closed free pipes
    equal(c["accepted"], 1, "accepted")
    equal((c["accept_errors"], c["accept_pauses"], c["accept_reopened"]), want, f"errors, pauses and new sockets in {c}")


@test(each=[{"how": h} for h in ("destroyed", "shut down")])
def a_listening_socket_that_dies_is_replaced(t):
    how = t.way.pop("how")
    backend = t.backend()
    s = t.forward(backend, "--workers=1", "--rcvbuf=20K")
    served(t, s, backend)
    for n in 1, 2:
        if how == "destroyed":
            kill_listener(s)
        else:
            shut_down_listener(s)
        s.stats_when(lambda totals: totals["connections"]["accept_reopened"] == n)
        served(t, s, backend)
    check(s.err.find("warning: listening socket replaced on 127.0.0.1"), s.err.lines)
    used = cpu_of_a_second(s)
    check(used < SPIN_S, f"{used} s of cpu in a second")
    for x in proc.sockets(s.pid):
        t.keep(x)
        equal(x.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF), 40960, "its receive buffer")


def shut_down_listener(s):
    for x in proc.sockets(s.pid):
        if x.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
            x.shutdown(socket.SHUT_RDWR)
        x.close()


def kill_listener(s):
    """As ss -K does, which may not be there or not be allowed to."""
    status, out = netns.run_here("ss", "-K", "-tln", "sport", "=", str(s.addr[1]))
    if status or str(s.addr[1]) not in out:
        raise Skip(f"sockets cannot be destroyed here: {out}")


@test()
def while_its_address_is_taken_it_tries_again_and_then_goes_on(t):
    backend = t.backend()
    s = t.forward(backend, "--workers=1", leaks=False)
    Attached(t, s, "bind:error=EADDRINUSE:when=1..4", trace="bind")
    shut_down_listener(s)
    check(s.err.find(f"warning: cannot listen at 127.0.0.1:{s.addr[1]}: Address already in use; next attempt in"), s.err.lines)
    used = cpu_of_a_second(s)
    check(used < SPIN_S, f"{used} s of cpu in a second")
    s.stats_when(lambda totals: totals["connections"]["accept_reopened"] == 1)
    served(t, s, backend)


def starts_or_says_why(t, wrap, *listen):
    """Return: None if it works, or its one line."""
    backend = t.backend()
    to = "127.0.0.1:%d" % backend.addr[1]
    s = t.sluice("--workers=1", *listen, to, wrap=wrap, ready=False)
    if s.err.find("ready:|error:")[0] == "error:":
        status, _, err = s.result()
        equal(status, 1, "exit status")
        equal(len([li for li in err if "error:" in li]), 1, f"errors in {err}")
        equal(len(err), 1, f"lines, {err}")
        return err[0]
    s.addrs = [("127.0.0.1", int(s.err.find(r"127\.0\.0\.1:(\d+) ->")[1]))]
    served(t, s, backend)
    used = cpu_of_a_second(s)
    check(used < SPIN_S, f"{used} s of cpu in a second")
    return None


@test(each=[{"call": c, "error": e} for c, errors in (("listen", LISTEN), ("bind", BIND)) for e in errors])
def bind_and_listen_that_fail_are_told_in_one_line(t):
    call, error = t.way.pop("call"), t.way.pop("error")
    line = starts_or_says_why(t, refuse(call, error), "127.0.0.1:0")
    check(line and "cannot listen at 127.0.0.1:0: " in line, line)


@test(each=[{"error": e} for e in SOCKET])
def socket_that_fails_is_told_in_one_line(t):
    error = t.way.pop("error")
    line = starts_or_says_why(t, refuse("socket", error, a0=socket.AF_INET), "127.0.0.1:0")
    check(line and "cannot listen at 127.0.0.1:0: " in line, line)


# Level, option, and what the start says about it.
IMPROVES = {
    "NODELAY": (6, 1, "TCP_NODELAY unavailable; small messages may be delayed"),
    "OOBINLINE": (1, 10, "SO_OOBINLINE unavailable"),
    "REUSEADDR": (1, 2, "SO_REUSEADDR unavailable"),
    "KEEPALIVE": (1, 9, "keepalive unavailable"),
    "KEEPIDLE": (6, 4, "keepalive unavailable"),
}


@test(each=[{"option": o, "error": e} for o in IMPROVES for e in SETSOCKOPT])
def an_option_that_only_improves_is_told_and_is_not_fatal(t):
    level, option, text = IMPROVES[t.way.pop("option")]
    wrap = refuse("setsockopt", t.way.pop("error"), a1=level, a2=option)
    backend = t.backend()
    s = t.forward(backend, "--workers=1", wrap=wrap)
    served(t, s, backend)
    warnings = [li for li in s.err.lines if "warning:" in li]
    check(len(warnings) == 1 and text in warnings[0], s.err.lines)


@test()
def an_option_that_was_asked_for_is_needed(t):
    for way, level, option in (("--keepalive=1m:1s:1", 6, 4), ("--rcvbuf=64K", 1, 8), ("--freebind", 0, 15),
                               ("--user-timeout=5s", 6, 18)):
        line = starts_or_says_why(t, refuse("setsockopt", "EPERM", a1=level, a2=option), way, "127.0.0.1:0")
        check(line and way.split("=")[0] in line and "not permitted" in line, f"{way}: {line}")


@test(each=[{"call": c} for c in ("signalfd4", "timerfd_create", "epoll_create1", "eventfd2")])
def a_call_that_is_refused_at_start_is_named(t):
    call = t.way.pop("call")
    line = starts_or_says_why(t, refuse(call, "EPERM"), "127.0.0.1:0")
    name = {"signalfd4": "signalfd", "timerfd_create": "timerfd", "epoll_create1": "epoll", "eventfd2": "eventfd"}[call]
    check(line and f"cannot create {name}: Operation not permitted" in line, line)


if __name__ == "__main__":
    run(at_once=4)
