/* SPDX-License-Identifier: MIT */
/*
 * report.c - prints the statistics
 *
 * A report is a walk over sections of named numbers; text and JSON differ only
 * in how a section and a number are written.
 */
#include "daemon/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/output.h"
#include "base/util.h"
#include "net/sock.h"

/* Bytes of pending reports: a report has four to eight KiB. */
#define QUEUE_BYTES (128 << 10)

static char queue[QUEUE_BYTES];
static struct output to_stdout =
	OUTPUT_INIT(STDOUT_FILENO, "sluice-stdout", NULL, queue);

/**
 * struct writer - where a report goes
 * @depth:	sections that are open
 * @first:	nothing has been written in the innermost one
 */
struct writer {
	FILE *out;
	bool json, first;
	unsigned depth;
};

static void key(struct writer *w, const char *name)
{
	if (w->json)
		fprintf(w->out, "%s\"%s\":", w->first ? "" : ",", name);
	else
		fprintf(w->out, "%s %s ", w->first ? "" : ",", name);
	w->first = false;
}

/* In text, a section is a line of its own. */
static void open_section(struct writer *w, const char *name)
{
	if (w->json && w->depth)
		fprintf(w->out, "%s\"%s\":{", w->first ? "" : ",", name);
	else if (w->json)
		fputc('{', w->out);
	else
		fprintf(w->out, "%s%*s%s:", w->depth ? "\n" : "",
			2 * (int)w->depth, "", name);
	w->depth++;
	w->first = true;
}

static void close_section(struct writer *w)
{
	w->depth--;
	w->first = false;
	if (w->json)
		fputc('}', w->out);
	if (!w->depth)
		fputc('\n', w->out);
}

static void put(struct writer *w, const char *name, uint64_t n)
{
	key(w, name);
	fprintf(w->out, "%llu", (unsigned long long)n);
}

static void put_text(struct writer *w, const char *name, const char *text)
{
	key(w, name);
	fprintf(w->out, w->json ? "\"%s\"" : "%s", text);
}

static void put_seconds(struct writer *w, const char *name, double secs)
{
	key(w, name);
	fprintf(w->out, "%.3f", secs);
}

/* A number of the snapshot @s. */
#define N(member) counter_read(&s->member)

static void put_connections(struct writer *w, const struct snapshot *s)
{
	uint64_t accepted = N(flows.accepted), ended = 0;

	open_section(w, "connections");
	put(w, "accepted", accepted);
	put(w, "connected", N(flows.connected));
	for (unsigned i = 0; i < FLOW_END_COUNT; i++)
		ended += N(flows.ended[i]);
	put(w, "open", accepted > ended ? accepted - ended : 0);
	put(w, "accept_errors", N(flows.accept_errors));
	put(w, "accept_pauses", N(flows.accept_pauses));
	put(w, "accept_reopened", N(flows.accept_reopened));
	put(w, "mptcp_refused", sock_mptcp_refused());
	open_section(w, "ended");
	for (unsigned i = 0; i < FLOW_END_COUNT; i++)
		put(w, flow_end_names[i], N(flows.ended[i]));
	close_section(w);
	close_section(w);
}

static void put_bytes(struct writer *w, const struct snapshot *s)
{
	uint64_t discarded = N(relays.discard.bytes);
	uint64_t by_pipe = N(relays.splice_out.bytes);
	uint64_t by_buffer = N(relays.send.bytes);
	uint64_t dropped = discarded;

	for (unsigned i = 0; i < DROPS; i++)
		dropped += N(relays.dropped[i]);
	open_section(w, "bytes");
	put(w, "read",
	    N(relays.splice_in.bytes) + N(relays.recv.bytes) + discarded);
	put(w, "delivered", by_pipe + by_buffer);
	put(w, "by_pipe", by_pipe);
	put(w, "by_buffer", by_buffer);
	put(w, "spilled", N(relays.spill.bytes));
	put(w, "dropped", dropped);
	put(w, "to_targets", N(flows.up));
	put(w, "to_clients", N(flows.down));
	open_section(w, "dropped_because");
	put(w, "discarded", discarded);
#define X(name, words) put(w, #name, N(relays.dropped[DROP_##name]));
	RELAY_DROPS(X)
#undef X
	close_section(w);
	close_section(w);
}

