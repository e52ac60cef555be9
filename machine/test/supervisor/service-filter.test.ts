// The filter of database and API, as the kernel applies it to a confined program.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FILTERED, filterProbe } from '../../../os/test/service-filter-probe.ts';
import { startConfined } from '../../src/supervisor/child.ts';
import { findServiceUser } from '../../src/supervisor/service-user.ts';

test('a confined service gains no rights by a program, and leaves no core file', async () => {
  let output = '';
  const child = await startConfined(
    {
      user: await findServiceUser(),
      binds: [],
      command: ['sh', '-c', "grep -h -E '^(NoNewPrivs|Max core)' /proc/self/status /proc/self/limits; sleep 1"],
      environment: {},
      workingFolder: '/',
    },
    (chunk) => (output += chunk.toString()),
  );
  assert.equal(await child.exited, 'exit code 0', output);
  assert.match(output, /^NoNewPrivs:\s+1\nMax core file size\s+0\s+0\s+bytes\s*$/);
});

test('a confined service cannot use kernel interfaces that it does not need', async () => {
  let output = '';
  const child = await startConfined(
    {
      user: await findServiceUser(),
      binds: [],
      command: ['perl', '-e', `${filterProbe()} sleep 1;`],
      environment: {},
      workingFolder: '/',
    },
    (chunk) => (output += chunk.toString()),
  );
  assert.equal(await child.exited, 'exit code 0', output);
  assert.deepEqual(output.trim().split('\n'), FILTERED);
});
