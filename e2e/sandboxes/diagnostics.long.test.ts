// Diagnostics of a real VM: its console while it runs, after a panic, and after the next boot.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { getDiagnostics, type SandboxDiagnostics } from '@berth/contract/diagnostics/diagnostics.ts';
import type { Sandbox } from '@berth/contract/sandboxes/sandboxes.ts';
import { awakeSandbox, call, exec, sleepSandbox, waitForStatus, wakeSandbox } from '../world/client.ts';
import { startInstance, type Instance } from '../world/instance.ts';

let berth: Instance;
let sandbox: Sandbox;

before(async () => {
  berth = await startInstance('diagnostics');
  sandbox = await awakeSandbox(berth);
});

after(async () => {
  await berth?.end();
});

async function diagnostics(): Promise<SandboxDiagnostics> {
  const { status, body } = await call(berth, 'GET', `/v1/sandboxes/${sandbox.id}/diagnostics`);
  assert.equal(status, 200, JSON.stringify(body));
  return getDiagnostics.response.body.parse(body).diagnostics;
}

async function writeToConsole(text: string): Promise<void> {
  const { exitCode, stderr } = await exec(berth, sandbox.id, `printf '${text}' | sudo tee /dev/console >/dev/null`);
  assert.equal(exitCode, 0, stderr);
}

test('the console of a running VM is read, without what would deceive a terminal', async () => {
  await writeToConsole(String.raw`\033[31mred\033[0m \342\200\256hidden\n`);
  const { console, consoleMissing, lastStart, failure } = await diagnostics();
  assert.match(console?.text ?? '', /^red \\u\{202e\}hidden$/m);
  assert.deepEqual([consoleMissing, lastStart.kind, failure], [null, 'create', null]);
});

test('the console of a VM that panicked is kept, also behind a NUL', async () => {
  await writeToConsole(String.raw`before\000after\n`);
  // The command ends with the VM.
  await call(berth, 'POST', `/v1/sandboxes/${sandbox.id}/exec`, {
    command: 'echo c | sudo tee /proc/sysrq-trigger',
    timeoutSeconds: 30,
  });
  await waitForStatus(berth, sandbox.id, ['failed']);
  const { console, failure, wakesFrom } = await diagnostics();
  assert.deepEqual([failure?.code, wakesFrom], ['guest_panic', 'disk']);
  assert.match(failure?.message ?? '', /kernel panicked/);
  assert.match(console?.text ?? '', /before\\u\{0\}after[^]*Kernel panic - not syncing: sysrq triggered crash/);
});

test('after the boot of the disk the console has its messages; asleep there is none', async () => {
  await wakeSandbox(berth, sandbox.id);
  const { console, lastStart, failure } = await diagnostics();
  assert.deepEqual([console?.booted, lastStart.kind, failure], [true, 'boot', null]);
  assert.match(console?.text ?? '', /: booting\./);
  assert.doesNotMatch(console?.text ?? '', /Kernel panic/);
  await sleepSandbox(berth, sandbox.id);
  const asleep = await diagnostics();
  assert.deepEqual([asleep.console, asleep.consoleMissing?.code, asleep.wakesFrom], [null, 'asleep', 'snapshot']);
});
