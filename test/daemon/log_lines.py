#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What is logged at each level, and that its numbers are true."""
import re
import time

from kit import (KIB, MODES, FullBacklog, Job, Nobody, check, end_of, equal, exchange, half_close, proc, receive,
                 receive_to_end, reset, run, send, send_until_full, test, told, ways)

END = re.compile(r"^sluice: (?P<who>\S+) -> (?P<whom>\S+): (?P<end>\w+): client (?P<client>[^,]+), target (?P<target>[^,]+), "
                 r"(?P<up>\d+) bytes up, (?P<down>\d+) down, (?P<seconds>[\d.]+) s, (?P<pipe>\d+) by pipe, "
                 r"(?P<buffer>\d+) by buffer$")


def end_line(t, s, client_name, **want):
    """The line about the connection of this client; there must be one."""
    check(s.err.find(re.escape(client_name) + " -> .* bytes up"), f"no line about {client_name}")
    found = [m for m in map(END.match, s.err.lines) if m and m["who"] == client_name]
    equal(len(found), 1, f"lines about {client_name}")
    m = found[0].groupdict()
    for key, value in want.items():
        equal(m[key], str(value), f"{key} in {found[0][0]!r}")
    equal(int(m["pipe"]) + int(m["buffer"]), int(m["up"]) + int(m["down"]), f"by pipe and by buffer in {found[0][0]!r}")
    equal(int(m["buffer" if t.way["mode"] == "splice" else "pipe"]), 0, f"the other path in {found[0][0]!r}")
    return float(m["seconds"])


def name_of(s):
    return "%s:%d" % s.getsockname()[:2]


@test(each=ways())
def by_default_only_start_and_stop_are_said(t):
    backend = t.backend()
    s = t.forward(backend)
    delivered = 0
    for n in range(20):
        client, server = t.pair(s, backend)
        exchange(client, server, n, 1000 + n)
        delivered += 2 * (1000 + n)
        (reset if n % 2 else type(client).close)(client)
        (reset if n % 3 else type(client).close)(server)
    s.stats_at_rest()
    s.stop()
    lines = s.err.wait_end()
    equal(len(lines), 3, f"lines in {lines}")
    check(" -> " in lines[0] and "ready: " in lines[1], lines)
    equal(lines[2], f"sluice: stopped: 20 connections, {delivered} bytes delivered", "last line")


@test(each=[{"workers": n} for n in (1, 2, 3)])
def the_last_line_counts_the_clients_that_every_worker_accepted(t):
    backend = t.backend()
    rule = "127.0.0.1:0", "%s:%d" % backend.addr
    s = t.sluice("--drain-timeout=0", *rule * 3)  # a worker accepts all clients of a rule
    for n, addr in enumerate(s.addrs):
        for _ in range(n + 1):
            exchange(*t.pair(addr, backend), n, 1000)
    s.stop()
    equal(s.err.wait_end()[-1], "sluice: stopped: 6 connections, 12000 bytes delivered", "last line")


@test(each=MODES)
def at_error_not_even_start_and_stop_are_said(t):
    nobody, spare = t.keep(Nobody()), t.backend()
    listen = spare.addr
    spare.close()
    s = t.sluice("--log-level=error", "%s:%d" % listen, "%s:%d" % nobody.addr, ready=False)
    check(proc.wait_for(lambda: proc.listening(listen[1])), "not listening")
    for _ in range(3):
        told(listen)
    s.stop()
    equal(s.err.wait_end(), [], "lines")


@test(each=MODES)
def at_error_a_failure_at_the_start_is_said(t):
    taken = "%s:%d" % t.backend().addr
    status, _, err = t.sluice("--log-level=error", taken, "127.0.0.1:9", ready=False).result()
    check(status == 1 and len(err) == 1 and taken in err[0], f"exit {status}, {err}")


@test(each=ways())
def at_info_each_finished_connection_has_a_line_whose_numbers_are_true(t):
    backend = t.backend()
    s = t.forward(backend, "--log-level=info")
    to = "%s:%d" % backend.addr
    for n in range(10):
        client, server = t.pair(s, backend)
        name = name_of(client)
        job = Job(send, client, 1, 1000 * n + 1)
        receive(server, 1, 1000 * n + 1)
        job.result()
        send(server, 2, 77 * n)
        half_close(server)
        receive_to_end(client, 2)
        client.close()
        end_line(t, s, name, whom=to, end="finished", client="FIN", target="FIN", up=1000 * n + 1, down=77 * n)
    equal(sum("bytes up" in li for li in s.err.lines), 10, "lines about connections")


