// `berth logs` of a sandbox: why it is as it is, against a real service with a scripted host.
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { Service } from '../world/service.ts';

let service: Service;
before(async () => {
  service = await Service.start();
});
after(() => service.close());
beforeEach(() => {
  service.api.front.console = () => ({ console: { text: 'boot\n', truncated: false, booted: false } });
});

/** Without times. */
const shown = (text: string): string =>
  text.replaceAll(/\d{4}-\d\d-\d\dT[\d:]{8}Z(?: \(\d+ \w+ ago\))?/g, 'AT').replaceAll(/ +$/gm, '');

test('the reason of a failure comes first, with a remedy; then clone, events and console', async () => {
  service.api.front.console = () => ({
    console: { text: '[ 1.0] \u001b[31mKernel\u202e panic\r\nend\n\n', truncated: true, booted: true },
  });
  const { id } = await service.api.makeSandbox('failed', {
    name: 'broken',
    status_reason_code: 'guest_panic',
    status_reason_message: 'it panicked: \u001b[2Jevil',
    wakes_from: 'disk',
    repository: 'acme/web',
    clone_status: 'failed',
    clone_reason_code: 'network',
    clone_reason_message: 'no route',
    last_wake_at: new Date(),
    last_wake_from: 'disk',
    last_wake_reason: 'its snapshot is unusable',
  });
  await service.api.db
    .insertInto('sandbox_clone_output')
    .values({ sandbox_id: id, output: "Cloning into 'work'...\nfatal: no route\n", truncated: false })
    .execute();
  const { code, stdout, stderr } = await service.run(['logs', 'broken']);
  assert.deepEqual([code, stderr], [0, '']);
  assert.equal(
    shown(stdout),
    `${id} is failed: it panicked: \\u001b[2Jevil (guest_panic)
  berth sandbox wake ${id} starts it from its disk

failed      AT
last start  booted from its disk AT: its snapshot is unusable
clone       failed: no route (network)

Output of git
  Cloning into 'work'...
  fatal: no route

Last events

Console, its end
  [ 1.0] Kernel\\u{202e} panic
  end
`,
  );
});

test('a failed sandbox without a disk is to be deleted; a sandbox that sleeps has no console', async () => {
  const lost = await service.api.makeSandbox('failed', {
    status_reason_code: 'machine_lost',
    status_reason_message: 'its host no longer has its VM',
  });
  const { stdout } = await service.run(['logs', lost.id]);
  assert.match(stdout, /^ {2}it cannot be woken: delete it with berth sandbox rm sbx_\w+$/m);
  const asleep = await service.api.makeSandbox('stopped', { wakes_from: 'snapshot' });
  const slept = await service.run(['logs', asleep.id]);
  assert.match(slept.stdout, /^sbx_\w+ is stopped\n/);
  assert.match(slept.stdout, /\nConsole\n {2}the sandbox is asleep: /);
});

test('a restored VM has no boot messages, which is said; its events are listed', async () => {
  service.api.front.console = () => ({ console: { text: '', truncated: false, booted: false } });
  const created = await service.run(['sandbox', 'create']);
  const id = created.stdout.trim();
  const { stdout } = await service.run(['logs', id]);
  assert.match(shown(stdout), /\nLast events\n {2}AT {2}sandbox_ready\n {2}AT {2}sandbox_created\n/);
  assert.match(stdout, /\nConsole, since it was restored, without a boot\n {2}\(nothing was written\)\n$/);
});

test('--json is the API response; options of output require a process', async () => {
  const { id } = await service.api.makeSandbox('ready');
  const { stdout } = await service.run(['logs', id, '--json']);
  const { body } = await service.api.call('GET', `/v1/sandboxes/${id}/diagnostics`);
  assert.deepEqual(JSON.parse(stdout), body);
  for (const options of [['-f'], ['--tail', '1'], ['--since', '1']]) {
    const { code, stderr } = await service.run(['logs', id, ...options]);
    assert.deepEqual(
      [code, /^berth: --\w+ requires a process\n {2}berth ps lists them$/m.test(stderr)],
      [2, true],
      stderr,
    );
  }
});

test('get of a sandbox with a reason names the command', async () => {
  const { id } = await service.api.makeSandbox('failed', { status_reason_code: 'host_lost' });
  const { stderr } = await service.run(['sandbox', 'get', id]);
  assert.equal(stderr, `berth: berth logs ${id} shows why\n`);
});
