#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Faulty pumps, each of which the model must find out.

One mistake each, most of them made by somebody before: against a fact about
Linux (K numbers), or against a promise of the house. A mutant that the model
lets pass fails, and so does one that no longer fits the source or that does not
compile: then it must be written anew.

usage: mutants.py SRC CC... -- LIBS...
  SRC    the source tree's src
  CC     how to call the compiler
  LIBS   what to link with: the model, the rest of the pump, Check
Run by meson; MUTANTS=name,name,... tries these alone.
"""
import concurrent.futures
import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile

LANE, PUMP, PIPES, SPLICE, LOOP = ('relay/lane.c', 'relay/pump.c', 'relay/pipes.c', 'relay/splice.c', 'net/loop.c')

# name, file, what is there, what is put in its place
MUTANTS = [
    # readiness
    ('full_sink_taken_for_empty_source', LANE,  # K4
     'watch_clear(&to->watch, LOOP_WRITABLE);',
     'watch_clear(&to->watch, LOOP_WRITABLE); watch_clear(&r->side[i].watch, LOOP_READABLE);'),
    ('short_recv_forgets_the_end', LANE,  # K32
     'if (from->watch.ready & LOOP_ENDING) {', 'if (0) {'),
    ('short_splice_before_a_fin_is_the_last', LANE,
     'if (c->ops->short_is_empty && !from->gone && !from->short_write)', 'if (!from->gone && !from->short_write)'),
    ('short_recv_forgets_the_mark', LANE,  # K32
     'if (!urgent)\n\t\t\tlane_short_read', 'if (1)\n\t\t\tlane_short_read'),
    ('short_splice_taken_for_drained', SPLICE,  # K1
     '.is_pipe = true,', '.is_pipe = true, .short_is_empty = true,'),
    ('short_splice_is_never_asked_about', LOOP, 'if (recheck_turn(&loop->recheck, timeout_ms != 0))', 'if (0)'),
    ('the_first_tick_is_the_last', 'net/recheck.c', 'few || !tick_later(ds, now_ns())', '!few && !tick_later(ds, now_ns())'),
    ('a_doubt_is_asked_about_but_not_told', 'net/recheck.c', 'watch_report(w[i], ready | WATCH_RECHECKED);', ';'),
    ('a_relay_leaves_its_doubts_behind', PUMP, '\trecheck_cancel(&r->side[0].watch);\n', ''),
    ('pipe_is_topped_up', LANE,  # K2
     '		if (lane_held(l))\n			step = lane_drain',
     '		if (lane_held(l) && r->side[!i].watch.ready & LOOP_WRITABLE)\n			step = lane_drain'),
    ('an_edge_replaces_the_last', LOOP, 'watch_set(w, ready);', 'w->ready = ready;'),
    ('drains_by_size_not_by_what_is_held', SPLICE,  # K9
     'NULL, c->held, SPLICE_F_NONBLOCK', 'NULL, c->size, SPLICE_F_NONBLOCK'),
    # ends
    ('zero_is_always_fin', LANE,  # K20
     'if (from->gone && from->error && from->error != EPIPE) {', 'if (0) {'),
    ('zero_of_a_dead_side_is_never_fin', LANE,
     'if (from->gone && from->error && from->error != EPIPE) {', 'if (from->gone) {'),
    ('error_that_a_write_ate_is_forgotten', LANE,  # K20
     '	side_gone(r, !i, err);\n	return STEP_WAIT;', '	side_gone(r, !i, 0);\n	return STEP_WAIT;'),
    ('a_reset_that_a_splice_ate_is_a_fin', LANE, 'if (err == EPIPE && !to->error &&', 'if (0 &&'),
    ('a_reset_that_a_splice_ate_is_a_fin_to_the_reader', LANE, 'if (from->short_write &&', 'if (0 &&'),
    ('enotconn_of_shutdown_is_an_error', LANE, 'errno == ENOTCONN ? 0 : errno', 'errno'),
    ('reset_after_fin_goes_unseen', PUMP, 'if (ready & EPOLLERR ||', 'if (0 ||'),
    ('reset_without_waiting_for_the_peer', PUMP,  # K30
     'if (passed && !sock_outq(r->side[!gone].watch.fd))', 'if (passed)'),
    ('reset_drops_what_came_before', LANE,
     'watch_set(&s->watch, LOOP_READABLE); /* for what came before its end */',
     'lane_drop(r, &r->lane[i], DROP_sink_gone); r->lane[i].state = LANE_ENDED;'),
    ('nobody_asks_again', PUMP, 'due = now + r->wait_ms * NS_PER_MS;', 'due = r->give_up_ns;'),
    ('waits_for_ever', PUMP, 'if (now >= r->give_up_ns) {', 'if (0) {'),
    ('a_write_error_ends_both_lanes', PUMP, 'if (r->stop || (gone[0] && gone[1]))', 'if (r->stop || gone[0] || gone[1])'),
    ('stop_waits_for_an_end', PUMP, 'if (r->stop || (gone[0] && gone[1]))', 'if (gone[0] && gone[1])'),
    ('nothing_is_discarded', LANE, 'to_it->state == LANE_OPEN ? LANE_DISCARD : LANE_ENDED;', 'LANE_ENDED;'),
    ('discards_without_bound', LANE, 'if (l->read - l->delivered > r->env->discard_max)', 'if (0)'),
    ('fin_is_taken_from_its_edge', PUMP, '	if (ready & EPOLLPRI) {',
     '	if (ready & EPOLLRDHUP && r->lane[i].state == LANE_OPEN)\n		r->lane[i].state = LANE_DRAINING;\n'
     '	if (ready & EPOLLPRI) {'),
    ('fin_before_what_is_held', LANE, '	if (!lane_held(l))\n		lane_rest(r, i);', '	lane_rest(r, i);'),
    ('fin_is_not_passed_on', LANE, 'if (l->state != LANE_DRAINING)', 'if (1)'),
    ('done_twice', PUMP, '	r->done(r);', '	r->done(r);\n	r->done(r);'),
    ('looks_once_at_its_lanes', PUMP, 'while (gone != r->side[0].gone + r->side[1].gone);', 'while (0);'),
    # urgent data
    ('urgent_is_ignored', PUMP, 'if (ready & EPOLLPRI) {', 'if (0) {'),  # K7
    ('urgent_goes_on_as_ordinary', 'relay/urgent.c', 'MSG_OOB | MSG_NOSIGNAL', 'MSG_NOSIGNAL'),
    ('zero_at_the_mark_is_believed', LANE,  # K7
     'sock_at_mark(from->watch.fd)) {', '0) {'),
    ('urgent_is_not_in_line', 'net/sock.c', ': set(fd, SOL_SOCKET, SO_OOBINLINE, 1);', ': 0;'),
    # room, memory, turns
    ('share_without_limit', LANE, 'else if (l->read >= budget)', 'else if (0)'),
    ('rest_of_the_share_is_forgotten', PUMP, '	else if (more)\n		loop_again', '	else if (0)\n		loop_again'),
    ('goes_to_the_back_without_need', LANE, 'return full && r->side[i].watch.ready & LOOP_READABLE;', 'return full || lane_held(l);'),
    ('want_of_memory_is_an_end', 'base/shortage.h', 'return err == ENOMEM || err == ENOBUFS;', 'return 0;'),
    ('want_of_memory_is_forgotten', PUMP, 'else if (r->starved)', 'else if (0)'),
    ('an_end_needs_a_conduit', LANE, 'return peek(from->watch.fd);', 'return -ENOMEM;'),
    ('refused_drain_is_an_end', LANE, 'if (c && c->ops->is_pipe && !error_is_end(err))', 'if (0)'),
    ('refused_fill_is_an_end', LANE, '	lane_refused(r, i, FALLBACK_splice_in);\n	return true;', '	return false;'),
    ('idle_lane_keeps_its_conduit', LANE,
     'if (l->conduit && !(r->env->own_pipes && l->conduit->ops->is_pipe))', 'if (0)'),
    ('pipe_with_bytes_is_lent_again', PIPES, 'if (p->conduit.held) {', 'if (0) {'),
    ('stalled_pipe_stays_where_it_is', PIPES, 'err = pipe_spill(p, ps->bufs);', 'err = -ENOMEM;'),
    ('spill_forgets_its_lane', SPLICE, '	*p->holder = &b->conduit;\n', ''),
    ('more_pipes_than_the_share', PIPES, 'if (ps->n >= ps->limit)', 'if (ps->n > ps->limit)'),
    # deadlines
    ('a_deadline_is_not_armed_anew', LOOP, 'if (arm(loop)) /*', 'if (0) /*'),
    ('silence_is_noticed_too_early', 'relay/idle.c', '++r->idle_checks <= IDLE_PARTS', '++r->idle_checks < IDLE_PARTS'),
    ('silence_is_never_noticed', 'relay/idle.c', 'r->idle_checks = 0;\n	r', 'r->idle_checks = 0;\n	if (0) r'),
]


def compile_and_run(name, file, old, new, args):
    """What the model says: the line of the first violation, or None."""
    tree = os.path.join(args['tmp'], name)
    shutil.copytree(args['src'], os.path.join(tree, 'src'))
    path = os.path.join(tree, 'src', file)
    with open(path) as f:
        text = f.read()
    if text.count(old) != 1:
        raise ValueError(f'fits {text.count(old)} times, not once')
    with open(path, 'w') as f:
        f.write(text.replace(old, new))
    # The model has no io_uring: of what could stand there it takes the other.
    changed = [file] if file.endswith('.c') else sorted(
        'relay/' + f for f in os.listdir(os.path.join(tree, 'src/relay')) if f.endswith('.c'))
    program = os.path.join(tree, 'model')
    # What is given as a source is not taken from the libraries.
    built = subprocess.run(args['cc'] + ['-w', '-I' + os.path.join(tree, 'src'), '-o', program] +
                           [os.path.join(tree, 'src', f) for f in changed] + args['link'],
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if built.returncode:
        raise ValueError('does not build:\n' + built.stdout)
    env = dict(os.environ, MODEL_FAIL_FAST='1', CK_FORK='no', MODEL_DEPTH='-1', MODEL_ROUNDS='500')
    try:
        ran = subprocess.run([program], env=env, timeout=120, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True, errors='replace')
    except subprocess.TimeoutExpired:
        return 'hangs'
    finally:
        shutil.rmtree(tree)
    if not ran.returncode:
        return None
    said = re.search('violated: (.*)', ran.stdout)
    return said.group(1) if said else f'ends with status {ran.returncode}'


def try_one(mutant, args):
    """A line of TAP, without its number."""
    name = mutant[0]
    try:
        said = compile_and_run(*mutant, args)
    except ValueError as e:
        return False, f'{name}: it {e}'
    if name == 'none':
        return said is None, f'the pump as it is passes{": " + said if said else ""}'
    return said is not None, f'{name} is found out: {said}' if said else f'{name} passes'


def step_back():
    """Lets others have the cpus first, those of other sessions too: some of them judge time."""
    os.nice(10)
    if os.getsid(0) == os.getpid():  # as meson starts it
        with contextlib.suppress(OSError), open('/proc/self/autogroup', 'w') as f:
            f.write('10')


def main():
    step_back()
    src, split = sys.argv[1], sys.argv.index('--')
    names = os.environ.get('MUTANTS', '').split(',')
    mutants = [('none', LANE, '#include "relay/lane.h"\n', '#include "relay/lane.h"\n')] + MUTANTS
    mutants = [m for m in mutants if names == [''] or m[0] in names]
    with tempfile.TemporaryDirectory(prefix='mutants.') as tmp:
        args = {'src': src, 'tmp': tmp, 'cc': sys.argv[2:split], 'link': sys.argv[split + 1:]}
        print(f'1..{len(mutants)}', flush=True)
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            for i, (ok, line) in enumerate(pool.map(lambda m: try_one(m, args), mutants)):
                first, *more = line.splitlines()
                print(f'{"ok" if ok else "not ok"} {i + 1} - {first}')
                for text in more:
                    print('# ' + text)
                sys.stdout.flush()


if __name__ == '__main__':
    main()
