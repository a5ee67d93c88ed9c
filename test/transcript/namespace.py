# SPDX-License-Identifier: MIT
"""A network of one's own: nothing in it but a loopback device, and names that the test makes up."""
import os
import subprocess
import sys

from kit import Skip
from kit.netns import netns

_INSIDE = "SLUICE_TEST_NAMESPACE"
_NETWORK, _BOTH = netns.unshared(network=True), netns.unshared(network=True, mounts=True)


def enter():
    """Runs the whole program again in new namespaces; where that is not allowed, every need() skips."""
    if os.environ.get(_INSIDE) or os.geteuid() != 0:
        return
    why = netns.refused(_BOTH)
    words = _BOTH if not why else _NETWORK
    os.environ[_INSIDE] = "all" if not why else "no mounts: " + why
    if why and (no_network := netns.refused(_NETWORK)):
        os.environ[_INSIDE] = "nothing: " + no_network
        return
    os.execvp(words[0], [*words, sys.executable, "-B", *sys.argv])


def need(t, hosts=""):
    """@hosts: lines of /etc/hosts; they are there for this test."""
    has, _, why = os.environ.get(_INSIDE, "nothing: only root can make network namespaces").partition(": ")
    if has == "nothing":
        raise Skip(why)
    if hosts and has != "all":
        raise Skip(f"no /etc/hosts of its own: {why}")
    netns.ip("link", "set", "lo", "up")
    if hosts:
        _do("mount", "--bind", t.file("127.0.0.1 localhost\n" + hosts, "hosts"), "/etc/hosts")
        t.later(_do, "umount", "/etc/hosts")


def ports_to_connect_from(first, last):
    with open("/proc/sys/net/ipv4/ip_local_port_range", "w") as f:
        f.write(f"{first} {last}\n")


def _do(*words):
    subprocess.run(words, check=True, stdin=subprocess.DEVNULL, timeout=10)
