#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What cannot be done is said in one line at the start, and nothing stays behind."""
import os
import resource
import socket

from kit import Skip, check, equal, exchange, need_ipv6, proc, run, test

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
def an_unknown_host_is_named_on_either_end(t):
    refused(t, ["127.0.0.1:0", "nosuch.invalid:80"], "nosuch.invalid")
    refused(t, ["nosuch.invalid:0", TARGET], "nosuch.invalid")


@test()
def when_the_second_rule_fails_nothing_is_left_listening(t):
    taken = "127.0.0.1:%d" % t.backend().addr[1]
    for second in ([taken, TARGET], ["127.0.0.1:0", "nosuch.invalid:80"]):
        port = free_port()
        refused(t, [f"127.0.0.1:{port}", TARGET] + second, second[0 if second[0] == taken else 1].split(":")[0])
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
        refused(t, rules, "leads back")
        check(not proc.listening(a), f"port {a} is listened at")
    for chain in ([f"127.0.0.1:{a}", f"127.0.0.1:{b}", f"127.0.0.1:{b}", TARGET], [f"127.0.0.1:{a}", f"127.0.0.2:{a}"]):
        t.sluice(*chain).stop()


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
def a_thread_that_cannot_be_started_is_said_and_the_others_are_ended(t):
    if os.geteuid() != 0:
        raise Skip("needs a user with no other process: only root can be one")
    user = 61000 + os.getpid() % 4000
    for threads in 1, 2, 3:  # the main one counts
        refused(t, ["--workers=4", "127.0.0.1:0", TARGET], f"worker {threads} of 4", user=user, leaks=False,
                limits={resource.RLIMIT_NPROC: threads})


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
