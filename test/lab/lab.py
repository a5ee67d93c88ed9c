#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The lab, in namespaces and a subnet of its own: what it measures agrees with itself, and it leaves nothing behind."""
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "test", "daemon"))

from kit import Skip, check, equal, proc, run, test  # noqa: E402
from kit.strace import need_strace                    # noqa: E402
from kit.user import spare_user                       # noqa: E402

NAME = f"slt{os.getpid()}"
NET = f"10.{100 + os.getpid() % 100}"
SYSCTLS = ("net/ipv4/tcp_congestion_control", "net/ipv4/ip_forward")
BRIEF = ("--patience", "0", "--rounds", "1", "--seconds", "0.2")


def command(t, *args, root=ROOT):
    """The words that run a command of the lab with the build under test."""
    build = os.path.dirname(os.path.dirname(t.binary))
    place = [] if args[0] == "quick" else ["--name", NAME, "--net", NET]
    return [os.path.join(root, "tools", "lab", "run"), args[0], *place, "--build", build, *args[1:]]


def lab(t, *args, **kwargs):
    """Runs a command to its end. Return: (exit status, stdout, stderr)"""
    p = subprocess.run(command(t, *args), capture_output=True, text=True, timeout=60, check=False, **kwargs)
    return p.returncode, p.stdout, p.stderr


def well(t, *args, **kwargs):
    """The same of one that must succeed, without a word on stderr. Return: stdout"""
    status, out, err = lab(t, *args, **kwargs)
    check(status == 0 and not err, f"lab {args}: exit status {status}: {err[-1500:]}{out[-300:]}")
    return out


def settings():
    values = []
    for key in SYSCTLS:
        with open("/proc/sys/" + key) as f:
            values.append(f.read())
    return values


def left():
    """All that is there by the name of this lab: namespaces, links, cgroups, files, processes."""
    def listed(folder):
        return [os.path.join(folder, n) for n in (os.listdir(folder) if os.path.isdir(folder) else []) if NAME in n]
    with open("/proc/mounts") as f:
        groups = [g for line in f if line.split()[2] == "cgroup2" for g in listed(line.split()[1])]
    mine = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cgroup") as group, open(f"/proc/{pid}/stat") as stat:
                dead = stat.read().rsplit(")", 1)[1].split()[0] == "Z"  # it is only that nobody has waited for it
                mine += [pid] * (NAME in group.read() and not dead)
        except OSError:
            pass
    return listed("/run/netns") + listed("/sys/class/net") + listed("/run") + groups + mine


def in_namespaces(t):
    """Skips where there are none, and sees to it that all is as it was."""
    if os.geteuid():
        raise Skip("only root can make network namespaces")
    if not shutil.which("ip"):
        raise Skip("ip is not installed")
    t.later(lab, t, "down")
    return settings()


def nothing_is_left(before):
    equal(left(), [], "what is left of the lab")
    equal(settings(), before, "sysctls")


def table(out, title):
    """The first table behind a title. Return: {row: {column: cell}}"""
    lines = out[out.index(title):].splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("|"))
    rows = []
    for line in lines[start:]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return {row[0]: dict(zip(rows[0][1:], row[1:])) for row in rows[2:]}


def results(path):
    with open(path) as f:
        return json.load(f)


def agrees(cells, samples, columns):
    """Whether the cells of a row are the medians of the samples."""
    for column, (key, form) in columns.items():
        values = [s[key] for s in samples]
        equal(cells[column].split()[0], format(statistics.median(values), form), f"{column}, of {values}")