static void put_call(struct writer *w, const char *name, uint64_t calls,
		     uint64_t bytes)
{
	open_section(w, name);
	put(w, "calls", calls);
	put(w, "bytes", bytes);
	put(w, "bytes_a_call", calls ? bytes / calls : 0);
	close_section(w);
}

static void put_calls(struct writer *w, const struct snapshot *s)
{
	open_section(w, "calls");
#define X(name, words) \
	put_call(w, #name, N(relays.name.calls), N(relays.name.bytes));
	RELAY_CALLS(X)
#undef X
	close_section(w);
	open_section(w, "eagain");
	put(w, "source_empty", N(relays.source_empty));
	put(w, "sink_full", N(relays.sink_full));
	put(w, "no_memory", N(relays.no_memory));
	close_section(w);
	open_section(w, "recheck");
	put(w, "added", N(recheck.added));
	put(w, "polled", N(recheck.polled));
	put(w, "readable", N(recheck.readable));
	put(w, "ticks", N(recheck.ticks));
	close_section(w);
	open_section(w, "busy_poll");
	put(w, "polls", N(busy_poll.polls));
	put(w, "found", N(busy_poll.found));
	put(w, "preempted", N(busy_poll.preempted));
	put(w, "unprofitable", N(busy_poll.unprofitable));
	close_section(w);
}

static void put_conduits(struct writer *w, const struct snapshot *s)
{
	open_section(w, "fallbacks");
#define X(name, words) put(w, #name, N(relays.fallbacks[FALLBACK_##name]));
	RELAY_FALLBACKS(X)
#undef X
	close_section(w);
	open_section(w, "choices");
#define X(name, what, why) put(w, #name, N(relays.choices[CHOICE_##name]));
	RELAY_CHOICES(X)
#undef X
	close_section(w);
	open_section(w, "pipes");
	put(w, "made", N(relays.pipes_made));
	put(w, "now", N(relays.pipes_now));
	put(w, "lent", N(relays.pipes_lent));
	put(w, "out", N(relays.pipes_out));
	put(w, "out_max", N(relays.pipes_out_max));
	close_section(w);
	open_section(w, "buffers");
	put(w, "now", N(relays.buffers_now));
	put(w, "max", N(relays.buffers_max));
	close_section(w);
}

static void put_output(struct writer *w)
{
	open_section(w, "output");
	put(w, "messages_dropped", log_dropped());
	put(w, "reports_dropped", output_dropped(&to_stdout));
	close_section(w);
}

static void put_all(FILE *out, const struct report *r, bool json)
{
	struct writer w = { .out = out, .json = json };
	const struct snapshot *s = &r->snapshot;

	open_section(&w, "sluice");
	put_text(&w, "version", SLUICE_VERSION);
	put_text(&w, "mode", conf_mode_name(r->mode));
	put(&w, "workers", r->workers);
	put_seconds(&w, "seconds", r->seconds);
	put_connections(&w, s);
	put_bytes(&w, s);
	put_calls(&w, s);
	put_conduits(&w, s);
	put_output(&w);
	close_section(&w);
}

static void log_loss(unsigned n, const char *why)
{
	static struct ratelimit limit;

	log_ratelimited(&limit, LOG_WARN, "statistics dropped: %s (%u report%s)",
			why, n, n == 1 ? "" : "s");
}

/**
 * report_print() - have a report written to stdout
 * @format:	STATS_JSON for one line of JSON, otherwise text
 *
 * It does not wait for stdout: see report_check() and report_flush().
 */
void report_print(const struct report *r, enum stats_format format)
{
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);

	if (out)
		put_all(out, r, format == STATS_JSON);
	if (!out || fclose(out))
		log_loss(1, strerror(ENOMEM));
	else if (!output_put(&to_stdout, text, len))
		log_loss(1, "stdout would block");
	free(text);
}

/**
 * report_check() - drop the reports that stdout has not taken in time
 *
 * Return: whether some still wait.
 */
bool report_check(void)
{
	unsigned n = output_drop_late(&to_stdout, REPORT_WAIT_MS);

	if (n)
		log_loss(n, "stdout would block");
	return !output_is_empty(&to_stdout);
}

/* At the end of the program: waits for stdout, but not for long. */
void report_flush(void)
{
	unsigned n;

	if (output_flush(&to_stdout, REPORT_WAIT_MS, 2 * REPORT_WAIT_MS))
		return;
	n = output_drop_late(&to_stdout, 0);
	if (n)
		log_loss(n, "stdout would block");
}
