# SPDX-License-Identifier: MIT
"""The file of --json: each command adds its results under its own name, and replaces those it added before.

{
  "machine": {"cpus", "model", "kernel", "sluice"},
  "commands": ["lab ladder ...", ...]       one a result, in its order
  "ladder", "ladder_loopback": {
    "command", "date", "seconds", "rounds", "load": "sluice-load" or "iperf3",
    "streams": {"8": {RUNG: [SAMPLE, ...]}, "1": ...}}
      RUNG    "copy-8k" "copy-16k" "copy-64k" "copy-256k" "splice-64k" "splice-256k" "splice-1m" "auto" "direct"
      SAMPLE  a round: {gbit_s, cpu_s_per_gib, calls_per_s, calls_per_mib, bytes_per_call, product_gbit_s,
              by_pipe, context_switches_per_s, machine_s_per_gib, others_cpus}; null if it failed; "disturbed": true if
              others used the machine. "direct" is without a forwarder, and so without most. by_pipe is a share. product_gbit_s is
              bytes_per_call * calls_per_s * 8 / 2 / 1e9: each byte is moved by two calls, in and out
  "stat": {"command", "date", "seconds", "rounds", "streams", "hardware": bool,
    "missing": [EVENT that this machine does not count], "rungs": {RUNG: [SAMPLE]}}
      SAMPLE  {gbit_s, gib, seconds, EVENT: count or null, ..., instructions_per_cycle or null,
              "cores": {"cpu_core": {EVENT: count or null}, "cpu_atom": ...}}   cores: on a hybrid machine alone
      EVENT   "cycles" "instructions" "cache-misses" "branches" "branch-misses" "context-switches" "cpu-migrations"
              "page-faults" "task-clock" (ms)
  "syscalls": {"command", "date", "seconds", "streams", "rungs": {RUNG: {gbit_s, seconds, "threads": [
      {"tid", "name", cpu_s, "calls": {SYSCALL: {"calls", "errors", seconds}}}]}}}   seconds: blocked or not
  "rr": {"command", "date", "seconds", "rounds", "size_bytes", "connections": {"1": {WHO: [SAMPLE]}, "16":, "64":},
      "netperf": {"transactions_per_s", "p50_us", "p99_us"} or {"missing": why}}
      WHO     "splice" "copy" "auto" "direct"
      SAMPLE  {transactions_per_s, p50_us, p99_us, p999_us, cpu_us_per_transaction, calls_per_transaction,
              context_switches_per_s, over_35ms, others_cpus}
  "experiments": {"command", "date", "seconds", "rounds", "work": {"bulk-8": {OPTION: [SAMPLE]}, "rr-16": ...},
      "verdict": {"bulk-8": {OPTION: {FIGURE: {"ratio", "least", "most", "noise_least", "noise_most",
                                               "beyond_noise"}}}}}
      OPTION  "as it comes", "again" (the same: what differs is noise), "--rcvbuf=256K" ...
      SAMPLE  as those of ladder for bulk, and of rr for rr
  "stat_loopback", "syscalls_loopback", "rr_loopback", "experiments_loopback": the same by --loopback
  "quick": {"command", "date", "seconds", "streams" as that of ladder, "connections" as that of rr}
}
Numbers carry their unit in the key; _s is seconds, _per_s a second.
"""
import json
import os
import platform
import shlex
import subprocess
import sys
import time

import contestants
from rounds import cpu_model
from testbed import Trouble


def command():
    """What was typed, for the page beside the numbers."""
    return shlex.join(["lab", *sys.argv[1:]])


def machine():
    version = subprocess.run([contestants.BUILT.sluice, "--version"], capture_output=True, text=True, check=True)
    return {"cpus": os.cpu_count(), "model": cpu_model(), "kernel": platform.release(),
            "sluice": version.stdout.strip()}


def headline():
    """What stands above tables: where they come from."""
    m = machine()
    return f"{m['cpus']} cpus ({m['model']}), Linux {m['kernel']}, {m['sluice']}\n\n    {command()}\n"


def load(path):
    """Return: what the file holds, {} if there is none."""
    try:
        with open(path) as f:
            return json.load(f)
    except FileNotFoundError:
        return {}
    except ValueError as e:
        raise Trouble(f"{path} is no file of results ({e}); name another with --json") from None


def check(args):
    """Before anything is measured: that the results can be kept."""
    if args.json:
        there = load(args.json)
        if there.get("machine", machine()) != machine():
            raise Trouble(f"{args.json} holds results of another machine or build; name another with --json")
        if not os.access(os.path.dirname(os.path.abspath(args.json)), os.W_OK):
            raise Trouble(f"{args.json} cannot be written there")


def keep(args, name, result):
    """Adds a result to the file of --json, if there is one."""
    if not args.json:
        return
    if getattr(args, "loopback", False):
        name += "_loopback"
    data = load(args.json)
    data["machine"] = machine()
    data[name] = {"command": command(), "date": time.strftime("%Y-%m-%d %H:%M:%S"), **result}
    data["commands"] = [data[n]["command"] for n in data if isinstance(data[n], dict) and "command" in data[n]]
    new = args.json + ".new"
    with open(new, "w") as f:
        json.dump(data, f, indent=1)
    os.rename(new, args.json)
