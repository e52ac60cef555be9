import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { CrashPoints } from '../src/crash-point.ts';

/** Signal that killed a program which arms `armed` and passes `a`, `b`, `a`; null if it exited. */
function endOf(armed: string): NodeJS.Signals | null {
  const file = JSON.stringify(new URL('../src/crash-point.ts', import.meta.url).href);
  const code = `import { CrashPoints } from ${file};
    const points = new CrashPoints(['a', 'b']);
    points.arm(${JSON.stringify(armed)});
    points.pass('a'); points.pass('b'); points.pass('a');`;
  return spawnSync(process.execPath, ['--input-type=module', '--eval', code], { timeout: 30_000 }).signal;
}

test('a program gets SIGKILL only at the armed point, on the requested pass', () => {
  assert.equal(endOf('b'), 'SIGKILL');
  assert.equal(endOf('a#2'), 'SIGKILL');
  assert.equal(endOf('b#2'), null);
});

test('a file arms and disarms points of a running program', (t) => {
  const file = join(mkdtempSync(join(tmpdir(), 'berth-crash-')), 'point');
  t.after(() => rmSync(dirname(file), { recursive: true }));
  const kill = t.mock.method(process, 'kill', () => true);
  const points = new CrashPoints(['a', 'b']);
  writeFileSync(file, '');
  points.arm(`@${file}`);
  points.pass('a');
  writeFileSync(file, 'a#2');
  points.pass('a');
  points.pass('b');
  writeFileSync(file, '');
  points.pass('a');
  writeFileSync(file, 'a#2');
  points.pass('a');
  assert.equal(kill.mock.callCount(), 0);
  points.pass('a');
  assert.deepEqual(kill.mock.calls[0]?.arguments, [process.pid, 'SIGKILL']);
  writeFileSync(file, 'c');
  assert.throws(() => points.pass('a'), /is not one of a, b/);
});

test('an unknown point is refused with the list', () => {
  const points = new CrashPoints(['a', 'b']);
  for (const text of ['c', '', 'a#0', 'a#x']) assert.throws(() => points.arm(text), /is not one of a, b/);
});
