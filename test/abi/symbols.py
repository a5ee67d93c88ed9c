#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""symbols.py LIBSLUICE SLUICE_MAP SLUICE_H SOVERSION: the library exports what the
map and the header say, all of it, under the version SLUICE_SOVERSION, and nothing else."""
import re
import subprocess
import sys

library, map_file, header, soversion = sys.argv[1:]
nm = subprocess.run(["nm", "-D", "--defined-only", library], check=True,
                    capture_output=True, text=True).stdout
exported = {line.split()[2] for line in nm.splitlines()}
with open(map_file) as f:
    version, body = re.match(r"\s*(\w+)\s*{\s*global:(.*?)local:", f.read(),
                             re.S).groups()
mapped = set(re.findall(r"(\w+);", body))
with open(header) as f:
    declared = set(re.findall(r"^[a-z].*?\b(sluice_\w+)\(", f.read(), re.M))

wrong = []
if version != f"SLUICE_{soversion}":
    wrong.append(f"{version}: the soname has the version {soversion}")
for name in sorted(mapped ^ declared):
    wrong.append(f"{name}: in the map or in the header, not in both")
for name in sorted(mapped):
    if f"{name}@@{version}" not in exported:
        wrong.append(f"{name}: not exported as {name}@@{version}")
for name in sorted(exported):
    if name != version and name.split("@")[0] not in mapped:
        wrong.append(f"{name}: exported, and not in the map")
if not mapped:
    wrong.append("the map names nothing")
print("\n".join(wrong) or f"{len(mapped)} symbols")
sys.exit(bool(wrong))
