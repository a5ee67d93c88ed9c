#!/bin/sh
# SPDX-License-Identifier: MIT
#
# shell.sh ROOT - shell scripts parse; shellcheck, if there, has nothing to say

cd "$1" || exit 1
scripts=$(find tools test .ci -type f -exec grep -lE '^#!.*[/ ](ba)?sh( |$)' {} + 2>/dev/null)
failed=0
for script in $scripts; do
	case $(head -n 1 "$script") in *bash*) shell="bash" ;; *) shell="sh" ;; esac
	"$shell" -n "$script" || failed=1
done
if command -v shellcheck >/dev/null; then
	# -x follows what they source; word splitting is meant: no name has a blank
	# shellcheck disable=SC2086
	shellcheck -x -P "$PWD:$PWD/tools:SCRIPTDIR" $scripts || failed=1
else
	echo "without shellcheck: only sh -n and bash -n"
fi
exit $failed
