# SPDX-License-Identifier: MIT
"""What is done to each contestant, and what is read off it.

A sample is a dict of figures; FIGURES says how they are shown, and whether
more or less of one is better. Time of cpu is that of the forwarder's
processes, from their cgroup, over the whole of a client's run, divided by what
the client counted in it.
"""
import json
import os
import re
import shutil
import subprocess
import time

import contestants
from testbed import Trouble, cpu_total

GIB, MIB, KIB = 1 << 30, 1 << 20, 1 << 10
NOBODY = 65534
PORT = 9000

# Name: what it is, how it is written, "+" if more is better, "-" if less, " " if neither.
FIGURES = {
    "gbit": ("Gbit/s", ".1f", "+"),
    "cpu_gib": ("cpu s/GiB", ".3f", "-"),
    "system_gib": ("of the machine, s/GiB", ".3f", "-"),
    "calls_mib": ("calls/MiB", ".1f", "-"),
    "tps": ("a second", ".0f", "+"),
    "p50": ("p50 us", ".0f", "-"),
    "p99": ("p99 us", ".0f", "-"),
    "p999": ("p99.9 us", ".0f", "-"),
    "cpu_each": ("cpu us each", ".1f", "-"),
    "stalls": ("> 35 ms", ".0f", " "),
    "errors": ("runs that ended wrong", ".0f", " "),
    "pss_each": ("own memory B/conn", ".0f", "-"),
    "kernel_each": ("kernel KiB/conn", ".1f", "-"),
    "fds_each": ("descriptors/conn", ".2f", "-"),
    "idle_cpu": ("cpu ms/s at rest", ".1f", "-"),
    "held_gbit": ("beside them, Gbit/s", ".1f", "+"),
    "held_ratio": ("beside/alone", ".2f", "+"),
    "root_gbit": ("as root, Gbit/s", ".1f", "+"),
    "user_ratio": ("user/root", ".2f", "+"),
    "others": ("cpus of others", ".2f", " "),
}


