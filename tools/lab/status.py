# SPDX-License-Identifier: MIT
"""Says what stands of the lab, and what of it is gone. Needs no root."""
import os

from place import place_options, server_runs
from testbed import Testbed, cgroups

HELP = "say what stands"


def options(p):
    place_options(p)


def lines(testbed):
    """What has been made, and whether it is still there."""
    made = testbed.made

    def there(is_there):
        return "" if is_there else "   GONE"
    yield f"client      {testbed.client} in {testbed.client_ns}, beside {testbed.outer} here"
    yield f"server      {testbed.server} in {testbed.server_ns}, beside {testbed.inner} here"
    for ns in made["namespaces"]:
        yield f"namespace   {ns}{there(os.path.exists('/run/netns/' + ns))}"
    for link in made["links"]:
        yield f"link        {link}{there(os.path.exists('/sys/class/net/' + link))}"
    for name in made["groups"]:
        yield f"cgroup      {name}{there(os.path.exists(os.path.join(cgroups(), name)))}"
    for name, server in made["servers"].items():
        yield f"{name:11} process {server['pid']}, {testbed.server}:{server['port']}{there(server_runs(testbed, name))}"
    for path, old in made["sysctls"].items():
        with open(path) as f:
            yield f"sysctl      {path} is {f.read().strip()}, was {old}"


def run(args):
    testbed = Testbed(args.net, args.name)
    testbed.read()
    if not testbed.made:
        print(f"{args.name} is not up")
    else:
        print(f"{args.name} is up:" if testbed.made["standing"] else f"{args.name} is up for one command:")
        print("\n".join(lines(testbed)))
    return 0
