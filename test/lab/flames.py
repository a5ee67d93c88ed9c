#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Flame graphs: of what perf saw, and compared by what a GiB costs; what is missing is said in one line."""
import json
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [os.path.join(ROOT, *folder) for folder in (("test", "daemon"), ("tools", "lab"), ("tools", "bench"))]

from kit import Skip, check, equal, run, test  # noqa: E402

import stacks  # noqa: E402

TEMPLATE = f"<script>var s = [{stacks.MARK_STACKS}], o = [{stacks.MARK_OPTIONS}];</script>"


def lab_flame(t, *args, **env):
    """Return: (exit status, stdout, lines of stderr)"""
    build = os.path.dirname(os.path.dirname(t.binary))
    argv = [sys.executable, os.path.join(ROOT, "tools/lab/run"), "flame", "--loopback", "--build", build, "--patience",
            "0", *args]
    p = subprocess.run(argv, capture_output=True, text=True, timeout=90, check=False, env=dict(os.environ, **env))
    return p.returncode, p.stdout, p.stderr.splitlines()


def frame(name, own, *callees, kind="kernel"):
    return {"n": name, "l": kind, "v": own, "c": list(callees)}


@test()
def threads_are_put_together_by_their_stacks(t):
    tree = frame("all", 0, frame("sluice/0 (7)", 1, frame("f", 2, frame("g", 3)), kind=""),
                 frame("sluice/1 (7)", 0, frame("f", 10, frame("h", 5)), kind=""), kind="root")
    merged = stacks.merged(tree, "sluice")
    equal(merged, frame("sluice", 1, frame("f", 12, frame("g", 3), frame("h", 5)), kind="root"), "stacks")
    equal(stacks.samples(merged), 21, "samples, of which none is lost")


@test()
def a_function_counts_once_a_stack_however_often_it_calls_itself(t):
    tree = frame("sluice", 0, frame("f", 1, frame("g", 2, frame("f", 4))), frame("g", 8))
    equal(stacks.own(tree), {"f": 5, "g": 10}, "own")
    equal(stacks.whole(tree), {"sluice": 15, "f": 7, "g": 14}, "whole")


@test()
def a_module_of_the_kernel_is_of_the_kernel(t):
    tree = frame("sluice", 0, frame("main", 1, frame("[unknown]", 1, frame("send", 0, frame("do_syscall_64", 1, frame(
        "veth_xmit", 5, kind="")), kind=""), kind=""), kind=""), kind="root")
    equal(stacks.users(tree), {"main", "send"}, "functions outside the kernel")


@test()
def a_difference_is_by_the_gib_and_chance_is_told_apart(t):
    a = {"gib": 2, "stacks": frame("sluice", 0, frame("same", 200), frame("more", 50), frame("rare", 3))}
    b = {"gib": 4, "stacks": frame("sluice", 0, frame("same", 400), frame("more", 400), frame("rare", 9))}
    rows = {name: (round(x, 6), round(y, 6), real) for name, x, y, real in stacks.differences(a, b, 100)}
    equal(rows, {"same": (1.0, 1.0, False), "more": (0.25, 1.0, True), "rare": (0.015, 0.0225, False)}, "s/GiB")
    kinds = {node["n"].split(" ")[0]: node["l"] for node, _ in stacks.walk(stacks.compared(b, a, 100))}
    equal((kinds["more"], kinds["same"]), (stacks.MORE, stacks.SAME), "colours where more is spent")
    kinds = {node["n"].split(" ")[0]: node["l"] for node, _ in stacks.walk(stacks.compared(a, b, 100))}
    equal(kinds["more"], stacks.LESS, "colour where less is spent")


@test(limit=100)
def graphs_are_of_this_sluice_and_dwarf_sees_the_callers(t):
    if not shutil.which("perf"):
        raise Skip("perf is not installed")
    folder = t.folder()
    if subprocess.run(["perf", "record", "-g", "-o", folder + "/try", "true"], capture_output=True, check=False).returncode:
        raise Skip("perf may not record here")
    with open(folder + "/template.html", "w") as f:
        f.write(TEMPLATE)
    for seconds in ("1.5", "6"):  # a slow machine takes few samples
        status, out, err = lab_flame(t, "--seconds", seconds, "--rungs", "copy-64k,splice-1m", "--diff", "--template",
                                     folder + "/template.html", "--out", folder + "/out", "--json",
                                     folder + "/results.json")
        equal((status, err), (0, []), f"exit status, stderr, with {out[-500:]}")
        with open(folder + "/results.json") as f:
            results = json.load(f)
        (graphs,) = [results[name]["rungs"] for name in results if name.startswith("flame")]
        if all(g["dwarf"]["samples"] >= 10 for g in graphs.values()):
            break
    for rung, call in (("copy-64k", "copy_fill"), ("splice-1m", "splice_fill")):
        for how in ("fp", "dwarf"):
            g = graphs[rung][how]
            equal(stacks.samples(g["stacks"]), g["samples"], f"samples of {rung} by {how}")
            with open(f"{folder}/out/{rung}-{how}.html") as f:
                page = f.read()
            check(stacks.MARK_STACKS not in page and '"c":' in page, f"the page of {rung} by {how} has no stacks")
        under_load = graphs[rung]["dwarf"]
        check(under_load["samples"] >= 10, f"{rung}: {under_load['samples']} samples by DWARF")
        check("lane_run" in stacks.users(under_load["stacks"]) and call in stacks.users(under_load["stacks"]),
              f"{rung}, seen by DWARF: {stacks.users(under_load['stacks'])}")
    check("### copy-64k against splice-1m" in out, out)
    with open(folder + "/out/index.html") as f:
        index = f.read()
    for name in sorted(set(os.listdir(folder + "/out")) - {"index.html"}):
        check(f"src='{name}'" in index, f"index.html does not show {name}")


def with_perf_alone(t, *names):
    """A folder for PATH in which perf, and what else is named, is there by name alone."""
    folder = t.folder()
    for name in ("perf",) + names:
        with open(f"{folder}/{name}", "w") as f:
            f.write("#!/bin/sh\necho it has no network >&2; exit 1\n")
        os.chmod(f"{folder}/{name}", 0o755)
    return folder


@test()
def what_is_missing_is_said_in_one_line(t):
    nowhere = t.folder()
    for path, wanted in ((nowhere, "apt install linux-perf"), (with_perf_alone(t), "npm is not installed"),
                         (with_perf_alone(t, "npm"), "it has no network")):
        status, out, err = lab_flame(t, PATH=path, XDG_CACHE_HOME=nowhere)
        equal((status, len(err), out), (1, 1, ""), f"exit status, lines of stderr, stdout: {err}")
        check(wanted in err[0], err)
        check("perf" in wanted or "--template" in err[0], f"it does not say what to do: {err}")


@test()
def one_rung_is_not_compared(t):
    status, out, err = lab_flame(t, "--diff", "--rungs", "auto", PATH=with_perf_alone(t))
    equal((status, len(err), out), (2, 1, ""), f"exit status, lines of stderr, stdout: {err}")


@test()
def a_template_must_be_one(t):
    wrong = t.file("<html></html>", "wrong.html")
    for path, wanted in ((wrong, "is no template"), (wrong + "-not", "No such file")):
        status, out, err = lab_flame(t, "--template", path, PATH=with_perf_alone(t))
        equal((status, len(err), out), (1, 1, ""), f"exit status, lines of stderr, stdout: {err}")
        check(wanted in err[0], err)


if __name__ == "__main__":
    run()
