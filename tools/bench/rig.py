# SPDX-License-Identifier: MIT
"""Namespaces, processes, and how much cpu they took. Needs root.

    client namespace        this one             server namespace
    NET.1.2 ---- veth ---- NET.1.1   NET.0.1 ---- veth ---- NET.0.2

All that is made here has a name that begins with sluice-, and is taken down
again, and settings of the kernel are put back, whatever happens.
"""
import contextlib
import ctypes
import fcntl
import os
import re
import resource
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

TICKS = os.sysconf("SC_CLK_TCK")
CLIENT, SERVER = "sluice-client", "sluice-server"
LINKS = {CLIENT: ("sluice-c", "sluice-c1"), SERVER: ("sluice-s", "sluice-s1")}


class Trouble(Exception):
    """Something that keeps one sample, or all, from being taken."""


def sh(*argv, check=True):
    done = subprocess.run([str(a) for a in argv], capture_output=True, text=True, check=False)
    if check and done.returncode:
        raise Trouble(f"{' '.join(map(str, argv))}: {done.stderr.strip()}")
    return done.stdout


def cpu_total():
    """Seconds of cpu that the whole machine has used, interrupts included."""
    with open("/proc/stat") as f:
        n = [int(x) for x in f.readline().split()[1:9]]
    return (n[0] + n[1] + n[2] + n[5] + n[6]) / TICKS


def cgroups():
    """Where groups of processes are made."""
    with open("/proc/mounts") as f:
        for line in f:
            if line.split()[2] == "cgroup2":
                return line.split()[1]
    raise Trouble("no cgroup2 file system is mounted: it is what counts the cpu time")


class Group:
    """Processes whose cpu time is counted together, children that have ended included: a cgroup."""

    def __init__(self, name):
        self.path = os.path.join(cgroups(), name)
        self.children = []
        os.makedirs(self.path, exist_ok=True)

    def start(self, argv, cpu=None, **kwargs):
        def prepare():
            with open(os.path.join(self.path, "cgroup.procs"), "w") as f:
                f.write("0")
            if cpu is not None:
                os.sched_setaffinity(0, {cpu})
        child = subprocess.Popen([str(a) for a in argv], preexec_fn=prepare, start_new_session=True, **kwargs)
        self.children.append(child)
        return child

    def pids(self):
        with open(os.path.join(self.path, "cgroup.procs")) as f:
            return [int(line) for line in f]

    def cpu(self):
        with open(os.path.join(self.path, "cpu.stat")) as f:
            return int(re.search(r"usage_usec (\d+)", f.read())[1]) / 1e6

    def end(self):
        """Ends all of them, those that fork too."""
        for sig, patience in ((signal.SIGTERM, 2), (signal.SIGKILL, 5)):
            until = time.monotonic() + patience
            told = set()
            while (pids := self.pids()) and time.monotonic() < until:
                for pid in set(pids) - told:
                    told.add(pid)
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, sig)
                for child in self.children:
                    child.poll()
                time.sleep(0.005)
        self.children = []

    def close(self):
        self.end()
        for _ in range(100):
            try:
                os.rmdir(self.path)
                return
            except OSError:
                time.sleep(0.02)


