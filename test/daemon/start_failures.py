#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What cannot be done is said in one line at the start, and nothing stays behind."""
import os
import resource
import select
import socket

from kit import Skip, check, equal, exchange, need_ipv6, proc, run, test
from kit import netns

TARGET = "127.0.0.1:9"


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def refused(t, args, *words, lines=1, **kwargs):
    """It must say so in one line with these words, and end with 1."""
    status, out, err = t.sluice(*args, ready=False, stats=None, **kwargs).result()
    check(status == 1 and not out and len(err) == lines and all(w in err[0] for w in words),
          f"{args}: exit {status}, stdout {out!r}, stderr {err}")


@test()
def a_port_in_use_is_named(t):
    taken = "127.0.0.1:%d" % t.backend().addr[1]
    refused(t, [taken, TARGET], taken, "in use")


@test()
def with_a_star_a_port_in_use_in_one_family_is_in_use(t):
    need_ipv6()
    for host in "0.0.0.0", "::":
        port = t.backend(host=host).addr[1]
        refused(t, [str(port), TARGET], str(port), "in use")


@test()
def a_port_that_needs_privileges_is_named(t):
    with open("/proc/sys/net/ipv4/ip_unprivileged_port_start") as f:
        if int(f.read()) <= 80:
            raise Skip("every user may have port 80 here")
    user = 65534 if os.geteuid() == 0 else None
    refused(t, ["127.0.0.1:80", TARGET], "127.0.0.1:80", "denied", user=user)


@test()
def an_address_of_another_machine_is_named(t):
    refused(t, ["192.0.2.1:8080", TARGET], "192.0.2.1:8080")


@test()
def an_unknown_host_to_listen_at_is_named(t):
    refused(t, ["nosuch.invalid:0", TARGET], "nosuch.invalid")
    refused(t, ["127.0.0.1:0", TARGET, "nosuch.invalid:0", TARGET], "nosuch.invalid")


@test()
def when_the_second_rule_fails_nothing_is_left_listening(t):
    taken = "127.0.0.1:%d" % t.backend().addr[1]
    for second in taken, "nosuch.invalid:0":
        port = free_port()
        refused(t, [f"127.0.0.1:{port}", TARGET, second, TARGET], second.split(":")[0])
        check(not proc.listening(port), f"port {port} is listened at")


@test()
def the_same_address_twice_is_in_use(t):
    port = free_port()
    refused(t, [f"127.0.0.1:{port}", TARGET, f"127.0.0.1:{port}", TARGET], str(port), "in use")
    check(not proc.listening(port), f"port {port} is listened at")


@test()
def a_file_that_is_not_there_or_not_a_file_is_named(t):
    folder = t.folder()
    refused(t, ["-c", folder + "/none"], folder + "/none", "No such file")
    refused(t, ["--config=" + folder], folder, "directory")


@test()
def a_file_that_may_not_be_read_is_named(t):
    path = t.file("127.0.0.1 0 127.0.0.1 9\n")
    os.chmod(path, 0)
    refused(t, ["-c", path], path, "denied", user=65534 if os.geteuid() == 0 else None)


@test()
def rules_that_lead_back_to_themselves_are_refused(t):
    a, b = free_port(), free_port()
    circles = [
        [f"127.0.0.1:{a}", f"127.0.0.1:{a}"],
        [f"127.0.0.1:{a}", f"localhost:{a}"],
        [f"0.0.0.0:{a}", f"127.0.0.1:{a}"],
        [f"{a}", f"127.0.0.2:{a}"],
        [f"127.0.0.1:{a}", f"0.0.0.0:{a}"],
        [f"127.0.0.1:{a}", f"127.0.0.1:{b}", f"127.0.0.1:{b}", f"127.0.0.1:{a}"],
    ]
    for rules in circles:
        refused(t, rules, "forwards to itself")
        check(not proc.listening(a), f"port {a} is listened at")
    for chain in ([f"127.0.0.1:{a}", f"127.0.0.1:{b}", f"127.0.0.1:{b}", TARGET], [f"127.0.0.1:{a}", f"127.0.0.2:{a}"]):
        t.sluice(*chain).stop()


