#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Where splice(2) is refused a direction goes on with a buffer: nothing is lost, and the reason is counted."""
from kit import KIB, MIB, Job, check, equal, exchange, half_close, proc, receive, receive_to_end, run, send, test
from kit.strace import Strace

ERRORS = ("EINVAL", "ENOSYS", "EPERM")
MESSAGES = 6  # of one connection, one at a time: so that every run makes the same calls
MESSAGE = 30 * KIB
TRIES = 5  # where a busy machine made it ask once more or less


def settle(s):
    """Waits until it has asked for more, in vain, and gone to sleep."""
    check(proc.wait_for(lambda: proc.sleeps(s.pid) and proc.sleeps(s.pid), every=0.002), "it does not go to sleep")


def talk(t, strace):
    """One message after the other, one way, through a worker under strace. Return: totals."""
    backend = t.backend()
    s = t.forward(backend, "--mode=splice", "--workers=1", wrap=strace.wrap)
    client, server = t.pair(s, backend)
    s.stats_when(lambda totals: totals["connections"]["connected"] == 1)
    for n in range(MESSAGES):
        send(client, 1, MESSAGE, n * MESSAGE)
        receive(server, 1, MESSAGE, n * MESSAGE)
        settle(s)
    half_close(client)
    equal(receive_to_end(server, 0), ("FIN", 0), "end of the question")
    send(server, 2, MESSAGE)
    server.close()
    equal(receive_to_end(client, 2), ("FIN", MESSAGE), "the answer")
    client.close()
    totals = s.stop()
    equal(totals["bytes"]["delivered"], (MESSAGES + 1) * MESSAGE, "delivered")
    equal(totals["bytes"]["read"], totals["bytes"]["delivered"], "read, against delivered")
    return totals


def place_of(calls, kind, nth):
    """The number, from 1, of the nth call of this kind that moved bytes."""
    places = [n for n, (k, result, _) in enumerate(calls, 1) if k == kind and result > 0]
    check(len(places) > nth, f"only {len(places)} calls of kind {kind}: {calls}")
    return places[nth]


def what_was_hit(calls):
    """The one call that was refused: its kind, and how many of that kind had moved bytes before."""
    hit = [n for n, call in enumerate(calls) if call[2]]
    equal(len(hit), 1, f"calls refused, of {calls}")
    kind = calls[hit[0]][0]
    return kind, sum(k == kind and result > 0 for k, result, _ in calls[:hit[0]])


@test(each=[{"kind": kind, "nth": nth} for kind in ("fill", "drain") for nth in (0, 3)])
def one_refused_call_costs_its_direction_the_pipe_and_not_a_byte(t):
    kind, nth = t.way["kind"], t.way["nth"]
    t.way = {}
    plain = Strace(t)
    totals = talk(t, plain)
    equal(sum(totals["fallbacks"].values()), 0, "fallbacks of a run where nothing is refused")
    place = place_of(plain.splices(), kind, nth)
    for error in ERRORS:
        for _ in range(TRIES):
            strace = Strace(t, f"splice:error={error}:when={place}")
            totals = talk(t, strace)
            if what_was_hit(strace.splices()) == (kind, nth):
                break
        equal(what_was_hit(strace.splices()), (kind, nth), f"the call that was refused, of {strace.splices()}")
        name = {"fill": "splice_in", "drain": "splice_out"}[kind]
        equal({k: n for k, n in totals["fallbacks"].items() if n}, {name: 1}, f"fallbacks by {error}")
        b = totals["bytes"]
        equal(b["spilled"], MESSAGE if kind == "drain" else 0, f"spilled by {error}")
        before = nth * MESSAGE  # messages that went before through pipes, and the answer
        equal((b["by_pipe"], b["by_buffer"]), (before + MESSAGE, (MESSAGES - nth) * MESSAGE), f"by pipe and by buffer, {error}")


@test()
def a_kernel_that_always_refuses_is_forwarded_through_buffers(t):
    for error in ERRORS:
        strace = Strace(t, f"splice:error={error}")
        totals = talk(t, strace)
        b = totals["bytes"]
        equal((b["by_pipe"], b["by_buffer"]), (0, (MESSAGES + 1) * MESSAGE), f"by pipe and by buffer, {error}")
        equal(totals["fallbacks"]["splice_in"], 2, f"splice_in: once for each direction, {error}")


