# SPDX-License-Identifier: MIT
"""Namespaces, processes, and how much cpu they took. Needs root.

    client namespace        this one             server namespace
    NET.1.2 ---- veth ---- NET.1.1   NET.0.1 ---- veth ---- NET.0.2

All that is made here has a name that begins with that of the testbed, and is written
down in /run/NAME before it is made; so it is taken down again, and settings of the
kernel are put back, whatever happens: by the next run, if this one is killed.
A testbed that is to stand stays until it is taken down.

Loopback is the same without any of it: no root, no namespaces, and a path of
another kind.
"""
import contextlib
import ctypes
import fcntl
import json
import os
import re
import resource
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

sys.path.append(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))

import netns  # noqa: E402

TICKS = os.sysconf("SC_CLK_TCK")
LISTEN_FROM, LISTEN_PORTS = 20000, 5000  # where forwarders listen: below the ports that clients get
# Ports that one sample leaves in TIME_WAIT are not there for the next: some ten thousand, and a connect takes
# milliseconds to find one that is free.
FEW_IN_TIME_WAIT = "net/ipv4/tcp_max_tw_buckets", "1000"


class Trouble(Exception):
    """Something that keeps one sample, or all, from being taken."""


def in_there(ns, *argv):
    """Runs this file in a namespace."""
    done = subprocess.run([*netns.inside(ns), sys.executable, __file__, *argv], capture_output=True, text=True,
                          check=False)
    if done.returncode:
        raise Trouble(f"in {ns}: {done.stderr.strip()}")


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


class Processes:
    """Processes that are started and ended together, none of which starts others."""

    def __init__(self):
        self.children = []

    def start(self, argv, cpu=None, **kwargs):
        def prepare():
            self._join()
            if cpu is not None:
                os.sched_setaffinity(0, {cpu})
        child = subprocess.Popen([str(a) for a in argv], preexec_fn=prepare, start_new_session=True, **kwargs)
        self.children.append(child)
        return child

    def _join(self):
        """In the child, before it is another program."""

    def pids(self):
        return [child.pid for child in self.children if child.poll() is None]

    def cpu(self):
        """Seconds of cpu of those that run."""
        used = 0
        for pid in self.pids():
            with open(f"/proc/{pid}/stat") as f:
                used += sum(map(int, f.read().rsplit(")", 1)[1].split()[11:13]))
        return used / TICKS

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


class Group(Processes):
    """The same in a cgroup: it counts the cpu time of all that were ever in it, and of what they start."""

    def __init__(self, name):
        super().__init__()
        self.path = os.path.join(cgroups(), name)
        os.makedirs(self.path, exist_ok=True)

    def _join(self):
        with open(os.path.join(self.path, "cgroup.procs"), "w") as f:
            f.write("0")

    def pids(self):
        with contextlib.suppress(FileNotFoundError):  # somebody has removed it, and so it is empty
            with open(os.path.join(self.path, "cgroup.procs")) as f:
                return [int(line) for line in f]
        return []

    def cpu(self):
        with open(os.path.join(self.path, "cpu.stat")) as f:
            return int(re.search(r"usage_usec (\d+)", f.read())[1]) / 1e6

    def close(self):
        for _ in range(100):
            self.end()  # each time: one that was just being started may have joined meanwhile
            try:
                os.rmdir(self.path)
                return
            except OSError:
                time.sleep(0.02)


