import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
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

test('an unknown point is refused with the list', () => {
  const points = new CrashPoints(['a', 'b']);
  for (const text of ['c', '', 'a#0', 'a#x']) assert.throws(() => points.arm(text), /is none of a, b/);
});