def bulk(t, *options, when):
    """Several connections, both ways at once, with calls refused at these places."""
    strace = Strace(t, f"splice:error=EINVAL:when={when}")
    backend = t.backend()
    s = t.forward(backend, "--mode=splice", *options, wrap=strace.wrap)
    pairs = t.pairs(s, backend, 4)
    jobs = []
    for n, (client, server) in enumerate(pairs):
        for a, b, which in ((client, server, 2 * n), (server, client, 2 * n + 1)):
            jobs.append(Job(say_all, a, which, 4 * MIB))
            jobs.append(Job(receive_to_end, b, which))
    for job in jobs[1::2]:
        equal(job.result(), ("FIN", 4 * MIB), "stream")
    totals = s.stats_at_rest()
    reasons = {k for k, n in totals["fallbacks"].items() if n}
    hit = {call[0] for call in strace.splices() if call[2]}
    check(hit, "no call was refused")
    equal(reasons, {{"fill": "splice_in", "drain": "splice_out"}[kind] for kind in hit}, "fallbacks by reason")
    equal(totals["bytes"]["delivered"], 32 * MIB, "delivered")
    equal(totals["bytes"]["read"], 32 * MIB, "read")
    check(totals["bytes"]["by_buffer"] > 0, totals["bytes"])
    equal(proc.count_becomes(s.pid, 1, "socket:"), 1, "sockets left")


@test()
def a_refused_call_is_found_too_where_that_of_another_thread_came_in_between(t):
    strace = Strace(t, "splice:error=EINVAL:when=1")
    with open(strace.log, "w") as f:
        f.write("7 splice(10<TCP:[1->2]>, NULL, 12<pipe:[3]>, NULL, 65536, SPLICE_F_NONBLOCK <unfinished ...>\n"
                "8 splice(13<pipe:[4]>, NULL, 11<TCP:[5->6]>, NULL, 9, SPLICE_F_NONBLOCK) = 9\n"
                "7 <... splice resumed>) = -1 EINVAL (Invalid argument) (INJECTED)\n")
    equal(strace.splices(), [("drain", 9, False), ("fill", -1, True)], "calls")


def say_all(s, stream, size):
    send(s, stream, size)
    half_close(s)


@test(each=[{"when": w, "workers": n} for w in ("1", "2", "7", "3+2", "5+7") for n in (1, 2)])
def calls_refused_in_the_middle_of_full_streams_lose_nothing(t):
    when = t.way.pop("when")
    bulk(t, when=when)


@test(each=[{"when": w, "pipes": "own"} for w in ("1", "2", "8", "3+5")])
def own_pipes_are_left_behind_like_lent_ones(t):
    when = t.way.pop("when")
    bulk(t, when=when)


@test()
def an_interrupted_call_is_made_again(t):
    strace = Strace(t, "splice:error=EINTR:when=2+3")
    totals = talk(t, strace)
    equal(sum(totals["fallbacks"].values()), 0, "fallbacks")
    equal(totals["bytes"]["by_buffer"], 0, "by buffer")
    check(any(call[2] for call in strace.splices()), "no call was interrupted")


@test()
def a_kernel_short_of_memory_is_asked_again(t):
    for error in "ENOMEM", "ENOBUFS":
        strace = Strace(t, f"splice:error={error}:when=2+5")
        totals = talk(t, strace)
        equal(sum(totals["fallbacks"].values()), 0, "fallbacks")
        check(totals["eagain"]["no_memory"] > 0, totals["eagain"])


@test()
def in_splice_mode_no_other_call_moves_payload(t):
    strace = Strace(t, trace="splice,read,readv,recvfrom,recvmsg,write,writev,sendto,sendmsg,sendfile,vmsplice,tee")
    backend = t.backend()
    s = t.forward(backend, "--mode=splice", wrap=strace.wrap)
    client, server = t.pair(s, backend)
    exchange(client, server, 1, 2 * MIB)
    s.stats_when(lambda totals: totals["bytes"]["delivered"] == 4 * MIB)
    sockets = [li for li in strace.lines() if "<socket:" in li or "<TCP" in li]
    check(len(sockets) > 4, "strace saw nothing")
    equal([li for li in sockets if "splice(" not in li and "resumed" not in li], [], "other calls on sockets")


if __name__ == "__main__":
    run()