@test(each=ways(workers=(1,)))
def at_info_the_line_tells_how_each_side_ended_and_after_how_long(t):
    backend = t.backend()
    s = t.forward(backend, "--log-level=info")

    client, server = t.pair(s, backend)
    name = name_of(client)
    send(client, 1, 1000)
    receive(server, 1, 1000)
    time.sleep(0.3)
    reset(client)
    equal(end_of(server), "RST", "end")
    seconds = end_line(t, s, name, end="client_reset", client="RST", target="open", up=1000, down=0)
    check(0.3 <= seconds < 2, f"{seconds} s for 0.3 s")

    client, server = t.pair(s, backend)
    name = name_of(client)
    half_close(client)
    equal(end_of(server), "FIN", "end")
    send(server, 2, 500)
    receive(client, 2, 500)
    reset(server)
    equal(end_of(client), "RST", "end")
    end_line(t, s, name, end="target_reset", client="FIN", target="RST", up=0, down=500)

    client, server = t.pair(s, backend)
    name = name_of(client)
    backend.close()
    client.close()
    server.close()
    end_line(t, s, name, end="finished", client="FIN", target="FIN", up=0, down=0)

    equal(told(s), "RST", "what a client is told")
    name = s.err.find(r"(\S+) -> \S+: connect_failed: ")[1]
    end_line(t, s, name, end="connect_failed", client="open", target="open", up=0, down=0)


@test(each=ways(workers=(1,)))
def at_info_a_connect_that_times_out_or_is_left_has_its_line(t):
    target = t.keep(FullBacklog())
    s = t.forward(target, "--log-level=info", "--connect-timeout=200ms")
    client = t.connect(s)
    name = name_of(client)
    equal(end_of(client), "RST", "end")
    end_line(t, s, name, end="connect_timeout", up=0, down=0)
    client = t.connect(s)
    name = name_of(client)
    s.stats_when(lambda totals: totals["connections"]["open"] == 1)
    reset(client)
    end_line(t, s, name, end="client_left", up=0, down=0)


@test(each=ways())
def at_info_a_connection_that_is_cut_off_has_a_line_that_counts_what_was_delivered(t):
    backend = t.backend()
    s = t.forward(backend, "--log-level=info", "--drain-timeout=0")
    client, server = t.pair(s, backend)
    name = name_of(client)
    send(client, 1, 100 * KIB)
    receive(server, 1, 100 * KIB)
    totals = s.stop()
    end_line(t, s, name, end="stopped", client="open", target="open", up=100 * KIB, down=0)
    equal(totals["connections"]["ended"]["stopped"], 1, "stopped")


@test(each=ways(workers=(1,)))
def the_line_counts_what_left_and_not_what_was_thrown_away(t):
    backend = t.backend()
    s = t.forward(backend, "--log-level=info")
    client, server = t.pair(s, backend, rcvbuf=16 * KIB)
    name = name_of(client)
    send_until_full(server, 1)
    reset(client)
    check(s.err.find(re.escape(name) + " -> "), "no line")
    delivered = s.stats_at_rest()["bytes"]
    end_line(t, s, name, end="client_reset", client="RST", up=0, down=delivered["to_clients"])
    check(delivered["dropped"] > 0, delivered)


@test(each=MODES)
def at_debug_every_step_of_a_connection_is_said(t):
    backend = t.backend()
    s = t.forward(backend, "--log-level=debug")
    client, server = t.pair(s, backend)
    name = name_of(client)
    client.close()
    server.close()
    for step in ("new -> connecting", "connecting -> relaying", "relaying -> closing"):
        check(s.err.find(re.escape(f"{name}: {step}")), f"no {step}")
    end_line(t, s, name, end="finished", client="FIN", target="FIN")


@test(each=[{"mode": "splice", "workers": 4}])
def lines_of_several_workers_are_never_mixed(t):
    backend = t.backend()
    s = t.forward(backend, "--log-level=debug")
    for _ in range(10):
        for a, b in t.pairs(s, backend, 20):
            a.close()
            b.close()
    s.stats_at_rest()
    s.stop()
    lines = s.err.wait_end()
    equal(sum(END.match(li) is not None for li in lines), 200, "lines of ends")
    odd = [li for li in lines[2:-1] if not END.match(li) and not re.match(r"^sluice: \S+: \w+ -> \w+$", li)]
    equal(odd, [], "lines of no known form")


if __name__ == "__main__":
    run(at_once=3)
