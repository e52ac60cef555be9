// bench:cli runs without the run folder of the other benchmarks.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { until } from '../../os/test/until.ts';

const PROGRAM = join(import.meta.dirname, '..', 'cli.ts');

test('an interrupted benchmark of the CLI leaves no folder and exits with 128 + signal', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'berth-interrupt-'));
  try {
    for (const [signal, code] of [
      ['SIGINT', 130],
      ['SIGTERM', 143],
    ] as const) {
      const bench = spawn(process.execPath, [PROGRAM], {
        env: { ...process.env, TMPDIR: folder },
        stdio: ['ignore', 'ignore', 'inherit'],
      });
      const exited = once(bench, 'exit');
      await until(
        'the benchmark runs',
        async () => (await readdir(folder)).find((name) => name.includes('cli')) ?? null,
      );
      // Ctrl-C in npm: the terminal and npm each send one.
      bench.kill(signal);
      bench.kill(signal);
      assert.deepEqual(await exited, [code, null]);
      assert.deepEqual(
        (await readdir(folder)).filter((name) => name.includes('cli')),
        [],
      );
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});
