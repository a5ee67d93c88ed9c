# SPDX-License-Identifier: MIT
"""Takes down what `lab up` made, and nothing else: processes, namespaces, links, cgroups; puts the sysctls back.

Needs root. If the lab is not up it says so, and does nothing.
"""
import os

from place import need_root, place_options
from testbed import Testbed

HELP = "take down what up made, and put every sysctl back (root)"


def options(p):
    place_options(p)


def run(args):
    need_root("it removes network namespaces and links, and sets net.ipv4.*")
    testbed = Testbed(args.net, args.name)
    if not os.path.exists(testbed.home):
        print(f"{args.name} is not up")
        return 0
    testbed.hold()
    try:
        made = testbed.made
        if not made:
            print(f"{args.name} is not up")
        else:
            testbed.unmake()
            print(f"{args.name} is down: " + ", ".join(made["namespaces"] + made["links"] + list(made["servers"])
                                                       + [f"{k} = {v}" for k, v in made["sysctls"].items()]))
    finally:
        testbed.release()
    return 0