class Bench:
    """A testbed with a server in it, and how long things take."""

    def __init__(self, testbed, seconds):
        self.testbed, self.seconds = testbed, seconds
        self.cpu = None  # which one the forwarder is pinned to, if to one
        self.server = None
        self.port = PORT  # of the server

    def serve(self, port=PORT):
        """Starts the server, at a free port if @port is 0."""
        self.server = self._load(self.testbed.servers, "serve", f"{self.testbed.server}:{port}", "--timeout", 86400)
        line = self.server.stdout.readline()
        if not line.startswith("listening"):
            raise Trouble("the server of the load does not start")
        self.port = int(line.rsplit(":", 1)[1])

    def _load(self, group, *args):
        cpu = 0 if self.cpu is not None else None
        return self.testbed.inside(group, [contestants.BUILT.load, *args], cpu, stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def client(self, *args):
        return self._load(self.testbed.clients, *args)

    def start(self, contestant, user=None, hops=1):
        return self.testbed.start(contestant, self.port, self.cpu, user, hops)


def result(client, what):
    """What a client counted. Some forwarders lose the answer that follows a half-close: that is counted too."""
    out, _ = client.communicate()
    got = json.loads(out) if out.strip() else {}
    if not got.get("bytes", got.get("transactions")):
        raise Trouble(f"{what}: nothing went through")
    return got


def load_cpu(testbed):
    return testbed.clients.cpu() + testbed.servers.cpu()


def measured(bench, run):
    """Return: what run() returned, and the cpu seconds of the forwarder, the machine, and all but bench's processes."""
    testbed = bench.testbed
    own, load, all_, since = testbed.forwarder.cpu(), load_cpu(testbed), cpu_total(), time.monotonic()
    got = run()
    own, load, all_ = testbed.forwarder.cpu() - own, load_cpu(testbed) - load, cpu_total() - all_
    return got, own, all_, max(0, (all_ - own - load) / (time.monotonic() - since))


def calls_of(pids, run, folder):
    """System calls made by processes while run() runs; None where strace is not installed."""
    if not shutil.which("strace"):
        return None
    path = folder + "/strace"
    argv = ["strace", "-c", "-f", "-o", path] + [a for pid in pids for a in ("-p", str(pid))]
    with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as tracer:
        time.sleep(0.5)
        run()
        tracer.terminate()
    with open(path) as f:
        total = re.search(r"^\s*100\.00\s+\S+\s+\d+\s+(\d+)", f.read(), re.M)
    return int(total[1]) if total else None


class Bulk:
    """STREAMS streams, as fast as they go."""

    def __init__(self, streams, reverse=False, mtu=False):
        self.args = ["-P", streams] + (["--reverse"] if reverse else [])
        self.mtu = mtu
        self.pinned = False
        self.about = f"{streams} stream{'s' if streams > 1 else ''}, {'down' if reverse else 'up'}" + (
            ", frames of the MTU's size" if mtu else "")

    def _run(self, bench, where, seconds):
        return result(bench.client("bulk", where, "--seconds", seconds, *self.args), "bulk")

    def sample(self, bench, contestant):
        where = bench.start(contestant)
        self._run(bench, where, 0.3)
        got, own, all_, others = measured(bench, lambda: self._run(bench, where, bench.seconds))
        figures = {"gbit": got["gbit_s"], "system_gib": all_ / got["bytes"] * GIB, "errors": got["errors"],
                   "others": others}
        if not contestant.direct:
            figures["cpu_gib"] = own / got["bytes"] * GIB
        return figures

    def calls(self, bench, contestant):
        """A run of its own, since to count calls slows them down."""
        if contestant.direct:
            return {}
        where = bench.start(contestant)
        moved = []
        calls = calls_of(bench.testbed.forwarder.pids(), lambda: moved.append(self._run(bench, where, 1)["bytes"]),
                         bench.testbed.folder)
        return {"calls_mib": calls / (moved[0] / MIB)} if calls else {}


class Exchange:
    """Requests and answers: rr on CONNECTIONS that stay, DEPTH under way on each, or crr, each on a
    new one. Through HOPS forwarders in a row on one cpu, so that they and not the load are what
    there is to wait for: one alone that gets cheaper sleeps more often, which costs those who wake it.
    """

    def __init__(self, kind, connections, size=32, pinned=True, depth=1, hops=1):
        self.kind, self.pinned, self.hops = kind, pinned, hops
        self.many = kind == "crr"
        self.args = ["-N" if kind == "rr" else "-K", connections, "--size", size]
        self.args += ["--pipeline", depth] if depth > 1 else []
        what = "request and answer" if kind == "rr" else "connect, request, answer, close"
        self.about = f"{what}, {size} bytes, {connections} at a time" + (
            f", {depth} under way on each" if depth > 1 else "") + (
            "" if pinned else ", not pinned") + (f", {hops} forwarders in a row" if hops > 1 else "")

    def _run(self, bench, where, seconds):
        return result(bench.client(self.kind, where, "--seconds", seconds, *self.args), self.kind)

    def sample(self, bench, contestant):
        where = bench.start(contestant, hops=self.hops)
        self._run(bench, where, 0.3)
        got, own, _, others = measured(bench, lambda: self._run(bench, where, bench.seconds))
        figures = {"tps": got["tps"], "p50": got["p50_us"], "p99": got["p99_us"], "p999": got["p999_us"],
                   "stalls": got["over_35ms"], "errors": got["errors"], "others": others}
        if not contestant.direct:
            figures["cpu_each"] = own / got["transactions"] * 1e6
        return figures


class Idle:
    """CONNECTIONS that have exchanged 1 KiB each way, and rest."""
    pinned = False
    many = True  # so that their ports must not stay in TIME_WAIT

    def __init__(self, connections):
        self.n = connections
        self.about = f"{connections} idle connections"

    @staticmethod
    def _kernel():
        with open("/proc/meminfo") as f:
            fields = dict(line.split(":") for line in f)
        return sum(int(fields[k].split()[0]) for k in ("Slab", "KernelStack", "PageTables"))

    def _look(self, bench):
        """Private memory in bytes, descriptors, and kernel memory in KiB."""
        pss = fds = 0
        for pid in bench.testbed.forwarder.pids():
            with open(f"/proc/{pid}/smaps_rollup") as f:
                pss += int(re.search(r"^Pss:\s+(\d+)", f.read(), re.M)[1]) * KIB
            fds += len(os.listdir(f"/proc/{pid}/fd"))
        return pss, fds, self._kernel()

    def sample(self, bench, contestant):
        where = bench.start(contestant)
        before = self._look(bench)
        client = bench.client("hold", where, "-N", self.n, "--size", KIB, "--timeout", 30)
        if not client.stdout.readline():
            raise Trouble(f"{self.n} connections did not come up")
        time.sleep(1)
        after = self._look(bench)
        cpu, since = bench.testbed.forwarder.cpu(), time.monotonic()
        time.sleep(1)
        rest = (bench.testbed.forwarder.cpu() - cpu) / (time.monotonic() - since)
        client.stdin.close()
        client.wait()
        pss, fds, kernel = (a - b for a, b in zip(after, before))
        figures = {"kernel_each": kernel / self.n}
        if not contestant.direct:
            figures |= {"pss_each": pss / self.n, "fds_each": fds / self.n, "idle_cpu": rest * 1000}
        return figures


class Mixed:
    """STREAMS of bulk beside CONNECTIONS with requests."""
    pinned = True

    def __init__(self, streams, connections):
        self.parts = Bulk(streams), Exchange("rr", connections)
        self.about = f"{streams} bulk beside {connections} connections with requests of 32 bytes"

    def sample(self, bench, contestant):
        where = bench.start(contestant)
        bulk, rr = self.parts

        def run():
            other = bench.client("bulk", where, "--seconds", bench.seconds + 0.5, *bulk.args)
            time.sleep(0.25)
            got = rr._run(bench, where, bench.seconds)
            return result(other, "bulk"), got
        (moved, got), own, _, others = measured(bench, run)
        figures = {"gbit": moved["gbit_s"], "tps": got["tps"], "p50": got["p50_us"], "p99": got["p99_us"],
                   "stalls": got["over_35ms"], "others": others}
        if not contestant.direct:
            figures["cpu_gib"] = own / moved["bytes"] * GIB
        return figures


def held(bench, where, *args):
    """Connections that stay. Return: the client that has them; clean() ends what let_go() does not."""
    client = bench.client("hold", where, "--timeout", 60, *args)
    if not client.stdout.readline():
        raise Trouble("not all connections to hold came up")
    return client


def let_go(client):
    client.stdin.close()
    client.wait()


class Beside:
    """8 streams alone, and beside HELD connections that exchanged SIZE bytes and rest."""
    pinned = False
    many = True

    def __init__(self, number, size, user=None):
        self.args, self.user = ["-N", number, "--size", size], user
        self.about = f"8 streams, alone and beside {number} connections that moved {size // KIB} KiB each way" + (
            f", as user {user}" if user else "")

    def sample(self, bench, contestant):
        if contestant.direct:
            raise Trouble("there is no forwarder to compare")
        bulk = Bulk(8)
        where = bench.start(contestant, self.user)
        alone, own, _, others = measured(bench, lambda: bulk._run(bench, where, bench.seconds))
        holder = held(bench, where, *self.args)
        beside = bulk._run(bench, where, bench.seconds)
        let_go(holder)
        return {"gbit": alone["gbit_s"], "cpu_gib": own / alone["bytes"] * GIB, "held_gbit": beside["gbit_s"],
                "held_ratio": beside["gbit_s"] / alone["gbit_s"], "others": others}


class UserAndRoot:
    """STREAMS as an ordinary user, whose pipes the kernel counts, and as root; beside STALLED readers, if any."""
    pinned = False
    many = True

    def __init__(self, streams, stalled=0):
        self.streams, self.stalled = streams, stalled
        self.about = f"{streams} streams as user {NOBODY} and as root" + (
            f", beside {stalled} readers that do not read" if stalled else "")

    def _as(self, bench, contestant, user):
        bulk = Bulk(self.streams)
        where = bench.start(contestant, user)
        holder = held(bench, where, "-N", self.stalled, "--size", 512 * KIB, "--unread") if self.stalled else None
        if holder:
            time.sleep(1)  # until what they will not read is on its way
        got, own, _, others = measured(bench, lambda: bulk._run(bench, where, bench.seconds))
        if holder:
            let_go(holder)
        bench.testbed.forwarder.end()
        return got, own, others

    def sample(self, bench, contestant):
        if contestant.direct:
            raise Trouble("no forwarder has no user")
        root, _, _ = self._as(bench, contestant, None)
        user, own, others = self._as(bench, contestant, NOBODY)
        return {"gbit": user["gbit_s"], "cpu_gib": own / user["bytes"] * GIB, "root_gbit": root["gbit_s"],
                "user_ratio": user["gbit_s"] / root["gbit_s"], "errors": user["errors"], "others": others}


WORKLOADS = {
    "bulk-1": Bulk(1), "bulk-8": Bulk(8), "bulk-64": Bulk(64),
    "reverse-1": Bulk(1, True), "reverse-8": Bulk(8, True), "reverse-64": Bulk(64, True),
    "mtu-8": Bulk(8, mtu=True),
    "rr-1": Exchange("rr", 1), "rr-16": Exchange("rr", 16), "rr-64": Exchange("rr", 64), "rr-512": Exchange("rr", 512),
    "rr-1-piped": Exchange("rr", 1, depth=16), "rr-64-piped": Exchange("rr", 64, depth=16),
    "rr-512-piped": Exchange("rr", 512, depth=16),
    "rr-100": Exchange("rr", 100), "fair-1": Mixed(1, 100), "fair-8": Mixed(8, 100),
    "rr-1-free": Exchange("rr", 1, pinned=False), "rr-16-free": Exchange("rr", 16, pinned=False),
    "rr-1K": Exchange("rr", 8, 1 << 10), "rr-4K": Exchange("rr", 8, 4 << 10), "rr-16K": Exchange("rr", 8, 16 << 10),
    "rr-64K": Exchange("rr", 8, 64 << 10),
    "rr-256K": Exchange("rr", 8, 256 << 10), "rr-1M": Exchange("rr", 8, 1 << 20),
    "row-32": Exchange("rr", 16, hops=3), "row-1K": Exchange("rr", 16, 1 << 10, hops=3),
    "row-4K": Exchange("rr", 16, 4 << 10, hops=3), "row-16K": Exchange("rr", 16, 16 << 10, hops=3),
    "row-64K": Exchange("rr", 16, 64 << 10, hops=3),
    "crr-16": Exchange("crr", 16),
    "idle-4000": Idle(4000), "mixed": Mixed(4, 16),
    "ordinary-user": Beside(600, 64 * KIB, NOBODY), "beside-9000": Beside(9000, KIB),
    "user-2000": UserAndRoot(2000), "user-stalled": UserAndRoot(8, 2000),
}
