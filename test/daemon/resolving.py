#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Names that the resolver does not know, not yet, or about which it is silent."""
import os
import signal
import time

from kit import Skip, check, equal, exchange, proc, run, test, told
from kit.names import Dns
from kit.proc import PATIENCE_S

LISTEN = "127.0.0.1:0"
SLOW = "timeout:30 attempts:1"  # how long the C library waits for a server, so that it is never over in a test
START_S = 5                     # how long the program does
RESOLVED = "target app.example:%d: resolved"


def unresolved(port, why):
    return f"^sluice: warning: target app.example:{port}: {why}; clients are reset until it resolves$"


@test(each=[{"mode": m} for m in ("fail", "unknown")])
def a_target_without_an_address_resets_its_clients_until_it_has_one_and_others_are_served(t):
    dns, backend = Dns(t, t.way.pop("mode")), t.backend()
    port = backend.addr[1]
    s = t.sluice(LISTEN, f"app.example:{port}", LISTEN, "127.0.0.1:%d" % port, wrap=dns.wrap(t))
    why = "Temporary failure in name resolution" if dns.mode == "fail" else "Name or service not known"
    check(s.err.find(unresolved(port, why)), s.err.lines)
    check(s.err.find(rf"^sluice: 127.0.0.1:\d+ -> app.example:{port} \(not resolved yet\)$"), s.err.lines)
    exchange(*t.pair(s.addrs[1], backend), 1, 1000)
    for _ in range(8):
        equal(told(s.addrs[0]), "RST", "what a client is told meanwhile")
    check(s.err.find(f"warning: app.example:{port}: cannot connect: the name of the target has not been resolved; reset client"),
          s.err.lines)
    totals = s.stats_when(lambda totals: totals["connections"]["ended"]["unresolved"] == 8)
    equal((totals["connections"]["accepted"], totals["connections"]["open"]), (9, 1), "accepted, open")
    asked = dns.asked
    check(proc.wait_for(lambda: dns.asked > asked), "it does not ask again")
    dns.mode = "127.0.0.1"
    check(s.err.find(RESOLVED % port, within=2 * PATIENCE_S), s.err.lines)  # the pause may be longer by now
    exchange(*t.pair(s.addrs[0], backend), 2, 1000)
    s.stop()
    lines = s.err.wait_end()
    equal(sum("warning: target" in li for li in lines), 1, f"warnings about the name in {lines}")
    equal(sum(RESOLVED % port in li for li in lines), 1, f"notices about it in {lines}")
    equal(sum("cannot connect" in li for li in lines), 5, f"lines about clients in {lines}")


@test()
def once_every_name_has_an_answer_there_is_no_thread_for_them_and_no_question(t):
    dns, backend = Dns(t, "127.0.0.1"), t.backend()
    s = t.forward(f"app.example:{backend.addr[1]}", "--workers=1", wrap=dns.wrap(t))
    exchange(*t.pair(s, backend), 1, 1000)
    check(proc.wait_for(lambda: not any("names" in li for li in proc.threads(s.pid))), proc.threads(s.pid))
    asked = dns.asked
    time.sleep(1.5)
    equal(dns.asked, asked, "questions")
    equal([li for li in s.err.lines if "app.example" in li], [], "lines about a name that has an answer")


@test()
def a_silent_server_delays_the_start_for_a_bounded_time_and_its_answer_is_used_when_it_comes(t):
    dns, backend = Dns(t, "silent"), t.backend()
    port = backend.addr[1]
    names = [word for n in range(5) for word in (LISTEN, f"n{n}.example:{port}")]
    since = time.monotonic()
    s = t.sluice(LISTEN, "127.0.0.1:%d" % port, LISTEN, f"app.example:{port}", *names, wrap=dns.wrap(t, SLOW))
    took = time.monotonic() - since
    check(START_S - 1 < took < 4 * START_S, f"ready after {took:.3f} s")
    check(s.err.find(unresolved(port, f"no answer from the resolver within {START_S} s")), s.err.lines)
    exchange(*t.pair(s.addrs[0], backend), 1, 1000)
    equal(told(s.addrs[1]), "RST", "what a client of the other is told")
    equal(s.stop()["connections"]["ended"]["unresolved"], 1, "unresolved")  # nor is the end delayed