@test()
def a_rule_that_forwards_to_itself_by_a_secondary_address_is_refused(t):
    inside = netns.alone("10.201.8.1/24", "10.201.8.2/24")
    for rules in (["10.201.8.2:7001", "10.201.8.2:7001"], ["0.0.0.0:7001", "10.201.8.2:7001"],
                  ["7001", "10.201.8.2:7002", "7002", "10.201.8.2:7001"]):
        refused(t, rules, "forwards to itself", wrap=inside)
    t.sluice("10.201.8.1:7001", "10.201.8.2:7001", wrap=inside).stop()


@test()
def too_few_descriptors_for_its_workers_is_said(t):
    refused(t, ["--workers=100", "127.0.0.1:0", TARGET], "worker", "of 100", "Too many open files",
            limits={resource.RLIMIT_NOFILE: 64})


@test()
def at_every_descriptor_limit_it_starts_or_says_in_one_line_why_not(t):
    for n in range(4, 30):
        s = t.forward(TARGET, "--workers=2", ready=False, limits={resource.RLIMIT_NOFILE: n})
        if s.err.find("ready:|error:", within=5)[0] == "ready:":
            check(n > 8, f"ready with {n} descriptors")
            s.stop()
        else:
            status, _, err = s.result()
            equal((status, len(err)), (1, 1), f"with {n} descriptors: exit status and lines")
    check(s.err.find("ready:"), "29 descriptors are not enough for two workers")


@test()
def it_runs_with_the_threads_that_could_be_started(t):
    if os.geteuid() != 0:
        raise Skip("needs a user with no other process: only root can be one")
    user = 61000 + os.getpid() % 4000
    backend = t.backend()
    started = set()
    for threads in range(2, 7):  # the main one counts, and the one that writes messages
        s = t.forward(backend, "--workers=4", user=user, leaks=False, ready=False,
                      limits={resource.RLIMIT_NPROC: threads})
        if not s.err.find("ready: |error: ")[0].startswith("ready"):
            status, _, err = s.result()
            equal(status, 1, f"exit status with {threads} threads")
            check("cannot start a worker thread: Resource temporarily unavailable" in err[-1], err)
            started.add(0)
            continue
        n = int(s.err.find(r"ready: (\d) worker")[1])
        started.add(n)
        told = [line for line in s.err.lines if "cannot start worker thread" in line]
        equal([line.split("; ")[1] for line in told], [f"running with {n}"] * (n < 4), "warnings")
        where = [("127.0.0.1", int(s.err.find(r"127.0.0.1:(\d+) ->")[1]))]
        for k in range(8):
            exchange(*t.pair(where[0], backend), k, 1000)
        equal(s.stop()["workers"], n, "workers in the totals")
    check({1, 2, 3} <= started and 0 in started, f"workers started, of four: {started}")


@test()
def without_any_thread_messages_are_written_at_the_end_all_the_same(t):
    if os.geteuid() != 0:
        raise Skip("needs a user with no other process: only root can be one")
    user = 61000 + os.getpid() % 4000
    alone = dict(user=user, leaks=False, limits={resource.RLIMIT_NPROC: 1})
    refused(t, ["--workers=4", "127.0.0.1:0", TARGET], "cannot start the thread that writes messages", lines=2, **alone)
    status, _, err = t.sluice("--no-such-option", ready=False, **alone).result()
    check(status == 2 and len(err) == 1 and "--no-such-option" in err[0], f"exit {status}, {err}")
    parent, end = os.openpty()
    t.later(os.close, parent)
    t.later(os.close, end)
    while select.select([], [end], [], 0)[1]:
        os.write(end, b"x")  # as full as poll(2) can tell
    s = t.sluice("--no-such-option", ready=False, stderr=end, **alone)
    equal(s.wait(), 2, "exit status with a stderr that takes nothing")


@test()
def without_dev_null_it_works(t):
    if os.geteuid() != 0:
        raise Skip("only root can give it a /dev of its own")
    if os.system("unshare -m true 2>/dev/null"):
        raise Skip("no mount namespaces here")
    backend = t.backend()
    s = t.forward(backend, wrap=["unshare", "-m", "sh", "-c", 'mount -t tmpfs none /dev && exec "$@"', "sh"])
    client, server = t.pair(s, backend)
    exchange(client, server, 1, 1000)


if __name__ == "__main__":
    run()
