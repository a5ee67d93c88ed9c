#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The totals: they parse, they add up, and they say what the peers say."""
import fcntl
import os
import re
import signal
import socket
import time

from kit import (KIB, MIB, MODES, Job, Nobody, check, equal, exchange, half_close, receive, receive_to_end, reset,
                 run, send, send_until_full, test, told, ways)
from kit.sluice import Lines

F_SETPIPE_SZ = 1031
EVERY_WAY = ways() + [{"mode": "splice", "pipes": "own", "workers": 2}, {"mode": "auto", "workers": 2}]


def add_up(totals):
    """What must be true of totals at rest, whatever happened."""
    b, calls, ended = totals["bytes"], totals["calls"], totals["connections"]["ended"]
    equal(b["read"], b["delivered"] + b["dropped"], f"read, against delivered + dropped, in {b}")
    equal(b["dropped"], sum(b["dropped_because"].values()), f"dropped, against its reasons, in {b}")
    equal(b["delivered"], b["by_pipe"] + b["by_buffer"], f"delivered, against its paths, in {b}")
    equal(b["delivered"], b["to_targets"] + b["to_clients"], f"delivered, against where to, in {b}")
    equal(b["by_pipe"], calls["splice_out"]["bytes"], "by_pipe, against splice_out")
    equal(b["by_buffer"], calls["send"]["bytes"], "by_buffer, against send")
    equal(calls["splice_in"]["bytes"] + calls["recv"]["bytes"] + calls["discard"]["bytes"], b["read"], "read, by call")
    equal(totals["connections"]["accepted"], sum(ended.values()), f"accepted, against {ended}")
    equal(totals["connections"]["open"], 0, "open")
    equal((totals["pipes"]["out"], totals["buffers"]["now"]), (0, 0), "pipes and buffers out at rest")
    for name, call in calls.items():
        equal(call["bytes_a_call"], call["bytes"] // max(1, call["calls"]), f"bytes a call of {name}")


def finish(t, s):
    """Waits until nothing is open, and checks what is always true. Return: totals."""
    add_up(s.stats_at_rest())
    totals = s.stop()
    add_up(totals)
    other = {"splice": "by_buffer", "copy": "by_pipe", "uring": "by_pipe"}.get(t.way.get("mode"))
    equal(totals["bytes"].get(other, 0), 0, f"{other} in {t.way}")
    equal(sum(totals["fallbacks"].values()), 0, f"fallbacks: {totals['fallbacks']}")
    return totals


@test(each=EVERY_WAY)
def delivered_is_what_the_peers_received(t):
    backend = t.backend()
    s = t.forward(backend)
    up = down = 0
    for n in range(30):
        client, server = t.pair(s, backend)
        asked, answered = 1 + 999 * n, 1 + 7777 * n
        job = Job(send, client, 1, asked)
        receive(server, 1, asked)
        job.result()
        half_close(client)
        job = Job(send, server, 2, answered)
        receive(client, 2, answered)
        job.result()
        server.close()
        up, down = up + asked, down + answered
    b = finish(t, s)["bytes"]
    equal((b["to_targets"], b["to_clients"], b["dropped"]), (up, down, 0), "to targets, to clients, dropped")


@test(each=[{"mode": "splice", "workers": 1}, {"mode": "splice", "workers": 2}])
def in_splice_mode_64_MiB_go_through_no_buffer_and_nothing_falls_back(t):
    backend = t.backend()
    s = t.forward(backend)
    client, server = t.pair(s, backend)
    job = Job(send, server, 1, 64 * MIB)
    receive(client, 1, 64 * MIB)
    job.result()
    client.close()
    server.close()
    totals = finish(t, s)
    equal((totals["bytes"]["by_pipe"], totals["bytes"]["by_buffer"]), (64 * MIB, 0), "by pipe, by buffer")
    equal((totals["calls"]["recv"]["calls"], totals["calls"]["send"]["calls"]), (0, 0), "recv and send calls")


@test(each=[{"mode": "copy", "workers": 1}, {"mode": "copy", "workers": 2}])
def in_copy_mode_nothing_goes_through_a_pipe(t):
    backend = t.backend()
    s = t.forward(backend)
    client, server = t.pair(s, backend)
    job = Job(send, server, 1, 16 * MIB)
    receive(client, 1, 16 * MIB)
    job.result()
    client.close()
    server.close()
    totals = finish(t, s)
    equal((totals["bytes"]["by_pipe"], totals["bytes"]["by_buffer"]), (0, 16 * MIB), "by pipe, by buffer")
    equal(totals["pipes"]["made"], 0, "pipes made")


@test(each=EVERY_WAY)
def they_add_up_after_resets_early_closes_and_drops(t):
    backend = t.backend()
    s = t.forward(backend)
    ended = dict.fromkeys(("finished", "client_reset", "target_reset"), 0)
    sent = 0
    for n in range(6):
        client, server = t.pair(s, backend, rcvbuf=16 * KIB)
        a, b = ((client, server), (server, client))[n % 2]
        who = ("client_reset", "target_reset")[n % 2]

        send(a, 1, 5000)             # then a reset from the other end
        receive(b, 1, 5000)
        send(b, 2, 3000)
        receive(a, 2, 3000)
        reset(a)
        receive_to_end(b, 2)
        ended[who] += 1
        sent += 8000

    for n in range(4):               # bytes on their way to who resets are dropped
        client, server = t.pair(s, backend, rcvbuf=16 * KIB)
        sent += send_until_full(server, 1)
        reset(client)
        ended["client_reset"] += 1
        server.close()

    for n in range(4):               # an answer, then close, while the client still sends
        client, server = t.pair(s, backend)
        sent += send_until_full(client, 1, most=3 * MIB, quiet=0.05)
        send(server, 2, 100)
        sent += 100
        server.close()
        receive_to_end(client, 2)
        client.close()
        ended["target_reset"] += 1
    totals = finish(t, s)
    for name, n in ended.items():
        equal(totals["connections"]["ended"][name], n, name)
    check(0 < totals["bytes"]["dropped"], totals["bytes"])
    check(totals["bytes"]["read"] <= sent, f"{totals['bytes']['read']} read of {sent} that were sent")


@test(each=EVERY_WAY)
def what_the_other_end_was_too_far_gone_to_take_is_dropped_for_a_reason(t):
    backend = t.backend()
    s = t.forward(backend)
    client, server = t.pair(s, backend, rcvbuf=16 * KIB)
    sent = send_until_full(server, 1)
    reset(client)
    equal(receive_to_end(server, 2)[0], "RST", "end")
    b = finish(t, s)["bytes"]
    check(b["dropped_because"]["sink_gone"] > 0, b)
    check(b["read"] <= sent and b["delivered"] < sent, f"{b} of {sent}")


@test(each=EVERY_WAY)
def what_sigterm_cuts_off_is_dropped_as_stopped(t):
    backend = t.backend()
    s = t.forward(backend, "--drain-timeout=0")
    client, server = t.pair(s, backend, rcvbuf=16 * KIB)
    send_until_full(server, 1)
    totals = s.stop()
    add_up(totals)
    check(totals["bytes"]["dropped_because"]["stopped"] > 0, totals["bytes"])
    equal(totals["connections"]["ended"]["stopped"], 1, "stopped")


@test(each=MODES)
def sigusr1_prints_them_at_any_time_even_in_the_middle_of_a_transfer(t):
    backend = t.backend()
    s = t.forward(backend)
    client, server = t.pair(s, backend)
    jobs = [Job(send, client, 1, 64 * MIB), Job(receive, server, 1, 64 * MIB)]
    seen = []
    while jobs[1].running():
        seen.append(s.stats()["bytes"]["read"])
    for job in jobs:
        job.result()
    seen.append(s.stats()["bytes"]["read"])
    equal(seen, sorted(seen), "bytes read, over time")
    check(len(set(seen)) > 3 and seen[-1] == 64 * MIB, f"{len(set(seen))} different totals, the last {seen[-1]}")


@test(each=MODES)
def a_hundred_signals_at_once_leave_it_whole(t):
    backend = t.backend()
    s = t.forward(backend)
    client, server = t.pair(s, backend)
    for n in range(100):
        s.signal(signal.SIGUSR1)
        if n % 10 == 0:
            exchange(client, server, n, 1000)
    check(s.out.find(r"^\{.*\}$"), "no totals")
    add_up_open = s.stats()
    equal(add_up_open["connections"]["open"], 1, "open")


@test(each=EVERY_WAY)
def an_urgent_byte_is_counted_once_and_told_of(t):
    backend = t.backend()
    s = t.forward(backend)
    client, server = t.pair(s, backend)
    server.setsockopt(socket.SOL_SOCKET, socket.SO_OOBINLINE, 1)
    send(client, 1, 1000)
    receive(server, 1, 1000)
    client.send(b"!", socket.MSG_OOB)
    client.sendall(b"more")
    half_close(client)
    got = b""
    while len(got) < 5:
        got += server.recv(10)
    equal(got, b"!more", "urgent byte and what follows")
    server.close()
    totals = s.stats_at_rest()
    add_up(totals)
    equal((totals["bytes"]["read"], totals["bytes"]["delivered"]), (1005, 1005), "read and delivered")
    reasons = {k for k, n in totals["fallbacks"].items() if n}
    check(reasons <= {"urgent"} and (t.way["mode"] != "splice" or reasons), f"fallbacks: {totals['fallbacks']}")


@test(each=MODES)
def connections_that_never_connected_are_counted_by_their_reason(t):
    s = t.forward(t.keep(Nobody()))
    for _ in range(5):
        equal(told(s), "RST", "what a client is told")
    c = finish(t, s)["connections"]
    equal((c["accepted"], c["connected"], c["ended"]["connect_failed"]), (5, 0, 5), "accepted, connected, connect_failed")


def read_text(lines):
    """The text form as {"section.name": "value"}; sections are indented."""
    found, path = {}, []
    for line in lines:
        m = re.match(r"^( *)(\w+):(.*)$", line)
        check(m, f"not a line of totals: {line!r}")
        path = path[:len(m[1]) // 2] + [m[2]]
        for item in filter(None, m[3].strip().split(", ")):
            name, value = item.rsplit(" ", 1)
            found[".".join(path[1:] + [name])] = value
    return found


def flat(tree, prefix=""):
    for key, value in tree.items():
        if isinstance(value, dict):
            yield from flat(value, prefix + key + ".")
        else:
            yield prefix + key, value


@test(each=MODES)
def text_and_json_hold_the_same_numbers(t):
    seen = []
    for form in "--stats=text", "--stats=json":
        backend = t.backend()
        s = t.forward(backend, "--workers=1", stats=form)
        client, server = t.pair(s, backend)
        exchange(client, server, 1, 5000)
        client.close()
        server.close()
        time.sleep(0.1)
        totals = s.stop()
        seen.append(dict(flat(totals)) if totals else read_text(s.out.wait_end()))
    text, json = seen
    equal(sorted(text), sorted(json), "names")
    same = "connections", "bytes", "fallbacks", "pipes.made", "buffers.now"
    for key, value in json.items():
        if key.startswith(same):
            equal(text[key], str(value), key)


@test()
def without_stats_nothing_is_printed_but_on_sigusr1(t):
    backend = t.backend()
    s = t.forward(backend, stats=None)
    s.stop()
    equal(s.out.wait_end(), [], "stdout")
    s = t.forward(backend, stats=None)
    s.signal(signal.SIGUSR1)
    check(s.out.find(r"^  buffers:"), "no totals on SIGUSR1")
    s.stop()
    equal(read_text(s.out.wait_end())["connections.accepted"], "0", "accepted")


@test()
def reports_that_stdout_does_not_take_are_counted(t):
    r, w = os.pipe()
    fcntl.fcntl(w, F_SETPIPE_SZ, 4096)
    os.write(w, b" " * 4095 + b"\n")
    s = t.forward("127.0.0.1:9", stdout=w)
    os.close(w)
    s.signal(signal.SIGUSR1)
    check(s.err.find(r"statistics dropped: stdout would block \(1 report\)"), s.err.lines)
    s.out = Lines(os.fdopen(r, "rb"))
    check(s.out.find(r"^\{"), "what was being written does not appear")
    totals = s.stats()
    equal(totals["output"], {"messages_dropped": 0, "reports_dropped": 1}, "dropped")
    s.signal(signal.SIGTERM)
    equal(s.wait(), 0, "exit status")


@test(each=[{"workers": 1}, {"workers": 2}])
def pipes_that_no_connection_asked_for_are_not_lent(t):
    s = t.forward("127.0.0.1:9")
    p = s.stop()["pipes"]
    equal((p["lent"], p["out_max"]), (0, 0), "lent, and most lent at once")


@test(each=[{"mode": "splice", "workers": 1}])
def pipes_are_lent_and_come_back(t):
    backend = t.backend()
    s = t.forward(backend)
    before = s.stats()["pipes"]
    pairs = t.pairs(s, backend, 5)
    for client, server in pairs:
        exchange(client, server, 1, 1000)
    p = s.stats_when(lambda totals: not totals["pipes"]["out"])["pipes"]
    check(p["lent"] - before["lent"] >= 10, f"{p} after 10 messages")
    equal((p["out"], p["made"]), (0, before["made"]), "out, and made, after messages one at a time")
    for client, server in pairs:
        send_until_full(server, 2, quiet=0.05)
    p = s.stats_when(lambda totals: totals["pipes"]["out"] == 5)["pipes"]
    equal(p["out"], 5, "lent to five whose readers do not read")
    check(p["out_max"] >= 5 and p["now"] >= 5, p)


if __name__ == "__main__":
    run(at_once=3)
