# SPDX-License-Identifier: MIT
"""Says what stands of the lab, and what of it is gone. Needs no root."""
import os

from place import place_options, server_runs
from rig import Rig, cgroups

HELP = "say what stands"


def options(p):
    place_options(p)


def lines(rig):
    """What has been made, and whether it is still there."""
    made = rig.made

    def there(is_there):
        return "" if is_there else "   GONE"
    yield f"client      {rig.client} in {rig.client_ns}, beside {rig.outer} here"
    yield f"server      {rig.server} in {rig.server_ns}, beside {rig.inner} here"
    for ns in made["namespaces"]:
        yield f"namespace   {ns}{there(os.path.exists('/run/netns/' + ns))}"
    for link in made["links"]:
        yield f"link        {link}{there(os.path.exists('/sys/class/net/' + link))}"
    for name in made["groups"]:
        yield f"cgroup      {name}{there(os.path.exists(os.path.join(cgroups(), name)))}"
    for name, server in made["servers"].items():
        yield f"{name:11} process {server['pid']}, {rig.server}:{server['port']}{there(server_runs(rig, name))}"
    for path, old in made["sysctls"].items():
        with open(path) as f:
            yield f"sysctl      {path} is {f.read().strip()}, was {old}"


def run(args):
    rig = Rig(args.net, args.name)
    rig.read()
    if not rig.made:
        print(f"{args.name} is not up")
    else:
        print(f"{args.name} is up:" if rig.made["standing"] else f"{args.name} is up for one command:")
        print("\n".join(lines(rig)))
    return 0
