# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2154 # tmp is the caller's directory
#
# common.sh - what tools/run and tools/check share: messages, and installing
# what is missing. Sourced; the caller sets $tmp.

progress()
{
	[ -t 2 ] && printf '\r\033[K%s' "$*" >&2
	return 0
}

# die WHY [FILE...]: the line that says why, and behind it what the files hold.
die()
{
	progress ''
	echo "$(basename -- "$0"): $1" >&2
	shift
	[ $# = 0 ] || sed 's/^/    /' "$@" >&2
	exit 1
}

have()
{
	command -v "$1" >/dev/null 2>&1
}

# A compiler without the C library's headers is of no use either.
compiles()
{
	echo '#include <stdio.h>
	int main(void) { return puts("") < 0; }' >"$tmp/try.c"
	for cc in ${CC:+"$CC"} cc gcc clang; do
		$cc -o "$tmp/try" "$tmp/try.c" 2>/dev/null && return 0
	done
	return 1
}

# The Debian packages that the build lacks.
lacking_to_build()
{
	compiles || echo gcc libc6-dev
	have meson || echo meson
	have ninja || have ninja-build || echo ninja-build
	have pkg-config || have pkgconf || echo pkg-config
}

as_root()
{
	sudo=''
	[ "$(id -u)" = 0 ] || sudo=sudo
	$sudo "$@" >>"$tmp/log" 2>&1
}

apt()
{
	as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq "$@"
}

# What the function LIST names, each once, on one line.
listed()
{
	$1 | tr ' ' '\n' | awk '!had[$0]++' | xargs
}

# install_lacking LIST: installs what the function LIST names.
install_lacking()
{
	lacks=$(listed "$1")
	[ "$lacks" ] || return 0
	have apt-get ||
		die "please install what these packages of Debian hold: $lacks"
	[ "$(id -u)" = 0 ] || have sudo ||
		die "please install, as root: apt-get install $lacks"

	progress "installing $lacks ..."
	# An old list of packages may do, or there may be none: so go on.
	apt update
	# shellcheck disable=SC2086 # one word a package
	apt install -y --no-install-recommends $lacks ||
		die "cannot install $lacks:" "$tmp/log"
	still=$(listed "$1")
	[ -z "$still" ] || die "installed $lacks, and still lack: $still"
}
