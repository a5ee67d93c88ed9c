#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The command line: what it takes, and what it says of what it does not."""
import re
import resource

from kit import check, equal, proc, run, test

TARGET = "127.0.0.1:9"

# Arguments, the one that the line must name, and a word of what would be right.
WRONG = [
    ([], "LISTEN", "TARGET"),
    (["0"], '"0"', "TARGET"),
    (["0", TARGET, "0"], '"0"', "TARGET"),
    (["0", "127.0.0.1"], '"127.0.0.1"', "HOST:PORT"),
    (["0", "80"], '"80"', "HOST:PORT"),
    (["0", "127.0.0.1:"], '"127.0.0.1:"', "1 to 65535"),
    (["0", "127.0.0.1:0"], '"127.0.0.1:0"', "1 to 65535"),
    (["0", "127.0.0.1:65536"], '"127.0.0.1:65536"', "1 to 65535"),
    (["0", "127.0.0.1:80x"], '"127.0.0.1:80x"', "1 to 65535"),
    (["0", "127.0.0.1:-80"], '"127.0.0.1:-80"', "1 to 65535"),
    (["0", "127.0.0.1:99999999999999999999"], "99999999999999999999", "1 to 65535"),
    (["0", ":80"], '":80"', "host"),
    (["0", "::1:80"], '"::1:80"', "[::1]:80"),
    (["0", "[::1:80"], '"[::1:80"', "[::1]:80"),
    (["0", "[]:80"], '"[]:80"', "[::1]:80"),
    (["0", "[name]:80"], '"[name]:80"', "IPv6"),
    (["0", "a b:80"], '"a b:80"', "character"),
    (["0", "http://host:80"], '"http://host:80"', "character"),
    (["x", TARGET], '"x"', "1 to 65535"),
    (["65536", TARGET], '"65536"', "1 to 65535"),
    (["+80", TARGET], '"+80"', "1 to 65535"),
    (["", TARGET], '""', "1 to 65535"),
    (["::1:80", TARGET], '"::1:80"', "[::1]:80"),
    (["[::1]", TARGET], '"[::1]"', ""),
    (["*", TARGET], '"*"', "1 to 65535"),
    (["**:80", TARGET], '"**:80"', ""),
    (["127.0.0.1", TARGET], '"127.0.0.1"', "1 to 65535"),
    (["--mode=fast", "0", TARGET], "--mode=fast: ", "must be splice, copy, auto or uring"),
    (["--mode=", "0", TARGET], "--mode=", "splice, copy"),
    (["--pipes=mine", "0", TARGET], "--pipes=mine", "must be lend or own"),
    (["--pipe-size=63K", "0", TARGET], "--pipe-size=63K", "64K to 1G"),
    (["--pipe-size=2G", "0", TARGET], "--pipe-size=2G", "64K to 1G"),
    (["--pipe-size=big", "0", TARGET], "--pipe-size=big", "64K"),
    (["--pipe-size=-1M", "0", TARGET], "--pipe-size=-1M", "64K"),
    (["--pipe-size=1MB", "0", TARGET], "--pipe-size=1MB", "64K"),
    (["--buffer-size=4095", "0", TARGET], "--buffer-size=4095", "4K to 16M"),
    (["--buffer-size=17M", "0", TARGET], "--buffer-size=17M", "4K to 16M"),
    (["--buffer-size=99999999999999999999G", "0", TARGET], "--buffer-size=9999", "from 4K to 16M"),
    (["--workers=0", "0", TARGET], "--workers=0: ", "must be from 1 to 1024, or auto"),
    (["--workers=1025", "0", TARGET], "--workers=1025", "1 to 1024"),
    (["--workers=two", "0", TARGET], "--workers=two", "whole number"),
    (["--workers=1.5", "0", TARGET], "--workers=1.5", "whole number"),
    (["--connect-timeout=soon", "0", TARGET], "--connect-timeout=soon", "500ms"),
    (["--connect-timeout=0", "0", TARGET], "--connect-timeout=0", "must be from 1ms to 576h"),
    (["--connect-timeout=1d", "0", TARGET], "--connect-timeout=1d", "1h"),
    (["--drain-timeout=-5", "0", TARGET], "--drain-timeout=-5", "500ms"),
    (["--drain-timeout=600h", "0", TARGET], "--drain-timeout=600h", "must be from 0 to 576h"),
    (["--idle-timeout=0", "0", TARGET], "--idle-timeout=0", "must be from 1ms to 576h, or off"),
    (["--idle-timeout=never", "0", TARGET], "--idle-timeout=never", "500ms"),
    (["--half-close-timeout=0s", "0", TARGET], "--half-close-timeout=0s", "off"),
    (["--max-lifetime=forever", "0", TARGET], "--max-lifetime=forever", "500ms"),
    (["--linger=off", "0", TARGET], "--linger=off", "500ms"),
    (["--discard=1.5M", "0", TARGET], "--discard=1.5M", "64K"),
    (["--keepalive=2m", "0", TARGET], "--keepalive=2m", "IDLE:INTERVAL:COUNT"),
    (["--keepalive=2m:15s:0", "0", TARGET], "--keepalive=2m:15s:0", "IDLE:INTERVAL:COUNT"),
    (["--keepalive=2m:15s:128", "0", TARGET], "--keepalive=2m:15s:128", "127"),
    (["--keepalive=10h:15s:4", "0", TARGET], "--keepalive=10h:15s:4", "9h"),
    (["--keepalive=2m:15s:4:1", "0", TARGET], "--keepalive=2m:15s:4:1", "IDLE:INTERVAL:COUNT"),
    (["--keepalive=::", "0", TARGET], "--keepalive=::", "IDLE:INTERVAL:COUNT"),
    (["--keepalive=500ms:15s:4", "0", TARGET], "--keepalive=500ms:15s:4", "IDLE:INTERVAL:COUNT"),
    (["--user-timeout=0", "0", TARGET], "--user-timeout=0", "off"),
    (["--dead-timeout=2m", "0", TARGET], "--dead-timeout=2m", "must be from 130s to 576h, or off"),
    (["--busy-poll=on", "0", TARGET], "--busy-poll=on", "must be auto, off or N, from 1 to 100000"),
    (["--busy-poll=0", "0", TARGET], "--busy-poll=0", "from 1 to 100000"),
    (["--busy-poll=100001", "0", TARGET], "--busy-poll=100001", "from 1 to 100000"),
    (["--busy-poll=50us", "0", TARGET], "--busy-poll=50us", "auto, off or N"),
    (["--rcvbuf=4095", "0", TARGET], "--rcvbuf=4095", "4K to 1G"),
    (["--sndbuf=2G", "0", TARGET], "--sndbuf=2G", "4K to 1G"),
    (["--notsent-lowat=0", "0", TARGET], "--notsent-lowat=0", "4K to 1G"),
    (["--rcvbuf=much", "0", TARGET], "--rcvbuf=much", "64K"),
    (["--congestion=", "0", TARGET], "--congestion=", "1 to 15 characters, or system"),
    (["--congestion=sixteen-letters!", "0", TARGET], "--congestion=sixteen-letters!", "1 to 15 characters"),
    (["--log-level=loud", "0", TARGET], "--log-level=loud", "error, warn, info or debug"),
    (["--log-level=WARN", "0", TARGET], "--log-level=WARN", "error, warn, info or debug"),
    (["--stats=xml", "0", TARGET], "--stats=xml", "none, text or json"),
    (["--nonsense", "0", TARGET], "--nonsense", "no such option; see sluice --help"),
    (["--idle-timout=5m", "0", TARGET], "--idle-timout:", "no such option; did you mean --idle-timeout?"),
    (["--log_level=info", "0", TARGET], "--log_level:", "did you mean --log-level?"),
    (["--pipe=64K", "0", TARGET], "--pipe:", "ambiguous; --pipe-size or --pipes?"),
    (["--keepalive=1500ms:15s:4", "0", TARGET], "--keepalive=1500ms:15s:4", "IDLE:INTERVAL:COUNT"),
    (["--discard=1025G", "0", TARGET], "--discard=1025G", "must be from 0 to 1024G"),
    (["--linger=2073600001ms", "0", TARGET], "--linger=2073600001ms", "must be from 0 to 576h"),
    (["--nonsense=1", "0", TARGET], "--nonsense", "--help"),
    (["--help=me"], "--help=me", "takes no value"),
    (["-x", "0", TARGET], "-x", "--help"),
    (["--stats", "-xy", "0", TARGET], "-x", "no such option"),
    (["0", TARGET, "--mode"], "--mode:", "write --mode=splice|copy|auto|uring"),
    (["0", TARGET, "-c"], "--config:", "write --config=FILE"),
    (["-c", "/dev/null", "0", TARGET], '"0"', "not from both"),
    (["0", TARGET, "bad\nline", TARGET], "bad", "1 to 65535"),
    (["9" * 3000, TARGET], "999", "1 to 65535"),
]

