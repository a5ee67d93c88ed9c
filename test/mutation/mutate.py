#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Faulty sluices, each of which some test must find out.

One mistake each, such as a programmer makes: in the daemon, the library, the
sockets, the log, the ring. (Those of the mechanism alone: test/model/mutants.py.)
The tree is copied and built once; then, for each mistake, it is put in, built, and the
test that should find it is run; if that one does not, the suites unit, model,
fault, embed and daemon are. A mistake whose text is not there exactly once, or
that does not build, fails, and so does a test that fails without any mistake:
then nothing is learnt from it. Those of the ring need liburing, and a kernel that
lets us have io_uring: without they are not tried, which is said and fails.

Not part of tools/check: all of it takes half an hour. Run it alone, since some
tests are about time.

usage: mutate.py [--list] [--trust] [--named] [NAME...]
  --list   print the mistakes and the tests that should find them
  --trust  do not first see that these tests pass without a mistake
  --named  run no other tests than these
  NAME     try these alone
"""
import argparse
import ctypes
import fnmatch
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SUITES = ('unit', 'model', 'fault', 'embed', 'daemon')
BUILD_S = 600
TEST_S = 300      # one test, whatever meson's own limit is
SUITES_S = 1800
PROGRAMS = ('src/sluice', 'src/liblib.a')  # each test's own program is built when it is run

FLOW, LISTENER, LISTENING, WORKER = 'proxy/flow.c', 'proxy/acceptor.c', 'daemon/listen_socket.c', 'proxy/worker.c'
SERVER, CIRCLE, SWEEP, PARSE = 'daemon/server.c', 'daemon/forward_loop.c', 'proxy/dead_peer.c', 'conf/parse.c'
OPTIONS, OPTION_TABLE, OPTION_VALUE = 'conf/options.c', 'conf/option_table.c', 'conf/option_value.c'
CONNECT, TARGET, LOOKUP = 'proxy/connect.c', 'proxy/target.c', 'daemon/lookup.c'
CONF_FILE, REPORT, LOG, PIPES = 'conf/conf_file.c', 'daemon/report.c', 'base/log.c', 'relay/pipes.c'
OUTPUT = 'base/output.c'
NET, LOOK, DOUBT, LOOP = 'net/*.c', 'net/busy_poll.c', 'net/recheck.c', 'net/loop.c'
QUIET, LIB = 'relay/idle.c', 'lib.c'
RING, RING_LANE = 'relay/uring/uring.c', 'relay/uring/uring_lane.c'
OF_THE_RING = (RING, RING_LANE)

# name, file under src or a pattern of files, what is there, what is put in its place, the tests that should find it
MISTAKES = [
    # a doubt
    ('all_doubts_but_the_first_are_forgotten', DOUBT, '		list_remove(&w[n]->recheck);', '		list_init(doubts);',
     ['unit / recheck']),
    ('a_poll_that_fails_finds_nothing', DOUBT, 'failed ? POLLIN :', 'failed ? 0 :', ['unit / recheck']),
    ('what_is_asked_about_is_not_waited_for', LOOP, 'timeout_ms != 0))\n		timeout_ms = 0;', 'timeout_ms != 0))\n		;',
     ['unit / recheck']),
    ('a_busy_loop_never_asks', DOUBT, '!sleeps && ++ds->turns < TURNS', '!sleeps', ['unit / recheck']),
    ('a_busy_loop_asks_in_each_turn', DOUBT, '!sleeps && ++ds->turns < TURNS', '0', ['unit / recheck']),
    ('it_never_ticks', DOUBT, 'if (now - ds->since_ns < OFTEN_MS * NS_PER_MS)', 'if (0)', ['unit / recheck']),
    ('it_ticks_however_rare_doubts_are', DOUBT, 'if (now - ds->since_ns < OFTEN_MS * NS_PER_MS)', 'if (1)',
     ['unit / recheck']),
    ('it_never_stops_ticking', DOUBT, 'few || !tick_later', '!tick_later', ['unit / recheck']),
    ('the_last_tick_leaves_doubts', DOUBT, '!tick_later(ds, now_ns()))\n		ask(ds, &ds->old);',
     '!tick_later(ds, now_ns()))\n		;', ['unit / recheck']),
    ('a_tick_asks_about_all', DOUBT, '	ask(ds, &ds->old);\n	list_take', '	ask(ds, &ds->old);\n	ask(ds, &ds->fresh);\n	list_take',
     ['unit / recheck']),
    ('what_was_wrongly_doubted_is_doubted_again', DOUBT, 'ready | WATCH_RECHECKED', 'ready', ['unit / short']),
    ('an_edge_that_is_late_leaves_it_beyond_doubt', LOOP, 'watch_clear(w, WATCH_UNREAD | WATCH_RECHECKED)', 'watch_clear(w, WATCH_UNREAD)', ['unit / short']),
    ('edges_put_a_doubt_off_for_ever', DOUBT, '			return false;\n		if (w->unproven', '			return true;\n		if (w->unproven',
     ['unit / recheck']),
    ('a_read_until_eagain_proves_nothing', DOUBT, '	w->unproven = 0;', '	;', ['unit / recheck']),
    ('an_edge_leaves_the_doubt', LOOP, '		recheck_cancel(w);', '		;', ['unit / recheck']),
    ('a_short_read_of_a_side_that_a_write_lost_is_its_last', 'relay/lane.c', 'short_is_empty && !from->gone && ', 'short_is_empty && ',
     ['model / model']),
    ('a_short_read_of_a_local_socket_is_trusted', 'relay/lane.c', 'from->failed || from->local ||', 'from->failed ||',
     ['abi / life']),
    ('the_library_keeps_its_doubts_for_itself', LIB, '	recheck_turn(&s->loop.recheck, true);\n', '', ['abi / life']),
    # a wait
    ('looking_is_the_rule_whether_or_not_it_pays', LOOK, 'if (3 * awake_ns > 2 * l->asleep_ns) {', 'if (0) {',
     ['unit / busy_poll']),
    ('looking_never_pays', LOOK, 'if (3 * awake_ns > 2 * l->asleep_ns) {', 'if (1) {',
     ['unit / busy_poll']),
    ('sleep_is_never_compared_with_anew', LOOK, 'if (++l->stretches == STRETCHES)', 'if (0)',
     ['unit / busy_poll']),
    ('others_that_had_the_cpu_are_not_forgiven', LOOK, '		l->every /= 2;', '		;',
     ['unit / busy_poll']),
    ('others_that_had_the_cpu_before_count', LOOK, 'before = l->adapts ? switches() : 0;', 'before = 0;',
     ['unit / busy_poll']),
    ('others_that_take_the_cpu_do_not_matter', LOOK, '	if (preempted) {', '	if (0) {',
     ['unit / busy_poll']),
    ('it_does_not_look_unless_told', OPTION_TABLE, '.text_preset = "auto",', '.text_preset = "off",',
     ['daemon / sockets: unless told otherwise']),
    # a connection
    ('second_address_is_never_tried', CONNECT, '		a = begin_next(c, now);\n', '		;\n', ['transcript / targets: each address']),
    ('an_address_that_refuses_at_once_is_the_last', CONNECT,
     'while (a && c->next < c->targets->n) {', 'if (a && c->next < c->targets->n) {',
     ['transcript / ports: next address']),
    ('the_next_address_waits_for_the_one_before', CONNECT, '|| c->next_ns <= now)', ')', ['daemon / racing: dead first']),
    ('the_slow_address_is_forgotten', CONNECT, 'if (is_pending(a) && a->due_ns < won->due_ns)', 'if (0)',
     ['daemon / racing: dead first']),
    ('losers_stay_open', CONNECT, 'if (a != c->won && is_pending(a))', 'if (0)', ['daemon / racing: dead first']),
    ('failed_addresses_are_not_last', TARGET, 'if (until && until <= now &&', 'if (until &&', ['unit / target']),
    ('families_do_not_alternate', TARGET, 'last = set->at[i].addr.sa.sa_family;', '', ['unit / target']),
    ('the_index_of_an_interface_is_kept', TARGET, 'return *t->ifname ? addr_refresh_scope', 'return 0 ? addr_refresh_scope',
     ['unit / target']),
    ('it_waits_for_the_resolver', 'daemon/lookup.c', 'l->n_waiting && !l->over && !l->failed', 'l->n_waiting && !l->failed',
     ['daemon / resolving: silent server delays']),
    ('a_signal_does_not_end_the_wait', 'daemon/server.c', 'lookup_is_waiting(&s->lookup) && s->state == SERVER_STARTING', 'lookup_is_waiting(&s->lookup)',
     ['daemon / resolving: process 1']),
    ('a_late_answer_may_lead_in_a_circle', 'daemon/server.c', '\tif (forward_loop_find(&s->routes, &s->listens))\n\t\treturn false;', '\tif (0)\n\t\treturn false;', ['daemon / resolving: lead back']),
    ('connect_timeout_is_ignored', CONNECT,
     'uint64_t ms = c->options->connect_timeout_ms;', 'uint64_t ms = 3600000;',
     ['daemon / connecting: given up']),
    ('reset_of_a_waiting_client_goes_unseen', FLOW,
     'if (f->state == FLOW_CONNECTING && w->ready & (EPOLLERR | EPOLLHUP))', 'if (0)',
     ['daemon / connecting: client that resets']),
    ('waiting_client_that_resets_takes_its_words_along', CONNECT,
     '!a->error && sock_is_writable(a->watch->fd)) {', '0) {', ['unit / connect']),
    ('the_winner_is_not_moved', CONNECT, 'if (w != first)', 'if (0)', ['unit / connect']),
    ('early_reset_of_the_target_is_no_connection', CONNECT,
     'if (err == ECONNRESET || err == EPIPE)', 'if (0)', ['daemon / connecting: speaks and resets']),
    ('connection_to_itself_is_kept', CONNECT, 'if (!err && a->target->local &&', 'if (0 &&',
     ['transcript / ports: own words']),
    ('client_is_closed_by_fin', FLOW, 'flow_close_side(f, FLOW_CLIENT, reset);',
     'flow_close_side(f, FLOW_CLIENT, false);', ['daemon / endings: on an idle connection']),
    ('target_is_left_open', FLOW, '	flow_close_side(f, FLOW_TARGET, reset);\n', '',
     ['daemon / endings: no socket is left']),
    ('a_killed_program_sends_fin', 'net/sock.c', '{ .l_onoff = on, .l_linger = 0 };', '{ .l_onoff = 0, .l_linger = 0 };',
     ['daemon / killed: was read']),
    ('an_orderly_close_drops_what_is_queued', FLOW, '	if (!reset)\n		sock_set_abortive(fd, false);\n', '',
     ['daemon / killed: still queued']),
    ('a_refused_thread_is_fatal', 'proxy/workers.c', '\tif (!n) {', '	if (err) {', ['daemon / start-failures: could be started']),
    ('a_loop_is_not_seen_when_it_is_accepted', FLOW, 'f->loop = flow_is_loop(f);', '', ['daemon / loops: only a connection shows']),
    ('a_connect_is_not_entered', CONNECT, '\t\tif (may_be_loop(c->worker))\n', '\t\tif (0)\n',
     ['daemon / loops: only a connection shows']),
    ('bytes_are_counted_twice', FLOW, 'counter_add(&w->stats.up, f->relay.lane[FLOW_CLIENT].delivered);',
     'counter_add(&w->stats.up, 2 * f->relay.lane[FLOW_CLIENT].delivered);',
     ['daemon / totals: what the peers received']),
    ('line_has_up_for_down', FLOW,
     '(unsigned long long)up->delivered,\n		 (unsigned long long)down->delivered, secs,',
     '(unsigned long long)down->delivered,\n		 (unsigned long long)up->delivered, secs,',
     ['daemon / log-lines: whose numbers are true']),
    ('line_has_the_states_of_the_other_side', FLOW, 'end_str(f, FLOW_CLIENT),',
     'end_str(f, FLOW_TARGET), end_str(f, FLOW_CLIENT),', ['daemon / log-lines: how each side ended']),
    ('resets_are_the_other_sides', FLOW, 'reset[r->first_gone];', 'reset[!r->first_gone];',
     ['daemon / log-lines: how each side ended']),
    ('max_lifetime_is_ignored', FLOW, '	if (ms)\n		(void)loop_timer', '	if (0)\n		(void)loop_timer',
     ['daemon / limits: max lifetime']),
    ('connect_does_without_the_reserve', CONNECT, 'if (fd == -EMFILE && (pipes', 'if (0 && (pipes',
     ['daemon / shortage: once each']),
    ('no_memory_is_a_connect_that_failed', CONNECT, 'return sock_is_shortage(err) ? FLOW_no_resources',
     'return 0 ? FLOW_no_resources', ['daemon / connecting: want of something']),
    # accepting
    ('trouble_of_accept_ends_the_listener', LISTENER, 'pause_for(a, -err);',
     'loop_unwatch(&a->worker->loop, &a->watch);', ['daemon / shortage: lived with']),
    ('trouble_of_one_client_makes_all_wait', LISTENER, 'return accept_verdict(-fd) == ACCEPT_CLIENT && !is_stuck(a) ? 0 : fd;', 'return fd;',
     ['daemon / accepting: no other wait']),
    ('failed_accepts_are_not_counted', LISTENER, '	counter_add(&w->stats.accept_errors, 1);\n', '',
     ['daemon / accepting: no other wait']),
    ('listener_spins_without_descriptors', LISTENER, 'if (!err || (err == -EAGAIN && (n || !is_stuck(a))))', 'if (1)',
     ['daemon / shortage: once each']),
    ('accepts_with_no_reserve', LISTENER, 'if (!worker_has_reserve(w) &&', 'if (0 &&',
     ['daemon / shortage: one by one']),
    ('pause_never_ends', LISTENER, 'if (loop_timer(&a->worker->loop, &a->pause, now_ns() + delay, resume))',
     'if (loop_timer(&a->worker->loop, &a->pause, UINT64_MAX - 1, resume))', ['daemon / shortage: once each']),
    ('who_accepts_keeps_all', LISTENER, 'more = worker_is_brief(w, f->born_ns) ? BRIEF_MORE : 0;', 'more = -1U;',
     ['daemon / workers: spread']),
    ('free_pipes_are_kept_from_clients', LISTENER,
     '!(pipes_close_free(&w->env.pipes) && worker_has_reserve(w)))', '1)', ['daemon / shortage: become free']),
    ('accept_that_fails_for_ever_spins', LISTENER, 'return ++a->failures > FAILURES_MAX;', 'return false;',
     ['daemon / listening: for ever']),
    ('a_dead_socket_is_only_paused', LISTENER, 'if (accept_verdict(-err) == ACCEPT_GONE)', 'if (0)',
     ['daemon / listening: dies is replaced']),
    ('a_new_interface_goes_unseen', LISTENER, '!timer_is_set(&a->pause) && listen_socket_is_stale(a->socket)', '0',
     ['daemon / addresses: made anew']),
    # listening
    ('one_port_is_tried', 'daemon/listen_set.c', 'tries < PORT_TRIES_MAX', '0', ['daemon / addresses: chooses is free']),
    ('what_improves_is_needed', 'proxy/listen_socket.c', 'if (err && !opts->keepalive.requested)', 'if (0)',
     ['daemon / listening: only improves']),
    ('clients_get_no_keepalive', 'proxy/listen_socket.c', 'keepalive.idle_s)\n\t\terr = ', 'keepalive.idle_s && 0)\n		err = ',
     ['daemon / accepting: finds dead peers']),
    ('missing_family_is_an_error', 'daemon/listen_set.c', 'if (is_absent(err))', 'if (0)', ['daemon / addresses: leaves out']),
    ('each_family_has_a_port_of_its_own', 'daemon/listen_set.c', 'if (!route->rule->listen.port && set->entries.prev != last)', 'if (0)',
     ['daemon / addresses: both families']),
    ('star_is_v4_alone', 'proxy/route.c', 'route->n_listens = 2;', 'route->n_listens = 1;',
     ['daemon / addresses: both families']),
    ('targets_here_are_taken_for_far_ones', TARGET, 't->local = sock_is_local', 't->local = 0 && sock_is_local', ['transcript / ports: own words']),
    ('circle_of_two_rules_goes_unseen', CIRCLE, '(!s->seen[place_of(s, next)] &&', '(0 &&',
     ['daemon / start-failures: lead back']),
    ('circle_by_a_wildcard_goes_unseen', CIRCLE, 'return l->at.sa.sa_family == to->sa.sa_family &&', 'return 0 &&',
     ['daemon / start-failures: lead back']),
    # workers, signals, the end
    ('each_worker_takes_the_share_of_all', WORKER, '	limit /= conf->workers;\n', '',
     ['daemon / arguments: shared out']),
    ('discard_is_not_passed_on', WORKER, '	w->env.discard_max = conf->options.discard_max;\n', '',
     ['daemon / limits: discard']),
    ('linger_is_not_passed_on', WORKER, '	w->env.linger_ms = conf->options.linger_ms;\n', '', ['daemon / limits: linger']),
    ('mail_wakes_nobody', 'net/inbox.c', '\tloop_wake(box->loop);\n',
     '', ['daemon / workers: under load']),
    ('workers_do_not_obey_the_last_order', 'proxy/workers.c', '\tflows_cancel(worker_of(r, WORKER_CANCEL));\n', '',
     ['daemon / stopping: drain timeout']),
    ('load_of_those_that_left_stays', WORKER, '	atomic_fetch_sub(&w->load, 1);\n', '',
     ['daemon / stopping: running transfer']),
    ('drain_timeout_is_ignored', SERVER, 'now_ns() + ms * NS_PER_MS,\n\t\t       drain_expired',
     'UINT64_MAX - 1,\n\t\t       drain_expired', ['daemon / stopping: drain timeout']),
    ('second_signal_is_ignored', SERVER, 'if (again || !ms ||', 'if (!ms ||', ['daemon / stopping: second signal']),
    ('sigterm_leaves_the_listener_open', SERVER, '\t\tlisten_set_close(&s->listens);\n\t\ts->state', '\t\ts->state',
     ['daemon / stopping: running transfer']),
    ('sigterm_waits_for_no_connection', SERVER, '\t\tif (s->cut_off)\n', '\t\tif (1)\n',
     ['daemon / stopping: running transfer']),
    ('sigint_kills', 'daemon/signals.c', '\tsigaddset(&set, SIGINT);\n', '', ['daemon / stopping: idle one']),
    ('sigpipe_kills', 'daemon/signals.c', '\tsignal(SIGPIPE, SIG_IGN); /*', '	/*', ['daemon / log-trouble: vanish']),
    ('descriptors_are_not_raised', 'daemon/startup.c', 'if (lim.rlim_cur < lim.rlim_max) {', 'if (0) {',
     ['daemon / idle: hard limit']),
    ('port_in_use_exits_0', 'daemon/main.c', 'return err ? EXIT_CANNOT : EXIT_SUCCESS;',
     'return EXIT_SUCCESS;', ['daemon / start-failures: port in use']),
    ('early_sigusr1_kills', 'daemon/signals.c', 'sigprocmask(SIG_BLOCK, &early, NULL);', '',
     ['daemon / stopping: before it is ready']),
    # from time to time
    ('targets_get_no_keepalive', 'proxy/dead_peer.c', 'keepalive->idle_s)', 'keepalive->idle_s && 0)', ['unit / dead_peer']),
    ('dead_peer_is_waited_for', SWEEP, 'if (limit_ms &&', 'if (0 &&', ['unit / dead_peer']),
    ('sweeps_once', SWEEP, 'if (!list_empty(&all->relays))', 'if (0)', ['unit / dead_peer']),
    # what users write
    ('port_65536_is_a_port', PARSE, 'n > UINT16_MAX)', 'n > UINT16_MAX + 1)', ['daemon / arguments: wrong use']),
    ('a_kilobyte_is_a_byte', PARSE, '*ret = (size_t)n << 10 *', '*ret = (size_t)n << 0 *', ['daemon / arguments: start lines']),
    ('a_minute_is_6_seconds', PARSE, '{ "m", 60000 }', '{ "m", 6000 }', ['fuzz / fuzz-text']),
    ('one_beyond_the_greatest_is_taken', OPTION_VALUE, 'n > max_of(row))', 'n > max_of(row) + 1)', ['unit / option-table']),
    ('a_refused_value_is_stored', OPTION_VALUE, '	if (n < row->min || ', '	store(row, conf, n);\n	if (n < row->min || ',
     ['unit / option-table']),
    ('no_option_is_near', OPTIONS, '(near = option_nearest(name))', '(near = NULL)', ['daemon / arguments: wrong use']),
    ('comment_behind_a_rule_is_a_field', CONF_FILE, "word && *word != '#'", "word && (n || *word != '#')",
     ['daemon / rule-file: comments']),
    ('a_byte_order_mark_is_a_field', CONF_FILE, 'if (number == 1 && !strncmp', 'if (0 && !strncmp',
     ['daemon / rule-file: byte order mark']),
    ('last_line_needs_a_newline', CONF_FILE, 'return n || c != EOF;', 'return c != EOF;',
     ['daemon / rule-file: newline']),
    ('lines_are_counted_from_0', CONF_FILE, 'path, ++number', 'path, number++', ['daemon / rule-file: wrong line']),
    # totals
    ('totals_of_one_worker', 'proxy/workers.c', '\tfor (unsigned i = 0; i < all->n; i++)\n\t\tsnapshot_add', '\tfor (unsigned i = 0; i < 1; i++)\n\t\tsnapshot_add', ['daemon / totals: peers received']),
    ('discarded_is_not_dropped', REPORT, 'uint64_t dropped = discarded;', 'uint64_t dropped = 0;',
     ['daemon / totals: after resets']),
    ('last_line_is_of_one_worker', 'daemon/server.c', 'counter_read(&sum.flows.accepted)', 'counter_read(&s->workers.at[0].stats.accepted)',
     ['daemon / log-lines: every worker accepted']),
    ('own_pipes_take_no_descriptors', 'daemon/startup.c', 'own ? 2 + 2 * 2 : 2', 'own ? 2 : 2',
     ['daemon / arguments: six descriptors']),
    # sockets
    ('nagle', NET, '	(void)set(fd, IPPROTO_TCP, TCP_NODELAY, 1);\n', '', ['daemon / timing: five small writes', 'unit / sock']),
    ('port_may_not_be_used_again', NET, '	(void)set(fd, SOL_SOCKET, SO_REUSEADDR, 1);\n', '',
     ['daemon / stopping: again at once']),
    ('v6_takes_v4_too', NET, 'err = set(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);', 'err = 0;',
     ['daemon / addresses: wildcard']),
    ('accepted_sockets_block', NET, '&len, SOCK_NONBLOCK | SOCK_CLOEXEC', '&len, SOCK_CLOEXEC',
     ['daemon / bytes: both ways']),
    ('no_descriptor_is_no_shortage', NET, 'return shortage_of_descriptors(err) || ', 'return ',
     ['daemon / shortage: once each']),
    ('user_timeout_is_not_set', NET, 'IPPROTO_TCP, TCP_USER_TIMEOUT, ', 'IPPROTO_TCP, TCP_USER_TIMEOUT, 0 * ',
     ['daemon / accepting: finds dead peers']),
    ('a_name_has_an_address_twice', NET, 'if (!contains(out, count, &a))', 'if (1)', ['daemon / addresses: twice']),
    # log
    ('gate_never_opens_again', LOG, 'if (now - limit->since_ns > RATELIMIT_NS) {', 'if (!limit->since_ns) {',
     ['daemon / log-trouble: same trouble']),
    ('lost_lines_are_not_told', OUTPUT, '	o->untold += f.lost;\n', '', ['daemon / log-trouble: nobody reads']),
    ('a_line_may_look_like_two', LOG, 'if (iscntrl(', 'if (0 && iscntrl(', ['daemon / arguments: wrong use']),
    ('writer_holds_the_lock', OUTPUT, '	o->busy = true;\n	pthread_mutex_unlock(&o->lock);\n', '	o->busy = true;\n',
     ['daemon / output: keeps no connection']),
    ('queue_has_no_end', OUTPUT, 'sizeof(f) + len > q->size - q->used', 'sizeof(f) + len > q->size', ['unit / output']),
    ('the_end_waits_for_stderr', OUTPUT, '			return false;\n		sleep_ns(FLUSH', '			(void)0;\n		sleep_ns(FLUSH',
     ['daemon / output: wrong at the start']),
    ('reports_wait_for_ever', 'daemon/server.c', '	if (!timer_is_set(&s->report))', '	if (0)', ['daemon / totals: are counted']),
    ('closed_stderr_becomes_a_socket', 'daemon/main.c', '	fill_descriptors();\n', '', ['daemon / output: closed']),
    # silence
    ('idle_timer_never_looks', QUIET, 'r->idle_moved = moved(r);', 'if (part_ns(r))\n		return;',
     ['daemon / limits: idle timeout']),
    ('half_close_timeout_is_for_all', QUIET, 'return is_half_closed(r) && half &&', 'return half &&',
     ['daemon / limits: falls silent']),
    ('what_the_peer_acknowledges_is_silence', QUIET, '		n -= unsent > 0 ? (uint64_t)unsent : 0;\n', '',
     ['daemon / limits: s kernel takes']),
    # pipes and buffers
    ('pipe_with_bytes_is_lent_again', PIPES, 'if (p->conduit.held) {', 'if (0) {', ['unit / pipes']),
    ('free_pipes_are_kept_for_ever', 'relay/freelist.c', 'if (s->n > 1 && !timer_is_set(&s->trim))', 'if (0)',
     ['daemon / idle: free pipes']),
    ('kernel_is_asked_for_pipes_once', PIPES, '		ps->holdoff--;\n', '', ['daemon / fallback-pipes: asked for again']),
    ('pipes_are_not_halved', PIPES, 'for (; want >= PIPE_SIZE_MIN; want /= 2) {', 'if (want >= PIPE_SIZE_MIN) {',
     ['daemon / fallback-pipes: halved']),
    ('quota_is_for_others', PIPES, 'if (!pages || !each || is_privileged())', 'if (1)', ['unit / quota']),
    ('odd_buffers_are_kept', 'relay/bufs.c', 'if (b->conduit.size != bs->size) {', 'if (0) {', ['unit / bufs']),
    ('buffer_memory_is_kept', 'relay/bufs.c', '	(void)munmap(b, mapped(b->conduit.size));\n',
     '	if (b)\n		return;\n	(void)munmap(b, mapped(b->conduit.size));\n', ['unit / bufs']),
    ('buffer_forgets_that_it_was_given_back', 'relay/bufs.c', '	counter_sub(&b->home->stats->buffers_now, 1);\n', '',
     ['unit / bufs']),
    ('drained_buffer_begins_in_the_middle', 'relay/bufs.c', '	b->head = 0;\n', '', ['unit / bufs']),
    ('small_messages_stay_on_pipes', 'relay/choose.c', 'if (why == CHOICE_small && l->run >= SMALL_RUN)', 'if (0)',
     ['unit / choose']),
    ('thin_pipes_are_never_tried_again', 'relay/choose.c', 'l->read + THIN_PERIOD;', 'UINT64_MAX;', ['unit / choose']),
    ('mark_behind_a_full_buffer_is_crossed', 'relay/lane.c', 'else if (!urgent_look(r, from))', 'else if (0)',
     ['unit / urgent']),
    ('a_read_leaves_the_report_fresh', 'relay/urgent.c', '	watch_clear(&from->watch, WATCH_UNREAD);\n', '', ['unit / urgent']),
    ('an_old_report_is_fresh', 'net/loop.c', '	watch_clear(w, WATCH_UNREAD | WATCH_RECHECKED);\n', '	watch_clear(w, WATCH_RECHECKED);\n', ['unit / loop']),
    ('urgent_byte_is_lost', 'relay/urgent.c', 'l->urgent = n == 1;', 'l->urgent = false;', ['unit / urgent']),
    ('spilled_bytes_are_lost', 'relay/splice.c', '		b->conduit.held += (size_t)n;\n', '', ['unit / pipes']),
    ('broken_pipe_is_used_on', 'relay/splice.c', 'p->broken = b->conduit.held;', 'p->broken = 0;', ['fault / refused']),
    ('buffer_sends_its_head_again', 'relay/copy.c', '	b->head += (size_t)n;\n', '', ['unit / bufs']),
    ('library_is_killed_by_sigpipe', 'relay/copy.c', 'c->held, MSG_NOSIGNAL)', 'c->held, 0)', ['unit / bufs']),
    # the library
    ('last_reason_counts', LIB, 'if (run->why == SLUICE_WHY_ENDED)', 'if (1)', ['abi / life']),
    ('library_has_no_time_limit', LIB, '	if (timeout_ms)\n', '	if (0)\n', ['abi / life']),
    ('cancel_is_not_announced', LIB, 'run_stop(run, SLUICE_WHY_CANCELED);\n		loop_wake(&s->loop);',
     'run_stop(run, SLUICE_WHY_CANCELED);', ['abi / life']),
    ('duplicate_goes_on_being_watched', LIB, '		loop_unwatch(&s->loop, &r->side[i].watch);\n', '', ['abi / life']),
    ('what_is_left_to_do_is_not_announced', LIB, 'if (loop_pending(&s->loop))', 'if (0)', ['abi / life']),
    ('cut_off_is_closed_by_fin', LIB, 'sock_close(r->side[i].watch.fd, reset);',
     'sock_close(r->side[i].watch.fd, false);', ['abi / life']),
    ('local_sockets_are_refused', LIB, '*local = err == -EOPNOTSUPP || err == -ENOPROTOOPT;', '*local = false;',
     ['abi / life']),
    ('options_of_a_newer_program_are_ignored', LIB, '		if (bytes[i])\n', '		if (0)\n', ['abi / sizes']),
    ('options_of_an_older_program_are_read_to_our_end', LIB, 'memcpy(to, given, min_size(size, known));',
     'memcpy(to, given, known);', ['abi / sizes']),
    ('result_of_an_older_program_is_written_to_our_end', LIB, 'memcpy(to, from, min_size(size, known));',
     'memcpy(to, from, known);', ['abi / sizes']),
    ('result_of_a_newer_program_keeps_what_was_there', LIB, '	memset(to, 0, size);\n', '', ['abi / sizes']),
    ('size_that_was_not_set_is_believed', LIB, '*size > STRUCT_SIZE_MAX ? -E2BIG', '0 ? -E2BIG', ['abi / sizes']),
    ('size_0_is_believed', LIB, '*size < sizeof(*size)	 ? -EINVAL', '0 ? -EINVAL', ['abi / sizes']),
    ('size_of_a_result_is_changed', LIB, '	all.size = size;\n', '	all.size = sizeof(all);\n', ['abi / sizes']),
    ('reserved_is_ignored', LIB, 'o->reserved ? -EINVAL : 0;', '0;', ['abi / errors']),
    # the ring
    ('ring_receives_from_the_sink', RING_LANE, 'io_uring_prep_recv(sqe, from->watch.fd,',
     'io_uring_prep_recv(sqe, w->relay->side[!w->index].watch.fd,', ['unit / uring']),
    ('request_of_a_relay_that_is_done_is_made', RING_LANE, '		uring_cancel(w, OP_RECV);\n', '', ['unit / uring-memory']),
    ('short_send_is_taken_for_a_whole_one', RING_LANE, '	w->conduit.held -= (size_t)n;\n', '	w->conduit.held = 0;\n',
     ['unit / uring']),
    ('rest_of_a_short_send_is_the_head_again', RING_LANE, '	w->now->head += (size_t)n;\n', '', ['unit / uring']),
    ('next_receive_begins_at_the_mark', RING_LANE, '	if (from->urgent) /* it leaves the ring */\n		return -EINTR;\n', '',
     ['unit / urgent']),
    ('lane_with_urgent_data_stays_on_the_ring', RING_LANE, 'bool leaves = source(w)->urgent || source(w)->failed;',
     'bool leaves = source(w)->failed;', ['unit / uring']),
    ('receive_of_a_side_that_is_given_up_has_emptied_it', RING_LANE, '		return !from->failed;\n', '		return true;\n',
     ['unit / uring']),
    ('end_of_a_receive_is_forgotten', RING_LANE, '		w->end = n;\n', '', ['unit / uring']),
    ('failed_send_is_forgotten', RING_LANE, 'w->sent = n ? n : -EIO;', 'w->sent = n > 0 ? n : 0;', ['unit / uring']),
    ('relay_that_is_done_is_run_again', 'relay/pump.c', '	pump_unlink(r);\n	assert(relay_is_unlinked(r));\n', '',
     ['unit / uring']),
    ('reset_that_a_send_has_eaten_is_a_fin', 'relay/pump.c', 'if (r->lane[i].write_failed)', 'if (0)', ['unit / uring']),
    ('buffer_is_given_back_while_it_is_sent', RING_LANE, '	uring_cancel(w, OP_SEND);\n', '', ['unit / uring-memory']),
    ('unread_bytes_of_a_stopped_relay_are_not_dropped', RING_LANE,
     '	counter_add(&t->dropped[why], b->conduit.held);\n', '', ['unit / uring']),
    ('lane_leaves_the_ring_with_a_receive_in_the_queue', RING_LANE, 'return w->receiving ? -EINPROGRESS : end;', 'return end;',
     ['unit / uring']),
    ('end_behind_a_short_receive_is_not_read', RING_LANE, ' &&\n	       !(from->watch.ready & (LOOP_ENDING | EPOLLPRI));', ';',
     ['unit / uring']),
    ('ring_keeps_a_lane_beyond_its_share', RING_LANE, 'if (!w->full || read < w->budget_end)', 'if (1)', ['unit / budget']),
    ('requests_that_were_not_taken_are_forgotten', RING, '	else\n		refused(u);\n', '', ['unit / uring-memory']),
    ('rest_of_the_queue_is_forgotten', RING, '	if (moved)\n		u->env->loop->flush_due = true;\n	else\n', '	if (!moved)\n',
     ['unit / uring-memory']),
    ('ring_spins_without_memory', RING, '	if (loop_timer(u->env->loop, &u->again, due, ask_again))\n', '	if (due)\n',
     ['unit / uring-memory']),
    ('full_queue_is_not_emptied', RING, 'if (!sqe && push(u))', 'if (0)', ['unit / uring']),
    ('competitors_for_a_buffer_wait_for_a_timer', RING_LANE,
     'return n == -ENOBUFS && w->taken != w->uring->buf_ring.taken;', 'return false;', ['unit / uring']),
]


class Wrong(Exception):
    """Something is wrong with a mistake or with a test, not with what was tested."""


def run(words, within, **kwargs):
    """A program and all that it starts, within a time. Return: (its exit status, what it said)."""
    process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               text=True, errors='replace', start_new_session=True, **kwargs)
    try:
        said, _ = process.communicate(timeout=within)
    except subprocess.TimeoutExpired:
        raise Wrong(f'{words[0]}: not over after {within} s') from None
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGTERM)
            process.wait()
    return process.returncode, said


class Tree:
    """The scratch copy, its build, and its tests."""

    def __init__(self, folder):
        self.root, self.build = os.path.join(folder, 'tree'), os.path.join(folder, 'build')
        shutil.copytree(ROOT, self.root, ignore=shutil.ignore_patterns('.git', 'build*', '__pycache__'))
        self.lacks_ring = why_no_ring()
        words = ['--buildtype=debugoptimized', f'-Dliburing={"disabled" if self.lacks_ring else "enabled"}']
        status, said = run(['meson', 'setup', *words, self.build, self.root], BUILD_S)
        if status:
            raise Wrong('cannot be configured:\n' + said)
        self.make()
        status, said = run(['meson', 'introspect', '--tests', self.build], BUILD_S)
        self.tests = {(suite.partition(':')[2], t['name']): t for t in json.loads(said) for suite in t['suite']}

    def make(self, *targets):
        status, said = run(['ninja', '-C', self.build, *targets], BUILD_S)
        if status:
            raise Wrong('does not build:\n' + said[-2000:])

    def find(self, pattern, old):
        """The one place with this text. A pattern is for what may be in one of several files."""
        places = []
        for folder, _, names in os.walk(os.path.join(self.root, 'src')):
            for path in (os.path.join(folder, name) for name in names):
                if fnmatch.fnmatch(os.path.relpath(path, os.path.join(self.root, 'src')), pattern):
                    with open(path, encoding='utf-8') as f:
                        text = f.read()
                    places += [(path, text)] * text.count(old)
        if len(places) != 1:
            raise Wrong(f'fits {len(places)} times, not once')
        return places[0]

    def test(self, within, *words):
        """Runs tests until one fails. Return: which it was, or None."""
        log = os.path.join(self.build, 'meson-logs', 'testlog.json')
        if os.path.exists(log):
            os.remove(log)
        env = dict(os.environ, PYTHONDONTWRITEBYTECODE='1')
        _, said = run(['meson', 'test', '-C', self.build, '--maxfail=1', '--num-processes=2', *words], within, env=env)
        try:
            with open(log, encoding='utf-8') as f:
                results = [json.loads(line) for line in f]
        except OSError:
            results = []
        if not results:
            raise Wrong('runs no test:\n' + said[-2000:])
        bad = [r for r in results if r['result'] not in ('OK', 'SKIP', 'INTERRUPT')]
        if not bad:
            return None
        return describe(bad[0]['name'].partition(':')[2], bad[0].get('stdout', ''), bad[0]['result'].lower())

    def test_part(self, suite, name, part):
        """Without meson, which takes it for an error that the numbers of TAP have gaps."""
        test = self.tests[suite, name]
        if len(test['cmd']) == 1:
            raise Wrong(f'is for a part of {name}, which is one program')
        try:
            status, said = run(test['cmd'] + [part], TEST_S, cwd=self.build, env=dict(os.environ, **test['env']))
        except Wrong as e:
            return f'{suite} / {name}: {e}'
        if said.startswith('# 0 of '):
            raise Wrong(f'is for no test of {name}: "{part}"')
        return describe(f'{suite} / {name}', said, f'exit status {status}') if status else None

    def test_named(self, test):
        """'daemon / endings', or 'daemon / endings: part of a name' for some tests of that file."""
        where, _, part = test.partition(': ')
        suite, name = where.split(' / ')
        if (suite, name) not in self.tests:
            raise Wrong(f'is for a test that is not there: {where}')
        return self.test_part(suite, name, part) if part else self.test(TEST_S, name, '--suite', suite)


def why_no_ring():
    """Why mistakes in the ring cannot be tried here, or None."""
    if subprocess.run(['pkg-config', '--exists', 'liburing >= 2.3']).returncode:
        return 'liburing 2.3 is not there'
    params = ctypes.create_string_buffer(120)
    fd = ctypes.CDLL(None, use_errno=True).syscall(425, 1, params)  # io_uring_setup(2)
    if fd < 0:
        return f'io_uring is refused: {os.strerror(ctypes.get_errno())}'
    os.close(fd)
    return None


def describe(name, tap, else_say):
    """One line on a test that failed."""
    lines = [li.partition(' - ')[2] for li in tap.splitlines() if li.startswith('not ok')]
    return f'{name}: {lines[0][:100] if lines else else_say}'


def try_one(tree, mistake, named, useless):
    """Return: which test found it, or None. @useless: tests that fail without it, too."""
    _, pattern, old, new, tests = mistake
    if tree.lacks_ring and is_of_the_ring(mistake):
        raise Wrong(f'is not tried: {tree.lacks_ring}')
    if useless.intersection(tests):
        raise Wrong('has a test that fails without it, too')
    path, text = tree.find(pattern, old)
    try:
        with open(path, 'w', encoding='utf-8') as f:
            f.write(text.replace(old, new))
        tree.make(*PROGRAMS)
        for test in tests:
            found = tree.test_named(test)
            if found:
                return found
        if named:
            return None
        found = tree.test(SUITES_S, *[word for suite in SUITES for word in ('--suite', suite)])
        return f'{found} (not by {", ".join(tests)})' if found else None
    finally:
        with open(path, 'w', encoding='utf-8') as f:
            f.write(text)


def is_of_the_ring(mistake):
    return mistake[1] in OF_THE_RING or any('uring' in test for test in mistake[4])


def see_that_tests_pass(tree, mistakes):
    """Return: those that fail by themselves."""
    bad = set()
    if tree.lacks_ring:
        print(f'WITHOUT THE RING: {tree.lacks_ring}', flush=True)
        mistakes = [m for m in mistakes if not is_of_the_ring(m)]
    for test in sorted({test for m in mistakes for test in m[4]}):
        failed = tree.test_named(test) and tree.test_named(test)  # once may be the machine's doing
        if failed:
            print(f'WITHOUT A MISTAKE {failed}', flush=True)
            bad.add(test)
    return bad


def chosen(names):
    unknown = set(names) - {m[0] for m in MISTAKES}
    if unknown:
        sys.exit(f'no such mistake: {", ".join(sorted(unknown))}')
    return [m for m in MISTAKES if not names or m[0] in names]


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition('\n')[0])
    parser.add_argument('--list', action='store_true', help='print the mistakes and the tests that should find them')
    parser.add_argument('--trust', action='store_true', help='do not first see that these tests pass without a mistake')
    parser.add_argument('--named', action='store_true', help='run no other tests than these')
    parser.add_argument('name', nargs='*', help='try these alone')
    args = parser.parse_args()
    mistakes = chosen(args.name)
    if args.list:
        for name, pattern, _, _, tests in mistakes:
            print(f'{name}: {pattern}, {", ".join(tests)}')
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    caught, useless = 0, set()
    with tempfile.TemporaryDirectory(prefix='mutate.') as folder:
        tree = Tree(folder)
        if not args.trust:
            useless = see_that_tests_pass(tree, mistakes)
        for mistake in mistakes:
            try:
                found = try_one(tree, mistake, args.named, useless)
                print(f'{mistake[0]}: ' + (f'caught by {found}' if found else 'NOT CAUGHT'), flush=True)
                caught += found is not None
            except Wrong as e:
                print(f'{mistake[0]}: WRONG: it {e}', flush=True)
    print(f'{caught}/{len(mistakes)}')
    return int(caught < len(mistakes))


if __name__ == '__main__':
    sys.exit(main())
