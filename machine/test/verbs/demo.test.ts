import assert from 'node:assert/strict';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { freePort } from '../../../protocol/test/free-port.ts';
import { TestInstance, runVerb } from './berth-program.ts';

let folder: string;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'berth-demo-'));
});
after(() => rm(folder, { recursive: true, force: true }));

const STEPS = [
  'create a sandbox',
  'uname, id, nproc, free',
  'a command that fails',
  'a command that times out',
  'a command that prints 1 MB',
  'destroy the sandbox',
];

test('the demo runs on real VMs, prints milliseconds for every step and exits with 0', async () => {
  const { code, stdout, stderr } = await runVerb('demo', '--data-dir', folder);
  assert.equal(code, 0, `${stdout}\n${stderr}`);
  for (const step of ['set-up', 'start', ...STEPS]) assert.match(stdout, new RegExp(`^${step} +\\d+ {2}\\S`, 'm'));

  assert.match(stdout, /\n +uid=1000\(berth\) gid=1000\(berth\)/);
  assert.match(stdout, /accelerator (kvm|tcg), QEMU \d/);
});

test('a demo uses a running service; a fault is named and exits with 1', async () => {
  const instance = await TestInstance.make();
  try {
    await instance.up();
    // The fake driver isolates nothing, which the demo must notice: its user has another uid.
    const { code, stdout, stderr } = await runVerb('demo', ...instance.flags);
    assert.equal(code, 1);
    assert.match(stderr, /Using the service that runs with /);
    assert.match(stdout, /^uname, id, nproc, free +\d+ {2}FAILED: unexpected output: Linux/m);
    assert.match(stdout, /^destroy the sandbox +\d+ {2}sbx_\w+ is deleted/m);
    assert.match(stderr, /berth: 1 of 7 steps failed: uname, id, nproc, free\n/);
  } finally {
    await instance.remove(null);
  }
});

test('the doctor finds no fault on this host, and reports a taken port as one', async () => {
  const healthy = await runVerb('doctor', '--data-dir', folder, '--port', String(await freePort()));
  assert.equal(healthy.code, 0, healthy.stdout);
  for (const subject of [
    'system',
    'rights',
    'processor',
    'memory',
    'disk',
    'packages',
    'cgroup',
    'service',
    'port',
    'network',
    'accelerator',
    'image',
    'template',
  ])
    assert.match(healthy.stdout, new RegExp(`^(ok|warn) +${subject} `, 'm'));

  const taken = createServer();
  await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve));
  try {
    const { port } = taken.address() as AddressInfo;
    const { code, stdout } = await runVerb('doctor', '--data-dir', folder, '--port', String(port));
    assert.equal(code, 1);
    assert.match(
      stdout,
      new RegExp(
        `^fault +port +port ${port} on 127\\.0\\.0\\.1 is taken by pid ${process.pid} .*` +
          '\\n +-> choose another with --port',
        'm',
      ),
    );
    assert.match(stdout, /, 1 faults\n$/);
  } finally {
    await new Promise((resolve) => taken.close(resolve));
  }
});