# Of --help, in its order.
OPTIONS = ["config", "mode", "pipe-size", "pipes", "buffer-size", "workers", "busy-poll", "connect-timeout",
           "drain-timeout", "idle-timeout", "half-close-timeout", "max-lifetime", "linger", "discard", "keepalive",
           "dead-timeout", "user-timeout", "rcvbuf", "sndbuf", "notsent-lowat", "congestion", "mptcp", "freebind", "log-level", "stats", "help",
           "version"]

# Options with values at the edges of what is right.
RIGHT = [
    "--mode=splice", "--mode=copy", "--mode=auto", "--pipes=lend", "--pipes=own", "--pipe-size=64K",
    "--pipe-size=65536", "--pipe-size=1G", "--pipe-size=1m", "--buffer-size=4K", "--buffer-size=16M", "--workers=1",
    "--workers=64", "--connect-timeout=1ms", "--connect-timeout=7", "--drain-timeout=0", "--drain-timeout=2m",
    "--drain-timeout=1h", "--log-level=warn", "--log-level=info", "--log-level=debug", "--stats", "--stats=text",
    "--stats=json", "--idle-timeout=off", "--idle-timeout=1ms", "--half-close-timeout=off", "--half-close-timeout=1h",
    "--max-lifetime=off", "--max-lifetime=5m", "--linger=0", "--linger=1m", "--discard=0", "--discard=1G",
    "--keepalive=off", "--keepalive=9h:9h:127", "--keepalive=1:1s:1", "--user-timeout=off", "--user-timeout=30s",
    "--dead-timeout=off", "--dead-timeout=130s", "--busy-poll=off", "--busy-poll=auto", "--busy-poll=1",
    "--busy-poll=100000", "--rcvbuf=4K", "--sndbuf=4K", "--rcvbuf=auto", "--sndbuf=auto", "--notsent-lowat=system",
    "--congestion=system", "--workers=auto", "--stats=none", "--linger=576h", "--discard=1024G", "--notsent-lowat=1G", "--congestion=reno",
]