@test()
def a_silent_server_does_not_hold_up_names_of_etc_hosts(t):
    dns, backend = Dns(t, "silent"), t.backend()
    s = t.sluice(LISTEN, f"slow.example:{backend.addr[1]}", LISTEN, f"localhost:{backend.addr[1]}", wrap=dns.wrap(t, SLOW))
    exchange(*t.pair(s.addrs[1], backend), 1, 1000)
    equal([li for li in s.err.lines if "target localhost" in li], [], "lines about localhost")


@test()
def a_name_to_listen_at_must_be_known_at_start(t):
    for mode, options, why in (("fail", "timeout:1 attempts:1", "failure in name resolution"), ("silent", SLOW, "no answer")):
        dns = Dns(t, mode)
        status, out, err = t.sluice("app.example:0", "127.0.0.1:9", ready=False, stats=None,
                                    wrap=dns.wrap(t, options)).result()
        check(status == 1 and not out and len(err) == 1 and "app.example" in err[0] and why in err[0], f"exit {status}, {err}")
        dns.close()


@test()
def a_target_that_turns_out_to_lead_back_to_its_rule_is_not_used(t):
    spare = t.backend()
    port = spare.addr[1]
    spare.close()
    dns = Dns(t, "fail")
    s = t.sluice(f"127.0.0.1:{port}", f"app.example:{port}", wrap=dns.wrap(t))
    dns.mode = "127.0.0.1"
    check(s.err.find("forwards to itself", within=2 * PATIENCE_S), s.err.lines)
    equal(told(s), "RST", "what a client is told")
    equal(s.stats_at_rest()["connections"]["accepted"], 1, "connections")


def child_of(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as f:
        words = f.read().split()
    return int(words[0]) if words else None


def begin_resolving(t, dns, init):
    """A sluice that waits for this DNS server. Return: it, and the process to send signals to."""
    wrap = ["unshare", "--pid", "--fork", "--kill-child"] if init else []
    # As process 1 of its namespace LeakSanitizer cannot stop the other threads.
    s = t.forward("app.example:9", ready=False, wrap=dns.wrap(t, SLOW) + wrap, leaks=not init)
    check(proc.wait_for(lambda: dns.asked), "no question has come")
    if not init:
        return s, s.pid
    pid = child_of(s.pid)
    with open(f"/proc/{pid}/status") as f:
        inner = [li.split()[-1] for li in f if li.startswith("NSpid:")]
    equal(inner, ["1"], "its process id in there")
    return s, pid


@test(each=[{"init": i, "signal": n} for i in (False, True) for n in ("SIGTERM", "SIGINT")])
def a_signal_while_names_are_resolved_ends_it_soon_also_as_process_1(t):
    init, number = t.way.pop("init"), getattr(signal, t.way.pop("signal"))
    if init and os.system("unshare --pid --fork true 2>/dev/null"):
        raise Skip("no process namespaces here")
    s, pid = begin_resolving(t, Dns(t, "silent"), init)
    since = time.monotonic()
    os.kill(pid, signal.SIGUSR1)
    check(s.out.find(r"^\{.*\}$"), "SIGUSR1: no totals came")
    os.kill(pid, number)
    status, _, err = s.result()
    took = time.monotonic() - since
    equal(status, 0, f"exit status, with {err}")
    equal([li for li in err if "ready" in li or "target" in li], [], "lines of a start")
    check("stopped: 0 connections" in err[-1], err)
    check(took < START_S - 1, f"ended after {took:.3f} s")


if __name__ == "__main__":
    run(at_once=4)
