// A killed benchmark or test leaves nothing.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { DataKeys } from '@berth/host/vm/directory/data-keys.ts';
import { isSame, readProcess, type ProcessIdentity } from '@berth/os/process-identity.ts';
import { until } from '../../../os/test/until.ts';
import { readConfig } from '../../src/config/config.ts';
import { CHECKOUT } from '../../src/config/folders.ts';
import { Progress } from '../../src/output/progress.ts';
import { runNode } from '../../src/verbs/bench.ts';
import type { VerbContext } from '../../src/verbs/context.ts';
import { withRunFolder } from '../../src/verbs/run-folder.ts';

/** Starts a process that outlives it, prints its pid, and waits. */
const PROGRAM = `
  const { mkdtempSync } = require('node:fs');
  const { tmpdir } = require('node:os');
  mkdtempSync(tmpdir() + '/data-');
  mkdtempSync(tmpdir() + '/mounted-');
  const child = require('node:child_process').spawn('sh', ['-c', 'echo ready; exec sleep 600'], {
    detached: true,
    stdio: ['ignore', 'pipe', 'ignore'],
    env: { PATH: process.env.PATH, TOKEN_FILE: tmpdir() + '/token' },
  });
  child.stdout.once('data', () => console.log(child.pid));
  setInterval(() => undefined, 1_000);
`;

test('a run whose program is killed leaves no process, mount or file', async () => {
  let folder = '';
  let left: ProcessIdentity | null = null;
  await withRunFolder(async (environment) => {
    folder = environment['TMPDIR'] ?? '';
    const program = spawn(process.execPath, ['-e', PROGRAM], {
      env: { PATH: process.env['PATH'], ...environment },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const [pid] = (await once(createInterface({ input: program.stdout }), 'line')) as [string];
    const [, mounted = ''] = readdirSync(folder).sort();
    execFileSync('mount', ['-t', 'tmpfs', 'tmpfs', `${folder}/${mounted}`]);
    const exited = once(program, 'exit');
    program.kill('SIGINT');
    await exited;
    left = await readProcess(Number(pid));
    assert.ok(left !== null, 'it outlives the program');
  });
  assert.ok(left !== null && !(await isSame(left)));
  assert.equal(existsSync(folder), false);
});

test('a failed run is cleaned up too, and its failure is kept', async () => {
  let folder = '';
  const run = withRunFolder((environment) => {
    folder = environment['TMPDIR'] ?? '';
    return Promise.reject(new Error('the program could not be started'));
  });
  await assert.rejects(run, /could not be started/);
  assert.equal(existsSync(folder), false);
});

test('a killed run leaves no data key and no shared memory', async () => {
  const instanceId = 'runfoldr';
  const keys = await DataKeys.open(instanceId);
  let segment = '';
  await withRunFolder(async (environment) => {
    const data = mkdtempSync(`${environment['TMPDIR']}/data-`);
    writeFileSync(`${data}/instance-id`, `${instanceId}\n`);
    await keys.set('sbx_a', 'key');
    segment = /\d+/.exec(execFileSync('ipcmk', ['--shmem', '56'], { encoding: 'utf8' }))?.[0] ?? '';
    const [key] = segmentOf(segment) ?? [];
    // As PostgreSQL writes it: the seventh line has key and id.
    writeFileSync(`${data}/postmaster.pid`, `4711\n/data\n0\n5432\n/run\n\n  ${key}     ${segment}\nready\n`);
  });
  assert.equal(existsSync(keys.folder), false);
  assert.equal(segmentOf(segment), undefined);
});

/** Fields of the kernel's table: the first is the key, the second the id. */
function segmentOf(id: string): string[] | undefined {
  const lines = readFileSync('/proc/sysvipc/shm', 'latin1').split('\n');
  return lines.map((line) => line.trim().split(/\s+/)).find((fields) => fields[1] === id);
}

const contextOf = (signal: AbortSignal): VerbContext => ({
  config: readConfig({}, {}),
  progress: new Progress(),
  environment: {},
  signal,
  print: (): void => undefined,
});

test('a signal before the program starts ends the run', async () => {
  const reason = new Error('stopped by SIGTERM');
  const program = 'setTimeout(() => process.exit(3), 20_000)';
  await assert.rejects(runNode(['-e', program], contextOf(AbortSignal.abort(reason)), {}), reason);
});

test('an interrupted run fails with the signal, also when the program exits with 0', async () => {
  const stop = new AbortController();
  const reason = new Error('stopped by SIGTERM');
  const folder = mkdtempSync(join(tmpdir(), 'berth-run-'));
  const program = `
    process.once('SIGTERM', () => process.exit(0));
    setInterval(() => undefined, 1_000);
    require('node:fs').writeFileSync('${folder}/ready', '');`;
  try {
    const run = runNode(['-e', program], contextOf(stop.signal), {});
    const rejected = assert.rejects(run, reason);
    await until('the program runs', async () => existsSync(`${folder}/ready`) || null);
    stop.abort(reason);
    await rejected;
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('npm scripts pass a signal on and wait for the clean-up', async () => {
  const { scripts } = JSON.parse(readFileSync(join(CHECKOUT, 'package.json'), 'utf8')) as {
    scripts: Record<string, string>;
  };
  const long = Object.entries(scripts).filter(([, script]) => /\.\/berth |bench\//.test(script));
  assert.ok(long.length >= 12);
  // npm's shell ends at a signal and leaves its children.
  for (const [name, script] of long) assert.match(script, /^exec /, name);

  const folder = mkdtempSync(join(tmpdir(), 'berth-npm-'));
  try {
    writeFileSync(join(folder, 'package.json'), JSON.stringify({ scripts: { chaos: scripts['chaos'] } }));
    const program = `#!${process.execPath}
      process.once('SIGTERM', () => setTimeout(() => { console.log('clean'); process.exit(143); }, 100));
      setInterval(() => undefined, 1_000);
      console.log('ready');`;
    writeFileSync(join(folder, 'berth'), program, { mode: 0o755 });
    const npm = spawn('npm', ['run', '-s', 'chaos'], { cwd: folder, stdio: ['ignore', 'pipe', 'inherit'] });
    const lines: string[] = [];
    createInterface({ input: npm.stdout }).on('line', (line) => {
      lines.push(line);
      if (line === 'ready') npm.kill('SIGTERM');
    });
    const [code] = (await once(npm, 'close')) as [number];
    assert.deepEqual([lines, code], [['ready', 'clean'], 143]);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
