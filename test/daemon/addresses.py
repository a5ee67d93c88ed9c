#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Where it listens, and which address of a target it takes."""

from kit import Skip, check, connect, equal, need_ipv6, run, test, told
from kit.netns import hosts_of_its_own
from kit.sluice import split_address
from kit.strace import Strace


def served(t, addr, backend):
    client, server = t.pair(addr, backend)
    client.sendall(b"hello")
    equal(server.recv(5), b"hello", f"bytes through {addr}")
    return client, server


@test()
def a_port_alone_listens_in_both_families(t):
    need_ipv6()
    backend = t.backend()
    for listen in "0", "*:0":
        s = t.sluice(listen, "127.0.0.1:%d" % backend.addr[1])
        equal(sorted(host for host, _ in s.addrs), ["0.0.0.0", "::"], "addresses")
        equal(s.addrs[0][1], s.addrs[1][1], "the port of both")
        served(t, ("127.0.0.1", s.addrs[0][1]), backend)
        served(t, ("::1", s.addrs[0][1]), backend)


@test()
def an_address_listens_there_and_nowhere_else(t):
    need_ipv6()
    backend = t.backend()
    to = "127.0.0.1:%d" % backend.addr[1]
    s = t.sluice("127.0.0.2:0", to)
    equal(s.addrs[0][0], "127.0.0.2", "address")
    served(t, s, backend)
    for elsewhere in "127.0.0.1", "::1":
        try:
            connect((elsewhere, s.addrs[0][1])).close()
        except ConnectionRefusedError:
            continue
        check(False, f"it listens at {elsewhere} too")
    s = t.sluice("[::1]:0", to)
    served(t, s, backend)
    s = t.sluice("0.0.0.0:0", to)
    served(t, ("127.0.0.2", s.addrs[0][1]), backend)


@test()
def a_v6_wildcard_takes_no_v4_clients(t):
    need_ipv6()
    backend = t.backend()
    s = t.sluice("[::]:0", "127.0.0.1:%d" % backend.addr[1])
    served(t, ("::1", s.addrs[0][1]), backend)
    try:
        connect(("127.0.0.1", s.addrs[0][1])).close()
    except ConnectionRefusedError:
        return
    check(False, "[::] took a client of 127.0.0.1")


def place_of_v6(t, *args):
    """Which socket(2) of the program makes the listening one for IPv6, counted from 1."""
    strace = Strace(t, trace="socket")
    t.sluice(*args, wrap=strace.wrap).stop()
    calls = [li for li in strace.lines() if "socket(" in li]
    places = [n for n, li in enumerate(calls, 1) if "AF_INET6" in li and "SOCK_STREAM" in li]
    check(places, calls)
    return places[-1]


@test(each=[{"error": e} for e in ("EAFNOSUPPORT", "EADDRNOTAVAIL")])
def a_wildcard_leaves_out_a_family_that_this_machine_has_not_and_an_address_is_refused(t):
    need_ipv6()
    error = t.way.pop("error")
    backend = t.backend()
    to = "127.0.0.1:%d" % backend.addr[1]
    where = place_of_v6(t, "0", to)
    strace = Strace(t, f"socket:error={error}:when={where}", trace="socket")
    s = t.sluice("0", to, wrap=strace.wrap)
    equal([host for host, _ in s.addrs], ["0.0.0.0"], "addresses")
    served(t, ("127.0.0.1", s.addrs[0][1]), backend)

    where = place_of_v6(t, "[::1]:0", to)
    strace = Strace(t, f"socket:error={error}:when={where}", trace="socket")
    status, _, err = t.sluice("[::1]:0", to, wrap=strace.wrap, ready=False).result()
    check(status == 1 and len(err) == 1 and "[::1]:0" in err[0], f"exit {status}, {err}")


@test()
def a_target_may_be_v4_v6_or_a_name(t):
    need_ipv6()
    four, six = t.backend(), t.backend(host="::1")
    for target, backend in (("127.0.0.1:%d", four), ("[::1]:%d", six), ("localhost:%d", four)):
        s = t.sluice("127.0.0.1:0", target % backend.addr[1])
        served(t, s, backend)


@test()
def every_address_of_a_name_is_tried_in_order(t):
    need_ipv6()
    backend = t.backend()
    hosts = hosts_of_its_own(t, "127.0.0.1 localhost\n::1 here\n127.0.0.1 here\n")
    s = t.sluice("127.0.0.1:0", "here:%d" % backend.addr[1], wrap=hosts)
    targets = [split_address(m) for m in (li.split()[3] for li in s.err.lines if "->" in li)]
    equal(sorted(host for host, _ in targets), ["127.0.0.1", "::1"], "targets in the start lines")
    for _ in range(20):
        client, server = served(t, s, backend)
        server.sendall(b"answer")
        equal(client.recv(6), b"answer", "answer")
        client.close()
        server.close()
    totals = s.stop()
    equal(totals["connections"]["connected"], 20, "connected")
    equal(totals["connections"]["ended"]["connect_failed"], 0, "connect_failed")


@test()
def the_first_address_that_answers_is_used_and_the_last_failure_is_told(t):
    need_ipv6()
    four, six = t.backend(), t.backend(host="::1")
    hosts = hosts_of_its_own(t, "127.0.0.1 localhost\n::1 here\n127.0.0.1 here\n")
    port = four.addr[1]
    six.close()
    six = t.backend(host="::1", port=port)  # both answer
    s = t.sluice("127.0.0.1:0", f"here:{port}", wrap=hosts)
    first = split_address([li.split()[3] for li in s.err.lines if "->" in li][0])[0]
    served(t, s, six if first == "::1" else four)
    four.close()
    six.close()
    equal(told(s), "RST", "what a client is told")
    check(s.err.find(r"cannot connect: Connection refused"), s.err.lines)


@test()
def an_address_that_a_name_has_twice_is_listened_at_once(t):
    backend = t.backend()
    hosts = hosts_of_its_own(t, "127.0.0.1 localhost\n127.0.0.1 localhost.localdomain localhost\n")
    s = t.sluice("localhost:0", "localhost:%d" % backend.addr[1], wrap=hosts)
    served(t, s, backend)


@test()
def a_name_to_listen_at_is_every_address_of_it(t):
    need_ipv6()
    backend = t.backend()
    hosts = hosts_of_its_own(t, "127.0.0.1 localhost\n::1 here\n127.0.0.1 here\n")
    s = t.sluice("here:0", "127.0.0.1:%d" % backend.addr[1], wrap=hosts)
    equal(sorted(host for host, _ in s.addrs), ["127.0.0.1", "::1"], "addresses")
    for addr in s.addrs:
        served(t, addr, backend)


if __name__ == "__main__":
    run()
