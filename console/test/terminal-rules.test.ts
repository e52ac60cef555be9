// Rules of the terminal, without a browser: states, flow, keys, sessions.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { test } from 'node:test';
import { sandboxStatus } from '@berth/contract/sandboxes/state.ts';
import { SANDBOX_STATES } from '@berth/sdk';
import {
  Flow,
  letsGo,
  MOST_UNCONFIRMED,
  nextState,
  phaseOf,
  resizeInMs,
  retryAfterMs,
  sessionOf,
  shellCommand,
  type TerminalEvent,
  type TerminalState,
} from '../src/rules/terminal/attachment.ts';
import { OutputText } from '../src/rules/terminal/output.ts';
import { bytesOf, withControl } from '../src/rules/terminal/keys.ts';

const ASKING: TerminalState = { name: 'asking', attempt: 0 };
const OPEN: TerminalState = { name: 'open' };
const after = (state: TerminalState, ...events: TerminalEvent[]): TerminalState => events.reduce(nextState, state);
const status = (name: string): TerminalEvent => ({ type: 'status', status: name });
const failed = (code: string, lasting = true): TerminalEvent => ({ type: 'failed', code, message: 'why', lasting });

test('a terminal connects to an awake sandbox only, and waits while the status changes', () => {
  for (const name of sandboxStatus.options) {
    const { awake, settled } = SANDBOX_STATES[name];
    const expected = awake ? 'connecting' : settled ? 'closed' : 'asking';
    assert.equal(after(ASKING, status(name)).name, expected, name);
  }
  assert.equal(phaseOf('hibernating'), 'asleep');
  assert.deepEqual(after(ASKING, status('waking'), status('ready'), { type: 'opened' }), OPEN);
  assert.deepEqual(after(ASKING, status('stopped')), { name: 'closed', why: 'asleep' });
});

test('a lost connection is tried again after a look at the status, five times', () => {
  let state = after(OPEN, failed('stream_closed'));
  const pauses: number[] = [];
  while (state.name === 'asking') {
    pauses.push(retryAfterMs(state.attempt));
    state = after(state, status('ready'), failed('connection_failed'));
  }
  assert.deepEqual(pauses, [500, 1_000, 2_000, 4_000]);
  assert.deepEqual(state, {
    name: 'ended',
    end: { code: 'connection_failed', exitCode: null, message: 'why', button: 'reconnect' },
  });
  // The sandbox fell asleep while the connection was lost: no attempt wakes it.
  assert.deepEqual(after(OPEN, failed('shutting_down'), status('stopped')), { name: 'closed', why: 'asleep' });
  assert.deepEqual(after(OPEN, failed('stream_closed'), status('ready'), { type: 'opened' }), OPEN);
});

test('a command that ended with its connection is not run again unasked', () => {
  const state = after(OPEN, failed('stream_closed', false));
  assert.deepEqual(state, {
    name: 'ended',
    end: { code: 'stream_closed', exitCode: null, message: 'why', button: 'start' },
  });
});

for (const [code, button] of [
  ['sandbox_state_conflict', 'wake'],
  ['unauthenticated', 'reconnect'],
  ['timeout', 'reconnect'],
  ['a_code_of_the_future', 'reconnect'],
  ['permission_denied', null],
  ['org_access_denied', null],
  ['sandbox_not_found', null],
] as const) {
  test(`a terminal that ends with ${code} has ${button === null ? 'no button' : `the button ${button}`}`, () => {
    for (const from of [OPEN, ASKING, after(ASKING, status('ready'))]) {
      const state = after(from, failed(code));
      assert.deepEqual(state, { name: 'ended', end: { code, exitCode: null, message: 'why', button } });
      assert.deepEqual(after(state, status('ready'), { type: 'opened' }, failed('x')), state);
      assert.deepEqual(after(state, { type: 'open' }), ASKING);
    }
  });
}

test('an ended shell has its exit code and a button for a new one', () => {
  assert.deepEqual(after(OPEN, { type: 'exited', exitCode: 3 }), {
    name: 'ended',
    end: { code: 'exited', exitCode: 3, message: '', button: 'start' },
  });
});

