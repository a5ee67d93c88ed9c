# SPDX-License-Identifier: MIT
"""Network namespaces and veth pairs between them, by ip(8), nsenter(1) and unshare(1). Needs root.

Programs are started in them by nsenter, not by `ip netns exec` or `ip -n`: these change what is mounted, which costs time
and fails in a chroot, where "/" is no mount point.
"""
import glob
import os
import subprocess

FOLDER = "/run/netns/"
PROGRAMS = "ip", "nsenter"
WITHIN = 10  # seconds that one command may take


class Refused(Exception):
    """The kernel, or a program that asks it, refuses; the text says why."""


def _run(words):
    """Return: what it says on stderr, None if it succeeds."""
    p = subprocess.run([str(w) for w in words], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                       stderr=subprocess.PIPE, text=True, check=False, timeout=WITHIN)
    return (p.stderr.strip() or f"exit status {p.returncode}") if p.returncode else None


def inside(ns):
    """Words before a program that is to run in there; it keeps its process."""
    return ["nsenter", f"--net={FOLDER}{ns}", "--"]


def ip(*words, ns=None):
    """One command of ip(8), in namespace @ns, or here."""
    why = _run([*(inside(ns) if ns else []), "ip", *words])
    if why:
        raise Refused(f"ip {' '.join(map(str, words))}: {why}")


def exists(ns):
    return os.path.exists(FOLDER + ns)


def add(ns):
    """Makes a namespace, in which loopback is up."""
    ip("netns", "add", ns)
    ip("link", "set", "lo", "up", ns=ns)


def delete(ns):
    """Removes a namespace, if it is there, and with it the links that end in it."""
    _run(["ip", "netns", "del", ns])


def delete_link(link):
    """Removes a link of this namespace, if it is there."""
    _run(["ip", "link", "del", link])


def link(one, other):
    """A veth pair. Each end is (namespace, None for this one; device; address with prefix length)."""
    (ns, dev, _), (other_ns, other_dev, _) = one, other
    ip("link", "add", dev, *(["netns", ns] if ns else []), "type", "veth", "peer", "name", other_dev,
       *(["netns", other_ns] if other_ns else []))


def set_up(ns, dev, address):
    """An end of a pair gets its address."""
    ip("addr", "add", address, "dev", dev, ns=ns)
    ip("link", "set", dev, "up", ns=ns)


def join(one, other):
    """Makes a pair, and sets up both ends."""
    link(one, other)
    for end in one, other:
        set_up(*end)


def sweep(prefix):
    """Removes those named PREFIX_PID... whose process has ended: a run that was killed has left them."""
    for path in glob.glob(f"{FOLDER}{prefix}_*"):
        name = os.path.basename(path)
        pid = name[len(prefix) + 1:].split("_")[0]
        if pid.isdigit() and not os.path.exists(f"/proc/{pid}"):
            delete(name)


def unshared(network=False, mounts=False):
    """Words before a program that is to have a network, or mounts, of its own."""
    return ["unshare", *["--net"] * network, *["--mount"] * mounts]


def refused(words):
    """Why no program can be started with these words before it; None if it can."""
    why = _run([*words, "true"])
    if why and "root filesystem propagation" in why:
        return '"/" is no mount point, so mounts would not be private'
    return why
