#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The lab and the bench in namespaces: what they say agrees with itself, and nothing is left."""
import json
import os
import re
import shutil
import signal
import subprocess
import sys

import pages
from driver import BRIEF, NAME, NET, ROOT, agrees, build, command, lab, results, table, well

from kit import Skip, check, equal, proc, run, test  # found by driver
from kit.strace import need_strace
from testbed import Group  # found by pages

SYSCTLS = ("net/ipv4/tcp_congestion_control", "net/ipv4/ip_forward")


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


@test()
def up_ladder_and_down(t):
    before, path = in_namespaces(t), os.path.join(t.folder(), "results")
    first = well(t, "up")
    check("GONE" not in first and len(left()) >= 7, first)
    again = well(t, "up")
    check(again.startswith(f"{NAME} is up already:"), again)
    equal(again.split("\n", 1)[1], first, "what up says the second time")
    equal(well(t, "status"), f"{NAME} is up:\n{first}", "what status says")
    out = well(t, "ladder", "--rungs", "copy-8k,splice-1m", "--streams", "8", "--rounds", "2", "--seconds", "0.6",
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


@test()
def a_server_that_has_ended_is_missed(t):
    in_namespaces(t)
    pid = int(re.search(r"^sink +process (\d+)", well(t, "up"), re.M)[1])
    os.kill(pid, signal.SIGKILL)
    check(proc.wait_for(lambda: "GONE" in well(t, "status")), "its end is not noticed")
    check(re.search(r"^sink .*GONE$", well(t, "status"), re.M), well(t, "status"))
    equal(lab(t, "ladder", *BRIEF), (1, "", "lab: ladder: the lab stands, but sink has ended; try: lab down, lab up\n"),
          "ladder")


@test()
def what_a_killed_command_leaves_is_taken_down(t):
    before = in_namespaces(t)
    for number, then in ((signal.SIGKILL, ("down",)), (signal.SIGKILL, ("ladder", "--rungs", "auto", *BRIEF)),
                         (signal.SIGTERM, None)):
        with subprocess.Popen(command(t, "ladder", "--patience", "0"), stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL) as p:
            came_up = proc.wait_for(lambda: re.search(r"^iperf3|^sink", well(t, "status"), re.M))
            check(came_up, "no lab came up")
            status, _, err = lab(t, "down")
            equal((status, err), (1, f"lab: down: {NAME} is in use by another run; wait until that has ended\n"),
                  "down")
            p.send_signal(number)
        if then:
            with open(f"/run/{NAME}/made") as f:
                folder = json.load(f)["folder"]
            check(left() and os.path.isdir(folder), "a killed command took down its lab")
            well(t, *then)
            check(not os.path.exists(folder), f"{folder} is left")
        nothing_is_left(before)


@test()
def a_process_that_joins_while_the_others_end_is_ended_too(t):
    in_namespaces(t)

    class Late(Group):
        looks = 0  # one by each signal: only then it joins

        def pids(self):
            self.looks += 1
            return super().pids() if self.looks > 2 else []

    group = Late(NAME + "-late")
    sleeper = group.start(["sleep", "30"])
    group.close()
    check(not os.path.exists(group.path), "the group is left")
    equal(sleeper.wait(1), -signal.SIGTERM, "how it ended")


@test()
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


SPY = """#!/bin/sh
echo "$*" >>{log}
exec {load} "$@"
"""


def spied_on(t):
    """A build whose sluice-load writes down what it is told. Return: its folder, and the file."""
    folder = t.folder()
    log, load = os.path.join(folder, "log"), os.path.join(folder, "tools", "load", "sluice-load")
    for path in (os.path.join(folder, "src"), os.path.dirname(load)):
        os.makedirs(path)
    os.symlink(t.binary, os.path.join(folder, "src", "sluice"))
    with open(load, "w") as f:
        f.write(SPY.format(log=log, load=os.path.join(build(t), "tools", "load", "sluice-load")))
    os.chmod(load, 0o755)
    return folder, log


@test()
def the_bench_measures_requests_in_a_pipeline(t):
    before, (folder, log) = in_namespaces(t), spied_on(t)
    path, rows = os.path.join(folder, "results"), ["rr-1"] + [f"rr-{n}-piped" for n in (1, 64, 512)]
    run_it = os.path.join(ROOT, "tools", "bench", "run")
    who = ("--only", "copy-8k,splice-1m", "--base", "copy-8k")
    p = subprocess.run([sys.executable, run_it, *rows, *who, "--name", NAME, "--net", NET, "--build", folder,
                        "--json", path, *BRIEF], capture_output=True, text=True, timeout=50,
                       check=False)
    equal((p.returncode, p.stderr), (0, ""), f"tools/bench/run: {p.stdout}")
    samples = results(path)["samples"]
    equal(list(samples), rows, "rows")
    for row, by_who in samples.items():
        equal(list(by_who), ["sluice copy 8K", "sluice splice 1M"], f"contestants of {row}")
        shown = table(p.stdout, f"### {row}: ")
        for who, (sample,) in by_who.items():
            check(sample["tps"] > 0 and not sample["errors"], f"{row}, {who}: {sample}")
            agrees(shown[who], [sample], {"a second": ("tps", ".0f"), "p99 us": ("p99", ".0f")})
    equal(p.stdout.count("| sluice splice 1M / sluice copy 8K | "), len(rows), "ratios")
    with open(log) as f:
        told = re.findall(r"^rr \S+ --seconds 0\.2 (.*)", f.read(), re.M)
    piped = [f"-N {n} --size 32 --pipeline 16" for n in (1, 64, 512)]
    equal(told[::2], ["-N 1 --size 32", *piped], "what the load was told")
    equal(told[1::2], told[::2], "what it was told for the other contestant")
    nothing_is_left(before)


@test()
def without_ip_one_line_says_what_to_install_and_nothing_is_made(t):
    before = in_namespaces(t)
    p = subprocess.run(command(t, "up"), capture_output=True, text=True, timeout=10, check=False,
                       env={"PATH": t.folder()})
    equal((p.returncode, p.stdout, p.stderr), (1, "", "lab: up: ip is not installed; try: apt install iproute2\n"), "up")
    nothing_is_left(before)


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


@test()
def netperf_gets_two_ports_where_it_is_installed(t):
    before, folder = in_namespaces(t), t.folder()
    path = os.path.join(folder, "results")
    brief = ("rr", "--modes", "splice", "--connections", "1", "--json", path, *BRIEF)
    out = well(t, *brief, env=dict(os.environ, PATH=only_path(t, "ip", "nsenter", "python3")))
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


REPORT = ("report", "--short", "--seconds", "0.1", "--streams", "8", "--connections", "16",
          "--patience", "0")


def need_report(t):
    """Skips where it cannot measure. Return: options of one, and the folder where its page goes."""
    for program in ("perf", "gnuplot"):
        if not shutil.which(program):
            raise Skip(f"{program} is not installed")
    need_strace()
    for what in ("stat", "record"):
        argv = ["perf", what, "-o", os.path.join(t.folder(), what), "true"]
        if subprocess.run(argv, capture_output=True, check=False).returncode:
            raise Skip(f"perf may not {'count' if what == 'stat' else what} here")
    folder = t.folder()
    template = t.file(pages.MARKS, "template.html")
    return (*REPORT, "--template", template, "--out", os.path.join(folder, "page.html")), folder


@test(limit=90)
def a_report_has_the_numbers_that_it_measured_and_leaves_nothing(t):
    before = in_namespaces(t)
    argv, folder = need_report(t)
    scratch = t.folder()
    out = well(t, *argv, timeout=80, env=dict(os.environ, TMPDIR=scratch))
    equal(out, f"{folder}/page.html: made of {folder}/page.json\n", "stdout")
    equal(sorted(os.listdir(folder)), ["page-flame", "page.html", "page.json"], "files made")
    got = results(os.path.join(folder, "page.json"))
    with open(os.path.join(folder, "page.html")) as f:
        page = f.read()
    tables = pages.Tables(page).tables
    pages.tables_are_those_of(got, tables)
    pages.calls_are_those_of(got["syscalls"]["rungs"], tables["syscalls"])
    pages.graphs_are_those_of(got, page)
    rungs = got["ladder"]["streams"]["8"]
    equal([len(rows) for rows in (rungs, tables["rr-16"], tables["stat"])], [9, 4, 3], "rows")
    told = [s["gbit_s"] for name, (s,) in rungs.items() if name not in ("auto", "direct")]
    words = f"From {min(told):.1f} to {max(told):.1f} Gbit/s: the same 8 streams"
    check(words in page.replace("\u00a0", " "), f"not on the page: {words}")
    equal(os.listdir(scratch), [], "what is left of what it needed meanwhile")
    nothing_is_left(before)


@test()
def a_report_that_is_asked_to_end_takes_down_what_its_command_made(t):
    before = in_namespaces(t)
    argv, folder = need_report(t)
    with subprocess.Popen(command(t, *argv), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                          text=True) as p:
        came_up = proc.wait_for(lambda: re.search(r"^sink", well(t, "status"), re.M))
        p.terminate()
        err = p.communicate()[1]
    check(came_up, f"no lab came up: {err}")
    equal((p.returncode, err), (130, "lab: interrupted\n"), "exit status, stderr")
    equal(os.listdir(folder), [], "files that it made")
    nothing_is_left(before)


def only_path(t, *programs):
    """A PATH with no other program in it."""
    folder = t.folder()
    for name in programs:
        os.symlink(shutil.which(name), os.path.join(folder, name))
    return folder


if __name__ == "__main__":
    run()