test('a terminal is released after 15 minutes in the background, and reattached by a key', () => {
  assert.deepEqual([letsGo(null, 9e9), letsGo(0, 899_999), letsGo(0, 900_000)], [false, false, true]);
  const released = after(OPEN, { type: 'detached' });
  assert.deepEqual(released, { name: 'closed', why: 'detached' });
  assert.deepEqual(after(released, status('ready')), released);
  assert.deepEqual(after(released, { type: 'open' }), ASKING);
  assert.deepEqual(after(OPEN, { type: 'open' }), OPEN);
});

test('output is held above 512 KiB unconfirmed, and comes again below 128 KiB', () => {
  const flow = new Flow();
  assert.equal(flow.received(MOST_UNCONFIRMED), false);
  assert.equal(flow.received(1), true);
  assert.equal(flow.received(65_536), false);
  assert.equal(flow.confirmed(MOST_UNCONFIRMED + 1 + 65_536 - 131_072), false);
  assert.equal(flow.confirmed(1), true);
  assert.equal(flow.confirmed(131_071), false);
  assert.equal(flow.received(MOST_UNCONFIRMED + 1), true);
});

test('a character keeps 16 marks, however the output is split', () => {
  const encoder = new TextEncoder();
  const mark = '\u0301';
  const kept = `e${mark.repeat(16)}`;
  const endless = encoder.encode(`e${mark.repeat(500)}x${mark}\u{1F468}\u200D\u{1F469}`);
  for (const size of [1, 3, 7, 64, 5_000]) {
    const output = new OutputText();
    let text = '';
    for (let at = 0; at < endless.length; at += size) text += output.decode(endless.subarray(at, at + size));
    assert.equal(text, `${kept}x${mark}\u{1F468}\u200D\u{1F469}`, `${size}`);
  }
  const output = new OutputText();
  assert.equal(output.decode(encoder.encode('\ufeffé日')), '\ufeffé日');
  assert.equal(output.decode(Uint8Array.of(0xff, 0x41)), '\ufffdA');
  assert.equal(output.decode(encoder.encode(`e${`${mark}\u007f`.repeat(50)}`)).length, 17);
});

test('sizes are at least 50 ms apart', () => {
  assert.deepEqual([resizeInMs(0, 1_000), resizeInMs(1_000, 1_010), resizeInMs(1_000, 1_050)], [0, 40, 0]);
});

test('keys of the bar are the bytes of a keyboard', () => {
  assert.deepEqual(
    (['Escape', 'Tab', '|', '~', 'ArrowUp', 'ArrowLeft'] as const).map((key) => bytesOf(key, false)),
    ['\u001b', '\t', '|', '~', '\u001b[A', '\u001b[D'],
  );
  assert.equal(bytesOf('ArrowDown', true), '\u001bOB');
  assert.deepEqual(['c', 'C', '[', ' ', '?', 'é', 'ls', '1'].map(withControl), [
    ...['\u0003', '\u0003', '\u001b', '\u0000', '\u007f'],
    ...['é', 'ls', '1'],
  ]);
});

test("an address names one of nine shells or the agent's terminal; commands are valid for a shell", () => {
  const asked = ['session=agent', 'session=2', '', 'session=10', 'session=;reboot', 'session=1&session=2'];
  assert.deepEqual(
    asked.map((search) => sessionOf(new URLSearchParams(search))),
    ['agent', '2', '1', '1', '1', '1'],
  );
  const command = shellCommand('2');
  execFileSync('/bin/sh', ['-n', '-c', command]);
  assert.match(command, /new -A -s console-2 /);
});

test('without tmux the shell is a login shell that says how long it lives', () => {
  const env = { PATH: '/nonexistent', SHELL: '/bin/echo' };
  const output = execFileSync('/bin/sh', ['-c', shellCommand('1')], { env, encoding: 'utf8' });
  assert.equal(output, 'tmux is missing: this shell ends with the page.\n-l\n');
});
