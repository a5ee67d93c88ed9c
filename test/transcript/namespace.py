# SPDX-License-Identifier: MIT
"""A network of one's own: nothing in it but a loopback device, and names that the test makes up."""
import os
import subprocess
import sys

from kit import Skip

_INSIDE = "SLUICE_TEST_NAMESPACE"


def enter():
    """Runs the whole program again in new namespaces; where that is not allowed, every need() skips."""
    if os.environ.get(_INSIDE) or os.geteuid() != 0:
        return
    os.environ[_INSIDE] = "no"
    if subprocess.run(["unshare", "-n", "-m", "true"], stderr=subprocess.DEVNULL, check=False).returncode == 0:
        os.environ[_INSIDE] = "yes"
        os.execvp("unshare", ["unshare", "-n", "-m", sys.executable, "-B"] + sys.argv)


def need(t, hosts=""):
    """@hosts: lines of /etc/hosts; they are there for this test."""
    if os.environ.get(_INSIDE) != "yes":
        raise Skip("only root can make network namespaces")
    _do("ip", "link", "set", "lo", "up")
    if hosts:
        _do("mount", "--bind", t.file("127.0.0.1 localhost\n" + hosts, "hosts"), "/etc/hosts")
        t.later(_do, "umount", "/etc/hosts")


def ports_to_connect_from(first, last):
    with open("/proc/sys/net/ipv4/ip_local_port_range", "w") as f:
        f.write(f"{first} {last}\n")


def _do(*words):
    subprocess.run(words, check=True, stdin=subprocess.DEVNULL, timeout=10)
