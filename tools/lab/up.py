# SPDX-License-Identifier: MIT
"""Sets up the lab, and leaves it: the commands that measure use it then, and so may you:

    ip netns exec sluice-lab-client iperf3 -c 10.0.1.1 -P 8

Needs root, since it makes network namespaces, veth links and cgroups, and sets
net.ipv4.tcp_congestion_control (cubic) and net.ipv4.ip_forward (1) until `lab down`.
If the lab is up already it says so, and changes nothing.
"""
from place import WHY_ROOT, need_root, place_options, start_servers, use_build
from status import lines
from testbed import Testbed

HELP = "set up client and server namespaces, with veth links round this machine (root)"


def options(p):
    place_options(p)


def run(args):
    need_root(f"it {WHY_ROOT}")
    use_build(args)
    with Testbed(args.net, args.name) as testbed:
        if testbed.made["standing"]:
            print(f"{args.name} is up already:")
        else:
            start_servers(testbed)
            testbed.made["standing"] = True
            testbed.note()
        print("\n".join(lines(testbed)))
    return 0
