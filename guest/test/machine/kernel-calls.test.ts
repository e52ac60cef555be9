// A stand-in plays the helper for kernel calls: the real one would set the host's clock.
import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { KernelCalls } from '../../src/machine/kernel-calls.ts';

/** Stopped after the test. */
function kernelCalls(t: TestContext): KernelCalls {
  const kernel = new KernelCalls('the stand-in ignores its arguments');
  t.after(() => kernel.stop());
  return kernel;
}

/** Puts a `perl` first in the path that records each line, then runs `script` with $line. */
async function standIn(t: TestContext, script: string): Promise<{ lines: () => Promise<string[]> }> {
  const folder = await mkdtemp(join(tmpdir(), 'berth-kernel-calls-'));
  const notes = join(folder, 'lines');
  const program = `#!/bin/sh\nwhile read -r line; do echo "$line" >> ${notes}; ${script}; done\n`;
  await writeFile(join(folder, 'perl'), program, { mode: 0o755 });
  await writeFile(notes, '');
  const path = process.env['PATH'] ?? '';
  process.env['PATH'] = `${folder}:${path}`;
  t.after(async () => {
    process.env['PATH'] = path;
    await rm(folder, { recursive: true });
  });
  return { lines: async () => (await readFile(notes, 'utf8')).trim().split('\n') };
}

test('the helper gets seconds, nanoseconds and the bytes, with the time read last', async (t) => {
  const { lines } = await standIn(t, 'echo ok');
  const kernel = kernelCalls(t);
  kernel.start();
  let now = 1_700_000_000_250;
  await kernel.setClockAndReseed(() => now++, Buffer.alloc(64, 0xab));
  await kernel.setClockAndReseed(() => now++, Buffer.alloc(64));
  assert.deepEqual(await lines(), [
    `clock 1700000000 250000000 ${'ab'.repeat(64)}`,
    `clock 1700000000 251000000 ${'00'.repeat(64)}`,
  ]);
});

test('a failed call is named, and the next one gets a new helper', async (t) => {
  const { lines } = await standIn(
    t,
    'case $line in clock\\ 1\\ *) ' +
      'echo "clock_settime: Operation not permitted"; sleep 0.1; echo late;; *) echo ok;; esac',
  );
  const kernel = kernelCalls(t);
  kernel.start();
  await assert.rejects(
    kernel.setClockAndReseed(() => 1_000, Buffer.alloc(64)),
    /clock_settime: Operation not permitted/,
  );
  await kernel.setClockAndReseed(() => 2_000, Buffer.alloc(64));
  assert.equal((await lines()).length, 2);
});

test('a helper that exits without a response fails the call', async (t) => {
  await standIn(t, 'exit 3');
  const kernel = kernelCalls(t);
  await assert.rejects(
    kernel.setClockAndReseed(() => 1_000, Buffer.alloc(64)),
    /helper for kernel calls ended/,
  );
});
