#!/bin/sh
# SPDX-License-Identifier: MIT
#
# fuzz.sh HARNESS SECONDS [FOLDER] - run a harness under libFuzzer
#
#	test/fuzz/fuzz.sh text 300
#
# HARNESS is text, address, rules, arguments or schedule. Needs clang with its
# runtime (Debian: clang, libclang-rt-14-dev). By hand, what it does is
#
#	clang -g -O1 -fsanitize=fuzzer,address,undefined ... HARNESS.c promise.c sandbox.c all of src but main.c
#	./HARNESS NEW CORPUS
#
# The corpus is read and never written: inputs that take a new branch are put
# into FOLDER, crashes too (a new one in /tmp unless given). One that is worth
# keeping is copied into corpus/HARNESS by hand, with a name that says what it is.

set -eu
[ $# -ge 2 ] || { sed -n 's/^# \{0,1\}//; 4,10p' "$0"; exit 2; }
harness=$1 seconds=$2
root=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd)
found=${3:-$(mktemp -d "/tmp/sluice-fuzz-$harness.XXXXXX")}
mkdir -p "$found/new"
found=$(CDPATH='' cd -- "$found" && pwd)
cd "$root"

wrap()
{
	for call in "$@"; do
		printf -- '-Wl,--wrap=%s ' "$call"
	done
}

# The calls that the model has in place of the kernel's.
modelled()
{
	sed -n "/^wrapped = \[/,/^\]/ s/'\([a-z0-9_]*\)',*/\1/gp" test/model/meson.build | grep -v '[]=[]'
}

case $harness in
schedule)
	more=$(find test/model test/support -name '*.c' ! -name 'test_*.c' ! -name selftest.c)
	# shellcheck disable=SC2046 # one word a call
	wraps=$(wrap $(modelled) _exit)
	libs=$(pkg-config --cflags --libs check)
	;;
*)
	more=test/fuzz/sandbox.c libs=''
	wraps=$(wrap output_put fopen fopen64 getaddrinfo usage_print usage_print_version)
	;;
esac
# shellcheck disable=SC2046,SC2086 # one word a file, one word a flag
clang -std=gnu11 -g -O1 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined \
	-D_GNU_SOURCE '-DSLUICE_VERSION="fuzz"' -I. -Isrc -Iinclude -Itest \
	"test/fuzz/$harness.c" test/fuzz/promise.c $more \
	$(find src -name '*.c' ! -name main.c ! -name lib.c) \
	$wraps $libs -pthread -o "$found/$harness"
echo "crashes and new inputs: $found"
cd "$found"
exec "./$harness" -max_total_time="$seconds" -max_len=1024 -timeout=10 -rss_limit_mb=4096 \
	-print_final_stats=1 new "$root/test/fuzz/corpus/$harness"
