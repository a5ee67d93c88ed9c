#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The lab without namespaces: each thread traced, counters, experiments, what an ordinary user gets, and wrong use."""
import os
import re
import shutil
import subprocess

from driver import BRIEF, NAME, ROOT, command, lab, results, table, well

from kit import Skip, check, equal, run, test  # found by driver
from kit.strace import need_strace
from kit.user import spare_user


@test()
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


@test()
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


@test()
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
    for name in ("lab", "bench", "lib"):
        shutil.copytree(os.path.join(ROOT, "tools", name), os.path.join(root, "tools", name))
    build = os.path.dirname(os.path.dirname(t.binary))
    for path in ("src/sluice", "tools/load/sluice-load"):
        os.makedirs(os.path.dirname(os.path.join(root, "build", path)), exist_ok=True)
        shutil.copy(os.path.join(build, path), os.path.join(root, "build", path))
    t.binary = os.path.join(root, "build", "src", "sluice")
    subprocess.run(["chmod", "-R", "a+rX", root], check=True)
    return root, dict(user=user, group=user, extra_groups=[])


@test()
def an_ordinary_user_has_a_quick_look(t):
    root, who = as_user(t)
    p = subprocess.run(command(t, "quick", "--seconds", "6", root=root), capture_output=True, text=True, timeout=30,
                       check=False, **who)
    equal((p.returncode, p.stderr), (0, ""), "quick")
    shown = table(p.stdout, "### bulk, 8 streams")
    equal(list(shown), ["copy-8k", "copy-64k", "splice-1m", "auto"], "rungs")
    check(all(float(row["Gbit/s"]) > 0 and float(row["bytes a call"]) > 1000 for row in shown.values()), shown)
    check(all(float(row["a second"]) > 0 for row in table(p.stdout, "### rr, 16 connections").values()), p.stdout)


@test()
def the_demo_measures_splicing_and_copying_and_verifies_both(t):
    root, who = as_user(t)
    p = subprocess.run(command(t, "demo", "--seconds", "0.2", root=root), capture_output=True, text=True, timeout=30,
                       check=False, **who)
    equal((p.returncode, p.stderr), (0, ""), "demo")
    rows = {m[1].strip(): (float(m[2]), float(m[3]))
            for m in re.finditer(r"^  (.{34}) \S.{7} *([\d.]+) +([\d.]+)$", p.stdout, re.M)}
    equal(len(rows), 8, f"rows of {p.stdout}")
    equal(rows["of the bytes went by pipe"], (100, 0), "share of the pipes, by splice and by copy")
    check(all(min(cells) > 0 for name, cells in rows.items() if "pipe" not in name), p.stdout)


@test()
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


@test()
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