@test(limit=60)
def up_ladder_and_down(t):
    before, path = in_namespaces(t), os.path.join(t.folder(), "results")
    first = well(t, "up")
    check("GONE" not in first and len(left()) >= 7, first)
    again = well(t, "up")
    check(again.startswith(f"{NAME} is up already:"), again)
    equal(again.split("\n", 1)[1], first, "what up says the second time")
    equal(well(t, "status"), f"{NAME} is up:\n{first}", "what status says")
    out = well(t, "ladder", "--rungs", "copy-8k,splice-1m", "--streams", "8", "--rounds", "2", "--seconds", "1",
               "--patience", "0", "--json", path)
    equal(well(t, "status"), f"{NAME} is up:\n{first}", "what status says after the ladder")
    rungs = results(path)["ladder"]["streams"]["8"]
    shown = table(out, "### ladder, 8 streams")
    equal(sorted(shown), ["copy-8k", "splice-1m"], "rungs")
    for name, samples in rungs.items():
        equal(len(samples), 2, f"samples of {name}")
        agrees(shown[name], samples, {"Gbit/s": ("gbit_s", ".1f"), "bytes a call": ("bytes_per_call", ".0f"),
                                      "calls/MiB": ("calls_per_mib", ".1f"), "cpu s/GiB": ("cpu_s_per_gib", ".3f")})
        for s in samples:
            product = s["bytes_per_call"] * s["calls_per_s"] * 8 / 2 / 1e9
            for what in (product, s["product_gbit_s"]):
                check(abs(what / s["gbit_s"] - 1) < 0.05, f"{name}: bytes x calls / 2 is {product} Gbit/s: {s}")
            check(s["cpu_s_per_gib"] > 0 and s["context_switches_per_s"] > 0, f"{name}: {s}")
    most = max(s["bytes_per_call"] for s in rungs["copy-8k"])
    check(most <= 8192 < min(s["bytes_per_call"] for s in rungs["splice-1m"]), f"bytes a call: {rungs}")
    check(well(t, "down").startswith(f"{NAME} is down: "), "down does not say so")
    nothing_is_left(before)
    equal(well(t, "down"), f"{NAME} is not up\n", "down, twice")
    equal(well(t, "status"), f"{NAME} is not up\n", "status")


@test(limit=40)
def a_server_that_has_ended_is_missed(t):
    in_namespaces(t)
    pid = int(re.search(r"^sink +process (\d+)", well(t, "up"), re.M)[1])
    os.kill(pid, signal.SIGKILL)
    proc.wait_for(lambda: "GONE" in well(t, "status"))
    check(re.search(r"^sink .*GONE$", well(t, "status"), re.M), well(t, "status"))
    equal(lab(t, "ladder", *BRIEF), (1, "", "lab: ladder: the lab stands, but sink has ended; try: lab down, lab up\n"),
          "ladder")


@test(limit=40)
def what_a_killed_command_leaves_is_taken_down(t):
    before = in_namespaces(t)
    for number, then in ((signal.SIGKILL, ("down",)), (signal.SIGKILL, ("ladder", "--rungs", "auto", *BRIEF)),
                         (signal.SIGTERM, None)):
        with subprocess.Popen(command(t, "ladder", "--patience", "0"), stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL) as p:
            came_up = proc.wait_for(lambda: "servers" in str(left()) and "is up for one command" in well(t, "status"))
            check(came_up, "no lab came up")
            status, _, err = lab(t, "down")
            equal((status, err), (1, f"lab: down: {NAME} is in use by another run; wait until that has ended\n"),
                  "down")
            p.send_signal(number)
        if then:
            check(left(), "a killed command took down its lab")
            well(t, *then)
        nothing_is_left(before)


@test(limit=40)
def a_namespace_of_somebody_else_is_left_alone(t):
    before = in_namespaces(t)
    subprocess.run(["ip", "netns", "add", NAME + "-server"], check=True)
    t.later(subprocess.run, ["ip", "netns", "del", NAME + "-server"])
    status, out, err = lab(t, "up")
    equal((status, out), (1, ""), "up")
    check(err.startswith(f"lab: up: {NAME}-server is there already") and err.count("\n") == 1, err)
    equal(well(t, "down"), f"{NAME} is not up\n", "down")
    equal(left(), [f"/run/netns/{NAME}-server"], "what is left")
    equal(settings(), before, "sysctls")


FAKE = """#!{python}
import socket, sys
argv = sys.argv[1:]
def port(of): return int(argv[argv.index(of) + 1].strip(","))
if {server}:
    assert argv == ["-D", "-4", "-p", "12865"], argv
    ports = [socket.create_server(("", p)) for p in (12865, 12866)]
    for s in ports:
        c = s.accept()[0]
        c.sendall(c.recv(9))
    sys.exit(0)
cut = argv.index("--")
own, test = argv[:cut], argv[cut + 1:]
assert own[:4] == ["-4", "-P", "0", "-H"] and own[5] == "-p" and own[7:] == ["-t", "TCP_RR", "-l", "1"], own
assert test[:4] == ["-P", ",12866", "-r", "32,32"] and test[4] == "-k", test
for p in (int(own[6]), 12866):
    with socket.create_connection((own[4], p), 5) as s:
        s.sendall(b"%d" % p)
        assert s.recv(9) == b"%d" % p
for key in test[5].split(","):
    print(key + "=" + {{"TRANSACTION_RATE": "1234.5", "P50_LATENCY": "70", "P99_LATENCY": "150"}}[key])
"""


