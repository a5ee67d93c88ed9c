# SPDX-License-Identifier: MIT
"""Takes down what `lab up` made, and nothing else: processes, namespaces, links, cgroups; puts the sysctls back.

Needs root. If the lab is not up it says so, and does nothing.
"""
import os

from place import need_root, place_options
from rig import Rig

HELP = "take down what up made, and put every sysctl back (root)"


def options(p):
    place_options(p)


def run(args):
    need_root("it removes network namespaces and links, and sets net.ipv4.*")
    rig = Rig(args.net, args.name)
    if not os.path.exists(rig.home):
        print(f"{args.name} is not up")
        return 0
    rig.hold()
    try:
        made = rig.made
        if not made:
            print(f"{args.name} is not up")
        else:
            rig.unmake()
            print(f"{args.name} is down: " + ", ".join(made["namespaces"] + made["links"] + list(made["servers"])
                                                       + [f"{k} = {v}" for k, v in made["sysctls"].items()]))
    finally:
        rig.release()
    return 0