@test()
def wrong_use_is_one_line_that_names_the_argument_and_what_would_be_right_and_exit_2(t):
    bad = []
    for args, name, right in WRONG:
        status, out, err = t.sluice(*args, ready=False, stats=None).result()
        if status != 2 or out or len(err) != 1 or name not in err[0] or right not in err[0]:
            bad.append(f"{args} -> exit {status}, stdout {out!r}, stderr {err}")
    check(not bad, f"{len(bad)} of {len(WRONG)}:\n" + "\n".join(bad))


@test()
def every_option_takes_the_values_that_it_is_said_to_take(t):
    for n in range(0, len(RIGHT), 5):  # five at a time
        s = t.forward(TARGET, *RIGHT[n:n + 5], stats=None)
        s.stop()


@test()
def options_may_stand_behind_the_rules(t):
    s = t.sluice("127.0.0.1:0", TARGET, "--mode", "copy", "--workers", "3", stats="--stats=json")
    totals = s.stop()
    equal((totals["mode"], totals["workers"]), ("copy", 3), "mode and workers")


@test()
def what_follows_two_dashes_is_no_option(t):
    status, _, err = t.sluice("--", "--mode", TARGET, ready=False).result()
    equal(status, 2, "exit status")
    check('LISTEN "--mode"' in err[0], err)


@test()
def rules_come_from_one_place(t):
    path = t.file("127.0.0.1 0 127.0.0.1 9\n")
    status, _, err = t.sluice("-c", path, "-c", path, ready=False).result()
    check(status == 2 and len(err) == 1 and path in err[0], f"two files: exit {status}, {err}")