@test(limit=40)
def netperf_gets_two_ports_where_it_is_installed(t):
    before, folder = in_namespaces(t), t.folder()
    path = os.path.join(folder, "results")
    brief = ("rr", "--modes", "splice", "--connections", "1", "--json", path, *BRIEF)
    out = well(t, *brief, env=dict(os.environ, PATH=only_path(t, "ip", "python3")))
    check("netperf TCP_RR: netperf is not installed" in out, out)
    for name in ("netperf", "netserver"):
        with open(os.path.join(folder, name), "w") as f:
            f.write(FAKE.format(python=sys.executable, server=name == "netserver"))
        os.chmod(f.name, 0o755)
    out = well(t, *brief, env=dict(os.environ, PATH=f"{folder}:{os.environ['PATH']}"))
    rr = results(path)["rr"]
    equal(rr["netperf"], {"transactions_per_s": 1234.5, "p50_us": 70, "p99_us": 150}, "netperf")
    check("netperf TCP_RR: transactions_per_s 1234.5, p50_us 70, p99_us 150" in out, out)
    (sample,) = rr["connections"]["1"]["splice"]
    check(0 < sample["p50_us"] <= sample["p99_us"] <= sample["p999_us"], sample)
    agrees(table(out, "### rr, 1 connection")["splice"], [sample], {"a second": ("transactions_per_s", ".0f"),
                                                                    "p50 us": ("p50_us", ".0f")})
    check(sample["calls_per_transaction"] >= 4, f"in and out, both ways, and fewer calls: {sample}")
    nothing_is_left(before)


def only_path(t, *programs):
    """A PATH with no other program in it."""
    folder = t.folder()
    for name in programs:
        os.symlink(shutil.which(name), os.path.join(folder, name))
    return folder


@test(limit=40)
def each_thread_is_traced_for_itself(t):
    need_strace()
    path = os.path.join(t.folder(), "results")
    out = well(t, "syscalls", "--loopback", "--rungs", "copy-8k", "--seconds", "0.5", "--patience", "0", "--json", path)
    threads = results(path)["syscalls_loopback"]["rungs"]["copy-8k"]["threads"]
    workers = [th for th in threads if th["name"].startswith("sluice/")]
    equal(len(workers), os.cpu_count(), f"workers, of {[th['name'] for th in threads]}")
    check(all(th["calls"]["epoll_wait"]["calls"] > 0 for th in workers), "a worker that never waited")
    check(sum(th["calls"].get("recvfrom", {"calls": 0})["calls"] for th in workers) > 100, workers)
    check("mostly asleep: no cost" in out and "In epoll_wait a thread sleeps" in out, out)


@test(limit=40)
def stat_counts_what_this_machine_can(t):
    if not shutil.which("perf"):
        raise Skip("perf is not installed")
    path = os.path.join(t.folder(), "results")
    status, out, err = lab(t, "stat", "--loopback", "--rungs", "copy-64k", "--json", path, *BRIEF)
    if status and "perf stat counts nothing" in err:
        raise Skip("perf may not count here")
    equal((status, err), (0, ""), "stat")
    stat = results(path)["stat_loopback"]
    (sample,) = stat["rungs"]["copy-64k"]
    check(sample["context-switches"] > 0 and sample["task-clock"] > 0, sample)
    equal(stat["hardware"], len(stat["missing"]) < 5, f"hardware, and missing: {stat['missing']}")
    check(all((sample[event] is None) == (event in stat["missing"]) for event in ("cycles", "branches")), sample)
    equal("it has no hardware counters" in out, not stat["hardware"], "whether it says so")


@test(limit=40)
def experiments_are_judged_against_the_same_again(t):
    path = os.path.join(t.folder(), "results")
    out = well(t, "experiments", "--loopback", "--only", "pipes", "--json", path, *BRIEF)
    got = results(path)["experiments_loopback"]
    equal({name: list(work) for name, work in got["work"].items()},
          {name: ["as it comes", "again", "--pipes=own"] for name in ("bulk-8", "rr-16")}, "what was measured")
    bulk, v = got["work"]["bulk-8"], got["verdict"]["bulk-8"]["--pipes=own"]["gbit_s"]
    equal(v["ratio"], bulk["--pipes=own"][0]["gbit_s"] / bulk["as it comes"][0]["gbit_s"], "ratio of the only round")
    check(out.count("- `--pipes=own`: ") == 2, out)


