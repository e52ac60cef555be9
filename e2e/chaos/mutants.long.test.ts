// Short chaos runs with agent sessions on the driver without VMs. A run must detect each deliberate
// defect of the bridge.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { promisify } from 'node:util';
import { CHECKOUT } from '@berth/machine/config/folders.ts';
import { LONG_RUN } from '../../os/test/long-run.ts';
import type { Report } from './judging/report.ts';
import { runChaos } from './run.ts';

const run = promisify(execFile);
const SESSION = 'guest/src/bridge/session.ts';
const VOID = "this.#record({ turnId, state: 'void', reason: null, atUnixMs: Date.now(), number: 0 });";

const DEFECTS = [
  {
    title: 'a bridge that takes a turn id twice is detected',
    from: 'if (known !== undefined) return { turn: this.#shown(known), known: true };',
    to: '',
  },
  {
    title: 'a bridge that forgets voids is detected',
    from: VOID,
    to: "return { turnId, state: 'void', reason: null, startedUnixMs: 0, endedUnixMs: 0 };",
  },
] as const;

/** This checkout with one change; needs root. */
async function changed(t: TestContext, path: string, from: string, to: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'berth-mutant-'));
  const [layers, merged] = ['layers', 'merged'].map((name) => join(folder, name)) as [string, string];
  for (const name of [layers, merged]) await mkdir(name);
  // Layers of an overlay must not be on one.
  await run('mount', ['-t', 'tmpfs', 'tmpfs', layers]);
  t.after(async () => {
    await run('umount', ['--lazy', merged]).catch(() => undefined);
    await run('umount', ['--lazy', layers]);
    await rm(folder, { recursive: true });
  });
  const [upper, work] = ['upper', 'work'].map((name) => join(layers, name)) as [string, string];
  for (const name of [upper, work]) await mkdir(name);
  await run('mount', [
    '-t',
    'overlay',
    'overlay',
    '-o',
    `lowerdir=${CHECKOUT},upperdir=${upper},workdir=${work}`,
    merged,
  ]);
  const text = await readFile(join(merged, path), 'utf8');
  assert.equal(text.split(from).length, 2, `${path} has changed: ${from}`);
  await writeFile(join(merged, path), text.replace(from, to));
  return merged;
}

const RUN = {
  seed: '1',
  /** Upper bound: each run ends when it has enough. */
  minutes: 5,
  clients: 0,
  agents: 2,
  driver: 'fake',
  say: (line: string) => console.log(line),
  signal: new AbortController().signal,
} as const;

test('killed daemons, bridges and agents replay no turn and lose no reply', async () => {
  const isEnough = ({ counts: { turns, kills } }: Report): boolean => turns > 3 && kills > 3;
  const report = await runChaos({ ...RUN, disturbanceMs: 2_000, isEnough });
  console.log(report.tally().join('\n'));
  console.log(report.lastLine(RUN.seed, RUN.minutes));
  assert.deepEqual(report.findings, []);
  assert.ok(isEnough(report), JSON.stringify(report.counts));
});

// The first takes minutes to show.
for (const { title, from, to } of DEFECTS.slice(LONG_RUN ? 0 : 1)) {
  test(title, async (t) => {
    const checkout = await changed(t, SESSION, from, to);
    const isEnough = (run: Report): boolean => run.count('turn-replayed') > 0;
    const disturbances = ['late-message'] as const;
    const report = await runChaos({ ...RUN, checkout, disturbanceMs: 1_000, disturbances, isEnough });
    console.log(report.tally().join('\n'));
    assert.ok(isEnough(report), JSON.stringify(report.findings));
  });
}