class Rig:
    """The namespaces, and what runs in them and between them."""

    def __init__(self, net):
        self.net = net
        self.client, self.outer, self.inner, self.server = (f"{net}.{n}" for n in ("1.2", "1.1", "0.1", "0.2"))
        self.sysctls = {}
        self.port = 20000

    def __enter__(self):
        resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
        for sig in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(sig, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt()))
        self._remove()
        if f" {self.net}." in sh("ip", "-4", "addr"):
            raise Trouble(f"{self.net}.* is in use on this machine; choose another with --net")
        self.folder = tempfile.mkdtemp(prefix="sluice-bench-")
        os.chmod(self.folder, 0o777)  # ordinary users write their logs here
        self.forwarder, self.load = Group("sluice-bench-forwarder"), Group("sluice-bench-load")
        try:
            self._make()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _make(self):
        self.sysctl("net/ipv4/tcp_congestion_control", "cubic")  # inherited by namespaces that are made after it
        self.sysctl("net/ipv4/ip_forward", "1")  # for no forwarder at all
        for name, near, far in ((CLIENT, self.outer, self.client), (SERVER, self.inner, self.server)):
            here, there = LINKS[name]
            sh("ip", "netns", "add", name)
            sh("ip", "link", "add", here, "type", "veth", "peer", "name", there, "netns", name)
            sh("ip", "addr", "add", f"{near}/24", "dev", here)
            sh("ip", "link", "set", here, "up")
            sh("ip", "-n", name, "addr", "add", f"{far}/24", "dev", there)
            for link in ("lo", there):
                sh("ip", "-n", name, "link", "set", link, "up")
            sh("ip", "-n", name, "route", "add", "default", "via", near)

    def sysctl(self, key, value):
        path = "/proc/sys/" + key
        with open(path) as f:
            old = f.read().strip()
        if old != value:
            self.sysctls.setdefault(path, old)
            with open(path, "w") as f:
                f.write(value)

    def __exit__(self, *_):
        for group in (self.forwarder, self.load):
            group.close()
        self._remove()
        for path, old in self.sysctls.items():
            with open(path, "w") as f:
                f.write(old)
        sh("rm", "-r", self.folder, check=False)

    @staticmethod
    def _remove():
        for name, (link, _) in LINKS.items():
            sh("ip", "netns", "del", name, check=False)
            sh("ip", "link", "del", link, check=False)

    def inside(self, name, argv, cpu=None, **kwargs):
        """Starts a program of the load in a namespace."""
        return self.load.start(["ip", "netns", "exec", name, *argv], cpu, **kwargs)

    def forget_metrics(self):
        """What TCP has learnt of these addresses from the contestant before."""
        for where in ([], ["-n", CLIENT], ["-n", SERVER]):
            sh("ip", *where, "tcp_metrics", "flush", check=False)

    def start(self, contestant, target_port, cpu, user=None):
        """Starts a forwarder, and waits until it listens. Return: where clients find it."""
        self.forget_metrics()
        if contestant.direct:
            return f"{self.server}:{target_port}"
        self.port = 20000 + (self.port - 19999) % 5000
        argv = contestant.argv(self, target_port, 1 if cpu is not None else os.cpu_count())
        if user:
            argv = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", *argv]
        with open(self.folder + "/log", "wb") as log:
            child = self.forwarder.start(argv, cpu, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/")
        until = time.monotonic() + 5
        while not self._listens(self.port):
            if child.poll() is not None or time.monotonic() > until:
                with open(self.folder + "/log", errors="replace") as log:
                    raise Trouble(f"{contestant.name} does not listen: {log.read().strip()[-300:]}")
            time.sleep(0.01)
        time.sleep(0.1)
        return f"{self.outer}:{self.port}"

    @staticmethod
    def _listens(port):
        with open("/proc/net/tcp") as f:
            return any(line.split()[1].endswith(f":{port:04X}") and line.split()[3] == "0A" for line in f)

    def mtu_frames(self, on):
        """Has the client send frames of the size of the MTU, as a network card receives them, not of 64 KiB."""
        sh("ip", "netns", "exec", CLIENT, "python3", __file__, LINKS[CLIENT][1], "0" if on else "1")


def set_tso(link, on):
    """What `ethtool -K LINK tso on|off` does, without that program."""
    value = ctypes.create_string_buffer(struct.pack("II", 0x1F, on))  # ETHTOOL_STSO
    with socket.socket() as s:
        fcntl.ioctl(s, 0x8946, struct.pack("16sP8x", link.encode(), ctypes.addressof(value)))  # SIOCETHTOOL


if __name__ == "__main__":
    set_tso(sys.argv[1], int(sys.argv[2]))
