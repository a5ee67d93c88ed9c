#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The probes are there, all or none, and what the scripts of tools/lab say is what has moved."""
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import time

from kit import (EACH_MODE, KIB, MIB, MODES, Skip, check, connect, equal, exchange, has_ipv6, proc, receive, run,
                 send_until_full, test)
from kit.sluice import Lines, tied

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILT = os.environ.get("PROBES") == "yes"
ATTACHED = "__BPFTRACE_NOTIFY_PROBES_ATTACHED"  # in its environment: it says this on stderr, once they are


def names_in_source():
    return {name for path in (ROOT / "src").rglob("*.c") for name in re.findall(r"\bprobe\((\w+)", path.read_text())}


def names_in(path):
    if not shutil.which("readelf"):
        raise Skip("readelf is not installed")
    notes = subprocess.run(["readelf", "-nW", path], check=True, capture_output=True, text=True).stdout
    return set(re.findall(r"Provider: sluice\n\s+Name: (\w+)", notes))


class Bpftrace:
    """A script of tools/lab that looks on at one copy of the program, which no other test runs."""

    def __init__(self, t, script):
        if not BUILT:
            raise Skip("built without probes")
        if not shutil.which("bpftrace"):
            raise Skip("bpftrace is not installed")
        t.binary = t.public_binary()
        self.process = subprocess.Popen(
            tied(["bpftrace", "-f", "json", ROOT / "tools/lab" / script, t.binary]), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=dict(os.environ, **{ATTACHED: "1"}))
        t.keep(self)
        self.out, self.err = Lines(self.process.stdout), Lines(self.process.stderr)
        if not self.err.find(ATTACHED):
            said = [line for line in self.err.lines if "MEMLOCK" not in line]
            ended = proc.wait_for(lambda: self.process.poll() is not None)  # its stderr may be shut a moment before
            check(ended, f"{script} does not attach: {said}")
            check(not any(".bt:" in line for line in said), f"{script} is wrong: {said}")
            raise Skip(f"bpftrace cannot attach here: {said}")

    def end(self):
        """Has it print. Return: {map: what is in it}"""
        self.process.send_signal(signal.SIGINT)
        equal(self.process.wait(15), 0, "exit status of bpftrace")
        maps = {}
        for line in self.out.wait_end():
            said = json.loads(line) if line.strip() else {}
            if said.get("type") in ("map", "hist"):
                maps.update(said["data"])
        return maps

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


def calls_of(hist):
    return {key: sum(bucket["count"] for bucket in buckets) for key, buckets in hist.items()}


@test()
def every_probe_of_the_source_is_in_the_notes_of_the_program(t):
    if not BUILT:
        raise Skip("built without probes")
    equal(names_in(t.binary), names_in_source(), "probes")


@test()
def without_the_option_there_is_not_one(t):
    if not BUILT:
        equal(names_in(t.binary), set(), "probes")
    folder = t.folder()
    for path in sorted((ROOT / "src").rglob("*.c")):
        if "probe(" in path.read_text():
            subprocess.run([*os.environ["CC"].split(), "-std=gnu11", "-D_GNU_SOURCE", "-I", ROOT / "src", "-c", path,
                            "-o", f"{folder}/{path.stem}.o"], check=True)
            equal(names_in(f"{folder}/{path.stem}.o"), set(), f"probes of {path.name}")
    check(os.listdir(folder), "no source has a probe")


@test(each=MODES)
def bytes_bt_has_each_byte_and_each_call(t):
    script = Bpftrace(t, "bytes.bt")
    backend = t.backend()
    s = t.forward(backend)
    client, server = t.pair(s, backend)
    exchange(client, server, 1, 3 * MIB)
    client.close()
    server.close()
    s.stats_at_rest()
    totals, maps = s.stop(), script.end()
    calls = totals["calls"]
    how, reads, writes = ("pipe", "splice_in", "splice_out") if t.way["mode"] == "splice" else ("buffer", "recv", "send")
    equal(maps["@read_bytes"], {how: 6 * MIB}, "bytes read")
    equal(maps["@written_bytes"], {how: 6 * MIB}, "bytes written")
    nothing = {name: maps.get("@nothing", {}).get(name, 0) for name in totals["eagain"]}
    equal(nothing, totals["eagain"], "calls that moved nothing, by why")
    equal(calls_of(maps["@written"]), {how: calls[writes]["calls"] - nothing["sink_full"]}, "writes")
    least, most = reads_that_moved(t.way["mode"], calls[reads]["calls"], nothing["source_empty"])
    got = calls_of(maps["@read"])
    equal(list(got), [how], "kinds of reads")
    check(least <= got[how] <= most, f"{got} reads, should be {least} to {most}")


def reads_that_moved(mode, calls, empty):
    """Return: how many of so many @calls, at least and at most, of which some found the source @empty."""
    fins = 2  # a read that says so moves nothing either
    return {"splice": (calls - fins - empty, calls - fins - empty),
            "copy": (calls - fins - empty, calls - fins),  # some of the empty are poll(2)'s
            "uring": (calls, calls)}[mode]  # it counts what has come alone


@test(each=[{"mode": m} for m in ("auto",) + EACH_MODE[2:]])
def waits_bt_has_the_time_that_a_sink_did_not_read(t):
    script = Bpftrace(t, "waits.bt")
    backend = t.backend(options=[(socket.SOL_SOCKET, socket.SO_RCVBUF, 16 * KIB)])
    s = t.forward(backend)
    client, server = t.pair(s, backend)
    size = send_until_full(client, 1)
    time.sleep(0.4)
    receive(server, 1, size)
    client.close()
    server.close()
    s.stats_at_rest()
    s.stop()
    maps = script.end()
    equal(set(maps["@waited_us"]), {"up"}, "directions that waited")
    equal(calls_of(maps["@waited_us"]), maps["@begun"], "waits that ended, and that began")
    longest = max(bucket["min"] for bucket in maps["@waited_us"]["up"])
    check(2**18 <= longest < 10 * 2**20, f"longest wait of {longest} us or more, slept for 400000")
    check("@since" not in maps, "waits that are over are printed")


@test()
def fallbacks_bt_says_who_and_why(t):
    script = Bpftrace(t, "fallbacks.bt")
    backend = t.backend()
    listen = ["127.0.0.1:0"] + ["[::1]:0"] * has_ipv6()
    s = t.sluice(*(word for where in listen for word in (where, "127.0.0.1:%d" % backend.addr[1])))
    wanted = {}
    for where in s.addrs:
        with connect(where) as client, backend.accept() as server:
            server.setblocking(False)
            client.send(b"!", socket.MSG_OOB)
            check(proc.wait_for(lambda: is_urgent(server)), "the urgent byte did not arrive")
            wanted[f"{where[0]},{client.getsockname()[1]},up,urgent"] = 1
    s.stats_at_rest()
    s.stop()
    equal(script.end().get("@fallbacks"), wanted, "fallbacks")


def is_urgent(s):
    try:
        return s.recv(1, socket.MSG_OOB) == b"!"
    except OSError:  # it is not there yet
        return False


if __name__ == "__main__":
    run()