def as_user(t):
    """A clone and a build where every user may look, and the words that run a program as one that nobody is."""
    user = spare_user()
    root = t.folder()
    for name in ("lab", "bench"):
        shutil.copytree(os.path.join(ROOT, "tools", name), os.path.join(root, "tools", name))
    build = os.path.dirname(os.path.dirname(t.binary))
    for path in ("src/sluice", "tools/load/sluice-load"):
        os.makedirs(os.path.dirname(os.path.join(root, "build", path)), exist_ok=True)
        shutil.copy(os.path.join(build, path), os.path.join(root, "build", path))
    t.binary = os.path.join(root, "build", "src", "sluice")
    subprocess.run(["chmod", "-R", "a+rX", root], check=True)
    return root, dict(user=user, group=user, extra_groups=[])


@test(limit=40)
def an_ordinary_user_has_a_quick_look(t):
    root, who = as_user(t)
    p = subprocess.run(command(t, "quick", "--seconds", "6", root=root), capture_output=True, text=True, timeout=30,
                       check=False, **who)
    equal((p.returncode, p.stderr), (0, ""), "quick")
    shown = table(p.stdout, "### bulk, 8 streams")
    equal(list(shown), ["copy-8k", "copy-64k", "splice-1m", "auto"], "rungs")
    check(all(float(row["Gbit/s"]) > 0 and float(row["bytes a call"]) > 1000 for row in shown.values()), shown)
    check(all(float(row["a second"]) > 0 for row in table(p.stdout, "### rr, 16 connections").values()), p.stdout)


@test(limit=40)
def an_ordinary_user_is_told_in_one_line_what_needs_root(t):
    root, who = as_user(t)
    for args, words in ((("up",), "makes network namespaces"), (("down",), "removes network namespaces"),
                        (("ladder",), "makes network namespaces, links between them and cgroups, and sets net.ipv4.*; "
                         "--loopback does without: run it as root")):
        p = subprocess.run(command(t, *args, root=root), capture_output=True, text=True, timeout=30, check=False, **who)
        equal((p.returncode, p.stdout), (1, ""), f"lab {args}")
        check(words in p.stderr and p.stderr.count("\n") == 1, p.stderr)
    with open("/proc/sys/kernel/perf_event_paranoid") as f:
        may_not = int(f.read()) >= 2
    if shutil.which("perf") and may_not:
        p = subprocess.run(command(t, "stat", "--loopback", *BRIEF, root=root), capture_output=True, text=True,
                           timeout=30, check=False, **who)
        equal((p.returncode, p.stdout), (1, ""), "lab stat")
        check(p.stderr.startswith("lab: stat: perf") and "run it as root" in p.stderr, p.stderr)
    p = subprocess.run(command(t, "status", root=root), capture_output=True, text=True, timeout=30, check=False, **who)
    equal((p.returncode, p.stdout), (0, f"{NAME} is not up\n"), "status")


@test(limit=40)
def what_is_wrong_is_said_in_one_line(t):
    path = t.file("no json", "results")
    other = t.file('{"machine": {"cpus": 4096}}', "results")
    for args, status, words in (
            (("ladder", "--loopback", "--rungs", "copy-9k"), 2, "copy-9k: should be a list of copy-8k,"),
            (("ladder", "--loopback", "--rounds", "0"), 2, "--rounds: 0: should be a number above 0"),
            (("up", "--name", "much-too-long-a-name"), 2, "should be 1 to 12 of a-z, 0-9 and -"),
            (("ladder", "--loopback", "--iperf3"), 1, "--iperf3"),
            (("ladder", "--loopback", "--json", path, *BRIEF), 1, f"{path} is no file of results"),
            (("ladder", "--loopback", "--json", other, *BRIEF), 1, f"{other} holds results of another machine"),
            (("ladder", "--loopback", "--build", "/nowhere"), 1, "/nowhere/src/sluice is no program")):
        got, out, err = lab(t, *args)
        equal((got, out), (status, ""), f"lab {args}: {err}")
        check(words in err.splitlines()[-1], f"lab {args}: {err}")
    p = subprocess.run([os.path.join(ROOT, "tools", "lab", "run")], capture_output=True, text=True, check=False)
    check(p.returncode == 0 and all(c in p.stdout for c in ("up", "ladder", "quick", "experiments")), p.stdout)


if __name__ == "__main__":
    run()
