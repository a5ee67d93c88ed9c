/* SPDX-License-Identifier: MIT */
/*
 * probe.h - points at which bpftrace, perf or gdb can look on (USDT)
 *
 * Each costs one instruction that does nothing, and a note in the ELF file that
 * says where it is and where its arguments are. So these are what is at hand
 * already: numbers and pointers, nothing worked out. sluice(8) has the list,
 * tools/lab has scripts.
 */
#ifndef BASE_PROBE_H
#define BASE_PROBE_H

#ifdef SLUICE_PROBES /* by meson, where sys/sdt.h is */
#define SDT_USE_VARIADIC
#include <sys/sdt.h>
#define probe(name, ...) STAP_PROBEV(sluice, name, __VA_ARGS__)
#else
#define probe(name, ...) ((void)0)
#endif

#endif /* BASE_PROBE_H */
