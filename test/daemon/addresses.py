#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Where it listens, and which address of a target it takes."""
import os
import re
import subprocess
import sys

from kit import Skip, check, connect, equal, need_ipv6, proc, run, test, told
from kit.names import with_hosts
from kit.netns import need
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
    hosts = with_hosts(t, "127.0.0.1 localhost\n::1 here\n127.0.0.1 here\n")
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
    hosts = with_hosts(t, "127.0.0.1 localhost\n::1 here\n127.0.0.1 here\n")
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
    hosts = with_hosts(t, "127.0.0.1 localhost\n127.0.0.1 localhost.localdomain localhost\n")
    s = t.sluice("localhost:0", "localhost:%d" % backend.addr[1], wrap=hosts)
    served(t, s, backend)


@test()
def a_name_to_listen_at_is_every_address_of_it(t):
    need_ipv6()
    backend = t.backend()
    hosts = with_hosts(t, "127.0.0.1 localhost\n::1 here\n127.0.0.1 here\n")
    s = t.sluice("here:0", "127.0.0.1:%d" % backend.addr[1], wrap=hosts)
    equal(sorted(host for host, _ in s.addrs), ["127.0.0.1", "::1"], "addresses")
    for addr in s.addrs:
        served(t, addr, backend)


def alone(t, script, hosts=""):
    """Words before the program, so that it has a network of its own, set up by @script, and an /etc/hosts."""
    need("unshare")
    wrap = ["unshare", "-n"]
    if os.system("unshare -n true 2>/dev/null"):
        raise Skip("no network namespaces here")
    return wrap + ["sh", "-c", "ip link set lo up; " + script + ' && exec "$@"', "sh"] + (with_hosts(t, hosts) if hosts else [])


def inside(s, *words):
    """Runs a program in its network. Return: what it printed."""
    return subprocess.run(["nsenter", "-n", "-t", str(s.pid), *words], stdin=subprocess.DEVNULL, check=True, text=True,
                          stdout=subprocess.PIPE, timeout=20).stdout


def connects(s, host, port, scope=""):
    """Whether somebody in its network can connect there."""
    return "yes" in inside(s, sys.executable, "-c", f"""
import socket
try:
    socket.create_connection(({host + scope!r}, {port}), 5)
    print("yes")
except ConnectionResetError:  # accepted, and reset again
    print("yes")
except OSError as e:
    print(e)
""")


NO_IPV6 = "echo 1 >/proc/sys/net/ipv6/conf/all/disable_ipv6"


@test()
def of_a_name_the_addresses_that_this_machine_does_not_have_are_left_out_with_a_warning(t):
    need_ipv6()
    hosts = "::1 here\n127.0.0.1 here\n::1 six\n"
    s = t.sluice("here:0", "127.0.0.1:9", wrap=alone(t, NO_IPV6, hosts))
    equal([host for host, _ in s.addrs], ["127.0.0.1"], "addresses")
    check(s.err.find(rf"^sluice: warning: here: \[::1\]:{s.addr[1]} left out: "), s.err.lines)
    check(connects(s, *s.addr), "it does not listen")
    for one in "six", "[::1]":  # no other remains
        status, _, err = t.sluice(f"{one}:0", "127.0.0.1:9", wrap=alone(t, NO_IPV6, hosts), ready=False).result()
        check(status == 1 and len(err) == 1 and "[::1]:0: Cannot assign" in err[0], f"exit {status}, {err}")


# Only IPv6 has these ports: one that the kernel chooses for IPv4 is free there.
TAKE_PORTS = """
import os, socket, sys
held = []
with open("/proc/sys/net/ipv4/ip_local_port_range", "w") as f:
    f.write("40000 40099")
for port in range(40000, 40100):
    if port in FREE:
        continue
    s = socket.socket(socket.AF_INET6)
    s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    s.bind(("::", port))
    s.listen()
    os.set_inheritable(s.fileno(), True)
    held.append(s)
os.execvp(sys.argv[1], sys.argv[1:])
"""


@test()
def a_port_that_the_kernel_chooses_is_free_in_both_families(t):
    need_ipv6()
    for n in range(5):
        take = TAKE_PORTS.replace("FREE", "range(40000, 40100, 2)")
        s = t.sluice("0", "127.0.0.1:9", wrap=alone(t, "true") + [sys.executable, "-c", take])
        equal(sorted(host for host, _ in s.addrs), ["0.0.0.0", "::"], "addresses")
        equal(s.addrs[0][1], s.addrs[1][1], "the port of both")
        check(s.addrs[0][1] % 2 == 0, f"port {s.addrs[0][1]}, which is taken")
        equal(len(s.err.lines), 3, f"lines: {s.err.lines}")
    take = TAKE_PORTS.replace("FREE", "()")
    status, _, err = t.sluice("0", "127.0.0.1:9", wrap=alone(t, "true") + [sys.executable, "-c", take], ready=False).result()
    check(status == 1 and len(err) == 1 and re.search(r"Address already in use \(\d+ other ports tried\)", err[0]),
          f"exit {status}, {err}")


@test(each=[{"to": a} for a in ("192.0.2.77", "2001:db8::77")])
def with_freebind_it_listens_at_an_address_that_comes_later(t):
    need_ipv6()
    to = t.way.pop("to")
    listen = f"[{to}]:7000" if ":" in to else f"{to}:7000"
    status, _, err = t.sluice(listen, "127.0.0.1:9", wrap=alone(t, "true"), ready=False).result()
    check(status == 1 and "Cannot assign" in err[0], f"without: exit {status}, {err}")
    s = t.sluice("--freebind", listen, "127.0.0.1:9", wrap=alone(t, "true"))
    check(not connects(s, to, 7000), "somebody listens there already")
    inside(s, "ip", "addr", "add", to + ("/128" if ":" in to else "/32"), "dev", "lo", *(["nodad"] if ":" in to else []))
    check(proc.wait_for(lambda: connects(s, to, 7000)), "it does not listen there")


@test()
def a_link_local_address_is_listened_at_again_when_its_interface_is_made_anew(t):
    need_ipv6()
    make = "ip link add d0 type veth peer name d1 && ip link set d1 up && ip link set d0 up && ip addr add fe80::7/64 dev d0 nodad"
    s = t.sluice("[fe80::7%d0]:7000", "127.0.0.1:9", wrap=alone(t, make))
    check(connects(s, "fe80::7", 7000, "%d0"), "it does not listen")
    inside(s, "ip", "link", "del", "d0")
    inside(s, "sh", "-c", "ip link add x0 type veth peer name x1")  # so that the index is another
    inside(s, "sh", "-c", make)
    check(proc.wait_for(lambda: connects(s, "fe80::7", 7000, "%d0")), "it does not listen again")
    check(s.err.find(r"warning: listening socket failed on \[fe80::7%.*\]:7000: its interface was replaced"), s.err.lines)
    check(s.err.find(r"warning: listening socket replaced on \[fe80::7%d0\]:7000"), s.err.lines)


if __name__ == "__main__":
    run()
