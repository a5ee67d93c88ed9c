#!/bin/sh
# SPDX-License-Identifier: MIT
#
# pages.sh PAGE... - mandoc has no warning about the manual pages

if ! command -v mandoc >/dev/null; then
	echo "skipped: there is no mandoc (apt-get install mandoc)"
	exit 77
fi
mandoc -T lint -W warning "$@"