class Testbed:
    """
    The namespaces, and what runs in them and between them.

    name       what all that is made is called after; at most 12 characters, since a link's name has 15
    made       what has been made, None if nothing; the same is in the file /run/NAME/made
    forwarder, clients, servers   the processes, each kind counted apart
    counts     whether cpu time of processes that have ended is counted too
    """
    counts = True

    def __init__(self, net="10.0", name="sluice-bench"):
        self.name, self.home = name, "/run/" + name
        self.made = self.held = self.folder = None
        self.port = LISTEN_FROM + os.getpid() % LISTEN_PORTS
        self._address(net)

    def _address(self, net):
        self.net = net
        self.client, self.outer, self.inner, self.server = (f"{net}.{n}" for n in ("1.2", "1.1", "0.1", "0.2"))
        self.client_ns, self.server_ns = self.name + "-client", self.name + "-server"
        self.client_link = self.name + "-c1"
        # Namespace, link here, link there, address here, address there.
        self.ends = ((self.client_ns, self.name + "-c", self.client_link, self.outer, self.client),
                     (self.server_ns, self.name + "-s", self.name + "-s1", self.inner, self.server))

    def __enter__(self):
        settle()
        self.hold()
        try:
            if self.made and not self.made["standing"]:
                self.unmake()  # of a run that was killed
            if not self.made:
                self.make()
            self._groups()
            self._scratch()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        try:
            if self.folder:
                self.clean()
                self._forget_scratch()
        finally:
            if self.made and not self.made["standing"]:
                self.unmake()
            self.release()

    def hold(self):
        """Keeps others away until release(), and reads what stands."""
        os.makedirs(self.home, exist_ok=True)
        self.held = os.open(self.home, os.O_RDONLY)
        try:
            fcntl.flock(self.held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.release()
            raise Trouble(f"{self.name} is in use by another run; wait until that has ended") from None
        self.read()

    def read(self):
        """Reads what has been made, which needs no root."""
        with contextlib.suppress(FileNotFoundError):
            with open(self.home + "/made") as f:
                self.made = json.load(f)
            self._address(self.made["net"])

    def release(self):
        if self.held is not None:
            os.close(self.held)
            self.held = None
            with contextlib.suppress(OSError):  # unless something stands
                os.rmdir(self.home)

    def note(self):
        """Writes down what is made."""
        with open(self.home + "/made.new", "w") as f:
            json.dump(self.made, f, indent=1)
        os.rename(self.home + "/made.new", self.home + "/made")

    def _scratch(self):
        """A folder for logs; one that a killed run has left in a testbed that stands is removed."""
        self._forget_scratch()
        self.made["folder"] = self.folder = scratch()
        self.note()

    def _forget_scratch(self):
        if self.made["folder"]:
            shutil.rmtree(self.made["folder"], ignore_errors=True)
            self.made["folder"] = None
            self.note()

    def _will_make(self, kind, what):
        self.made[kind].append(what)
        self.note()

    def make(self):
        """Sets up namespaces and links; unmake() is due even if this fails."""
        cgroups()  # where there are none, nothing is made
        for program, package in zip(netns.PROGRAMS, ("iproute2", "util-linux")):
            if not shutil.which(program):
                raise Trouble(f"{program} is not installed; try: apt install {package}")
        taken = [ns for ns, *_ in self.ends if netns.exists(ns)] + \
                [link for _, link, *_ in self.ends if os.path.exists("/sys/class/net/" + link)]
        if taken:
            raise Trouble(f"{taken[0]} is there already, and nobody wrote down that it was made here; remove it")
        if f" {self.net}." in subprocess.run(["ip", "-4", "addr"], capture_output=True, text=True, check=False).stdout:
            raise Trouble(f"{self.net}.* is in use on this machine; choose another with --net")
        self.made = {"net": self.net, "standing": False, "namespaces": [], "links": [], "groups": [], "sysctls": {},
                     "servers": {}, "folder": None}
        self.note()
        self.sysctl("net/ipv4/tcp_congestion_control", "cubic")  # inherited by namespaces that are made after it
        self.sysctl("net/ipv4/ip_forward", "1")  # for no forwarder at all
        try:
            for end in self.ends:
                self._make_end(*end)
        except netns.Refused as e:
            raise Trouble(e) from None
        for kind in ("forwarder", "clients", "servers"):
            self._will_make("groups", f"{self.name}-{kind}")

    def _make_end(self, ns, here, there, near, far):
        self._will_make("namespaces", ns)
        netns.add(ns)
        self._will_make("links", here)
        netns.join((None, here, f"{near}/24"), (ns, there, f"{far}/24"))
        netns.ip("route", "add", "default", "via", near, ns=ns)

    def _groups(self):
        self.forwarder, self.clients, self.servers = map(Group, self.made["groups"])

    def sysctl(self, key, value):
        path = "/proc/sys/" + key
        with open(path) as f:
            old = f.read().strip()
        if old != value:
            self.made["sysctls"].setdefault(path, old)
            self.note()
            with open(path, "w") as f:
                f.write(value)

    def few_in_time_wait(self):
        """Here and in both namespaces, until all is taken down. Who closes beside us then has no TIME_WAIT either."""
        key, value = FEW_IN_TIME_WAIT
        self.sysctl(key, value)
        for ns in (self.client_ns, self.server_ns):
            in_there(ns, "/proc/sys/" + key, value)

    def unmake(self):
        """Takes down what was made, no more, and puts settings back."""
        self._forget_scratch()
        for name in self.made["groups"]:
            Group(name).close()
        for ns in self.made["namespaces"]:
            netns.delete(ns)
        for link in self.made["links"]:
            netns.delete_link(link)
        for path, old in self.made["sysctls"].items():
            with open(path, "w") as f:
                f.write(old)
        os.unlink(self.home + "/made")
        self.made = None

    def inside(self, group, argv, cpu=None, **kwargs):
        """Starts a program of the load in the namespace of its group."""
        ns = self.client_ns if group is self.clients else self.server_ns
        return group.start([*netns.inside(ns), *argv], cpu, **kwargs)

    def clean(self):
        """Ends the forwarder and the clients: what one sample leaves behind."""
        self.forwarder.end()
        self.clients.end()

    def forget_metrics(self):
        """What TCP has learnt of these addresses from the contestant before."""
        for ns in None, self.client_ns, self.server_ns:
            with contextlib.suppress(netns.Refused):
                netns.ip("tcp_metrics", "flush", ns=ns)

    def _next_port(self):
        while True:
            self.port = LISTEN_FROM + (self.port - LISTEN_FROM + 1) % LISTEN_PORTS
            if not self._listens(self.port):
                return

    def start(self, contestant, target_port, cpu, user=None, hops=1):
        """Starts so many forwarders in a row, and waits until they listen. Return: where clients find the first."""
        self.forget_metrics()
        if contestant.direct:
            return f"{self.server}:{target_port}"
        target = self.server, target_port
        for _ in range(hops):
            self._start_one(contestant, target, cpu, user)
            target = self.outer, self.port
        time.sleep(0.1)
        return f"{self.outer}:{self.port}"

    def _start_one(self, contestant, target, cpu, user):
        self._next_port()
        argv = contestant.argv(self, target, 1 if cpu is not None else os.cpu_count())
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

    @staticmethod
    def _listens(port):
        with open("/proc/net/tcp") as f:
            return any(line.split()[1].endswith(f":{port:04X}") and line.split()[3] == "0A" for line in f)

    def mtu_frames(self, on):
        """Has the client send frames of the size of the MTU, as a network card receives them, not of 64 KiB."""
        in_there(self.client_ns, "tso", self.client_link, "0" if on else "1")


class Loopback(Testbed):
    """Everybody at 127.0.0.1; nothing is made, so anybody may."""
    counts = False

    def __init__(self):
        super().__init__()
        self.client = self.outer = self.inner = self.server = "127.0.0.1"

    def __enter__(self):
        settle()
        self.forwarder, self.clients, self.servers = Processes(), Processes(), Processes()
        self.folder = scratch()
        return self

    def __exit__(self, *_):
        self.clean()
        self.servers.end()
        shutil.rmtree(self.folder, ignore_errors=True)

    def inside(self, group, argv, cpu=None, **kwargs):
        return group.start(argv, cpu, **kwargs)

    def forget_metrics(self):
        pass

    def mtu_frames(self, on):
        pass


def settle():
    """As many descriptors as there may be, and an orderly end by signals."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    for sig in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(sig, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt()))


def scratch():
    """A folder for logs, which ordinary users write too."""
    folder = tempfile.mkdtemp(prefix="sluice-bench-")
    os.chmod(folder, 0o777)
    return folder


def set_tso(link, on):
    """What `ethtool -K LINK tso on|off` does, without that program."""
    value = ctypes.create_string_buffer(struct.pack("II", 0x1F, on))  # ETHTOOL_STSO
    with socket.socket() as s:
        fcntl.ioctl(s, 0x8946, struct.pack("16sP8x", link.encode(), ctypes.addressof(value)))  # SIOCETHTOOL


def put(path, value):
    with open(path, "w") as f:
        f.write(value)


if __name__ == "__main__":  # in another namespace
    if sys.argv[1] == "tso":
        set_tso(sys.argv[2], int(sys.argv[3]))
    else:
        put(*sys.argv[1:])