@test()
def help_goes_to_stdout_and_names_every_option(t):
    for word in ("--help", "-h"):
        status, out, err = t.sluice(word, ready=False, stats=None).result()
        equal((status, err), (0, []), "exit status and stderr")
        named = re.findall(r"^ +(?:-\w, )?--([a-z-]+)\S* {2}", out, re.M)
        equal(named, OPTIONS, "the options, in order")
        for word in ("LISTEN", "TARGET", "SIZE", "TIME"):
            check(f"  {word} " in out, f"{word} is not in the help")
        check(max(map(len, out.splitlines())) <= 80, "a line of the help is wider than 80")


@test()
def version_is_one_line_on_stdout(t):
    for word in ("--version", "-V"):
        status, out, err = t.sluice(word, ready=False, stats=None).result()
        equal((status, err, out.split()[0], len(out.split())), (0, [], "sluice", 2), "version")


@test()
def the_start_lines_tell_what_was_asked_for(t):
    s = t.forward(TARGET, "--workers=3", "--pipe-size=128K")
    m = s.err.find(r"ready: (\d+) workers, auto, (\d+) pipes of (\d+) bytes \(requested (\d+)\), "
                   r"descriptors for (\d+) connections")
    check(m, s.err.lines)
    equal((int(m[1]), int(m[3]), int(m[4])), (3, 131072, 131072), "workers, pipe size got and requested")
    check(0 < int(m[2]) <= 3 * 256 and int(m[5]) > 0, m[0])
    s = t.forward(TARGET, "--mode=copy", "--workers=1", "--buffer-size=8K")
    check(s.err.find("ready: 1 worker, copy, buffers of 8192 bytes, descriptors for [1-9][0-9]* connections"), s.err.lines)


@test()
def pipes_are_shared_out_between_the_workers(t):
    limit = {resource.RLIMIT_NOFILE: 640}
    pipes = {}
    for workers in 1, 2, 8:
        s = t.forward(TARGET, f"--workers={workers}", "--pipe-size=64K", limits=limit)
        pipes[workers] = int(s.err.find(r"ready: .* (\d+) pipes of 65536 bytes")[1])
    equal(pipes, {1: 40, 2: 40, 8: 40}, "pipes of so many workers, whose ends are an eighth of 640 descriptors")


@test()
def with_own_pipes_the_start_lines_reckon_with_six_descriptors_a_connection(t):
    room = []
    for option in "--pipes=lend", "--pipes=own":
        s = t.forward(TARGET, option, "--workers=1")
        m = s.err.find(r"ready: .* of 1048576 bytes .*descriptors for (\d+) connections")
        check(m and not [n for n in m[0].split() if n.isdigit() and int(n) > 1 << 31], s.err.lines)
        room.append(int(m[1]))
    check(0.3 < room[1] / room[0] < 0.4, f"{room[0]} connections with lent pipes, {room[1]} with their own")
    s = t.forward(TARGET, "--mode=copy", "--pipes=own", "--workers=1")
    check(int(s.err.find(r"descriptors for (\d+) connections")[1]) >= room[0], s.err.lines)


@test()
def by_default_there_is_a_worker_for_each_cpu_that_it_may_use(t):
    import os
    s = t.forward(TARGET)
    equal(s.stop()["workers"], len(os.sched_getaffinity(0)), "workers")
    one = min(os.sched_getaffinity(0))
    s = t.forward(TARGET, wrap=["taskset", "-c", str(one)])
    equal(s.stop()["workers"], 1, "workers on one cpu")


@test()
def several_rules_are_forwarded_each_to_its_own_target(t):
    backends = [t.backend() for _ in range(3)]
    rules = [word for b in backends for word in ("127.0.0.1:0", "127.0.0.1:%d" % b.addr[1])]
    s = t.sluice(*rules)
    equal(len(s.addrs), 3, "rules in the start lines")
    for addr, backend in zip(s.addrs, backends):
        client, server = t.pair(addr, backend)
        client.sendall(b"x")
        equal(server.recv(1), b"x", "byte")
    check(all(proc.listening(a[1]) for a in s.addrs), "not all listen")


if __name__ == "__main__":
    run()
