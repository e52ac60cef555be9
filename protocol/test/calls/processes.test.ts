// Responses of guests that break the rules of processes.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readProcessOutput } from '../../src/calls/processes.ts';
import type { GuestProcess } from '../../src/processes.ts';

const PROCESS: GuestProcess = {
  ...{ processId: 'prc_aaaaaaaaaaaaaaaaaaaaaaaa', name: null, command: 'true', cwd: '/code', user: 'berth' },
  ...{ tty: false, hasInput: false, keepAwake: false, startedUnixMs: 1, end: null },
};
const piece = (stream: string, offset: number) => ({ stream, offset, base64: 'YQ==' });
const isValid = (starts: object, ...pieces: object[]): boolean =>
  readProcessOutput.response.safeParse({ process: PROCESS, starts, pieces, closed: [] }).success;

test('a response has at most one piece of each stream that was read, from its start on', () => {
  const starts = { stdout: 5, stderr: 0 };
  assert.ok(isValid(starts));
  assert.ok(isValid(starts, piece('stdout', 5), piece('stderr', 9)));
  assert.ok(!isValid(starts, piece('stdout', 4)), 'before its start');
  assert.ok(!isValid(starts, piece('output', 5)), 'not read');
  assert.ok(!isValid(starts, piece('stdout', 5), piece('stdout', 6)), 'twice');
});
