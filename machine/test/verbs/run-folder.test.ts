// A killed benchmark or test leaves nothing.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { isSame, readProcess, type ProcessIdentity } from '@berth/os/process-identity.ts';
import { readConfig } from '../../src/config/config.ts';
import { Progress } from '../../src/output/progress.ts';
import { runNode } from '../../src/verbs/bench.ts';
import { withRunFolder } from '../../src/verbs/run-folder.ts';

/** Starts a process that outlives it, prints its pid, and waits. */
const PROGRAM = `
  const { mkdtempSync } = require('node:fs');
  const { tmpdir } = require('node:os');
  mkdtempSync(tmpdir() + '/data-');
  const child = require('node:child_process').spawn('sh', ['-c', 'echo ready; exec sleep 600'], {
    detached: true,
    stdio: ['ignore', 'pipe', 'ignore'],
    env: { PATH: process.env.PATH, BERTH_RUN_FOLDER: process.env.BERTH_RUN_FOLDER },
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
    const [data = ''] = readdirSync(folder);
    execFileSync('mount', ['-t', 'tmpfs', 'tmpfs', `${folder}/${data}`]);
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

test('a signal before the program starts ends the run', async () => {
  const context = {
    config: readConfig({}, {}),
    progress: new Progress(),
    environment: {},
    signal: AbortSignal.abort(),
    print: (): void => undefined,
  };
  assert.equal(await runNode(['-e', 'setTimeout(() => process.exit(3), 20_000)'], context, {}), 130);
});
