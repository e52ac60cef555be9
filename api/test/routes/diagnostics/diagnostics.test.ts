// Diagnostics of sandboxes over HTTP with a scripted host.
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { sandboxDiagnostics } from '@berth/contract/diagnostics/diagnostics.ts';
import type { ActivityKind } from '@berth/contract/route/activity-kinds.ts';
import { insertActivity } from '../../../src/store/activity/activity.ts';
import { ExecRefusal } from '../../world/guests/exec-refusal.ts';
import { startApi, type Answer, type TestApi } from '../../world/api.ts';

let api: TestApi;
before(async () => {
  api = await startApi({ durable: false });
});
after(() => api.close());
/** Reads of consoles, with their bodies. */
let reads: [id: string, body: Record<string, unknown>][] = [];
beforeEach(() => {
  reads = [];
  consoleIs({ text: 'one\n', truncated: false, booted: false });
});

function consoleIs(console: object): void {
  api.front.console = (id, body) => {
    reads.push([id, body]);
    return { console };
  };
}

const call = (id: string, path = ''): Promise<Answer> => api.call('GET', `/v1/sandboxes/${id}${path}`);

async function diagnose(id: string) {
  const { status, body } = await call(id, '/diagnostics');
  assert.equal(status, 200, JSON.stringify(body));
  return sandboxDiagnostics.parse((body as { diagnostics: unknown }).diagnostics);
}

test('a ready sandbox has its create, its console and no failure', async () => {
  const { id, created_at: createdAt } = await api.makeSandbox('ready');
  const { status, failure, wakesFrom, lastStart, clone, console, consoleMissing } = await diagnose(id);
  assert.deepEqual([status, failure, wakesFrom, clone, consoleMissing], ['ready', null, null, null, null]);
  assert.deepEqual(lastStart, { kind: 'create', at: createdAt.toISOString(), reason: null });
  assert.deepEqual(console, { text: 'one\n', truncated: false, booted: false });
  assert.deepEqual(reads, [[id, {}]]);
});

test('a failed sandbox has its reason and the console of its dead VM', async () => {
  const reason = { status_reason_code: 'guest_panic', status_reason_message: 'it panicked' };
  const { id, status_changed_at: at } = await api.makeSandbox('failed', { ...reason, wakes_from: 'disk' });
  const { failure, wakesFrom, console } = await diagnose(id);
  assert.deepEqual(failure, { code: 'guest_panic', message: 'it panicked', at: at.toISOString() });
  assert.deepEqual([wakesFrom, console?.text], ['disk', 'one\n']);
});

test('a sandbox that booted its disk has the reason, and a console with its boot', async () => {
  consoleIs({ text: 'Linux version 6.12\n', truncated: false, booted: true });
  const at = new Date('2026-01-01T00:00:00.000Z');
  const { id } = await api.makeSandbox('ready', {
    last_wake_at: at,
    last_wake_from: 'disk',
    last_wake_reason: 'its snapshot is unusable',
  });
  const { lastStart, console } = await diagnose(id);
  assert.deepEqual(lastStart, { kind: 'boot', at: at.toISOString(), reason: 'its snapshot is unusable' });
  assert.equal(console?.booted, true);
});

test('diagnostics of a sleeping sandbox wake nothing, are no use of it, and call no host', async () => {
  const { id } = await api.makeSandbox('stopped', { wakes_from: 'snapshot' });
  const before = (await call(id)).body;
  const { status, console, consoleMissing } = await diagnose(id);
  assert.deepEqual([status, console, consoleMissing?.code], ['stopped', null, 'asleep']);
  assert.deepEqual((await call(id)).body, before);
  assert.deepEqual(reads, []);
});

test('after a failed wake the host may have the console of a boot', async () => {
  consoleIs({ text: 'No working init found.', truncated: false, booted: true });
  const reason = { status_reason_code: 'wake_failed', status_reason_message: 'no response' };
  const { id } = await api.makeSandbox('stopped', { wakes_from: 'disk', ...reason });
  const { failure, console } = await diagnose(id);
  assert.deepEqual([failure?.code, console?.text], ['wake_failed', 'No working init found.']);
});

for (const [status, code] of [
  ['provisioning', 'busy'],
  ['waking', 'busy'],
  ['sleeping', 'busy'],
  ['destroying', 'deleted'],
  ['deleted', 'deleted'],
] as const) {
  test(`the console of a sandbox that is ${status} is missing as ${code}`, async () => {
    const { id } = await api.makeSandbox(status);
    assert.equal((await diagnose(id)).consoleMissing?.code, code);
    assert.deepEqual(reads, []);
  });
}

for (const [what, answer, code] of [
  ['of an earlier release', new ExecRefusal('route_not_found', 'no route'), 'host_outdated'],
  ['without the VM', new ExecRefusal('vm_not_found', 'no VM'), 'not_kept'],
  ['that fails', new ExecRefusal('internal', '/var/lib/berth/host is on fire'), 'host_unavailable'],
  ['that cannot open the console', { console: null, missing: 'sealed' }, 'data_key_unusable'],
  ['whose QEMU hangs', { console: null, missing: 'no_response' }, 'no_response'],
  ['that sends no console', { console: { text: 7 } }, 'host_unavailable'],
  [
    'that sends too much',
    { console: { text: 'x'.repeat(65_537), truncated: false, booted: false } },
    'host_unavailable',
  ],
] as const) {
  test(`the console at a host ${what} is missing as ${code}, without the words of the host`, async () => {
    api.front.console = () => {
      if (answer instanceof ExecRefusal) throw answer;
      return answer;
    };
    const { id } = await api.makeSandbox('ready');
    const found = await diagnose(id);
    assert.deepEqual([found.console, found.consoleMissing?.code], [null, code]);
    assert.doesNotMatch(found.consoleMissing?.message ?? '', /fire|var/);
  });
}

test('an unreachable host, and none at all, are reasons, not errors', async () => {
  const gone = await api.makeSandbox('failed', { status_reason_code: 'not_created', host_id: null });
  assert.equal((await diagnose(gone.id)).consoleMissing?.code, 'no_host');
  const { id } = await api.makeSandbox('ready');
  await api.db.updateTable('host').set({ url: 'unix:/nonexistent/host.sock' }).execute();
  try {
    assert.equal((await diagnose(id)).consoleMissing?.code, 'host_unavailable');
  } finally {
    await api.db.updateTable('host').set({ url: api.front.url }).execute();
  }
});

test('a hostile console is text: no escapes, nothing hidden or turned around, at most 64 KiB', async () => {
  const { id } = await api.makeSandbox('ready');
  consoleIs({
    text: '\u001b[31mred\u001b[0m\r\n\u001b]0;title\u0007ok\r\rback\u0000\u202e\ufffd\u200b\ttab\ud800',
    truncated: false,
    booted: false,
  });
  assert.equal((await diagnose(id)).console?.text, 'red\nok\nback\\u{0}\\u{202e}\ufffd\\u{200b}\ttab\\u{d800}');
  consoleIs({ text: `${'\u202e'.repeat(65_533)}end`, truncated: false, booted: false });
  const { console } = await diagnose(id);
  assert.deepEqual(
    [console?.text.length, console?.truncated, console?.text.slice(-10)],
    [65_536, true, '\\u{202e}end'.slice(-10)],
  );
});

test("events are the sandbox's own, newest first, without commands, actors and details", async () => {
  const { id } = await api.makeSandbox('ready');
  const other = await api.makeSandbox('ready');
  const add = async (sandboxId: string, kind: ActivityKind, details = {}): Promise<void> => {
    const actor = { kind: 'system', id: null, userId: null } as const;
    const { orgId, projectId } = api;
    await insertActivity(api.db, { orgId, projectId, sandboxId, actor, kind, details });
  };
  await add(other.id, 'sandbox_failed');
  for (let times = 0; times < 22; times += 1) await add(id, 'sandbox_woken');
  await add(id, 'sandbox_failed', { reason: { code: 'guest_panic', message: 'it panicked' }, secret: 'detail' });
  await add(id, 'sandbox_exec');
  const { events } = await diagnose(id);
  assert.equal(events.length, 20);
  const [first, second] = events;
  assert.deepEqual([first?.kind, first?.reason], ['sandbox_failed', 'it panicked']);
  assert.deepEqual(Object.keys(first ?? {}), ['at', 'kind', 'reason']);
  assert.deepEqual([second?.kind, second?.reason], ['sandbox_woken', null]);
  assert.ok((first?.at ?? '') >= (second?.at ?? 'x'));
});

test("git's output is shown with the clone, and gone with the sandbox", async () => {
  const clone = { repository: 'acme/web', clone_status: 'failed', clone_reason_code: 'network' } as const;
  const { id } = await api.makeSandbox('ready', clone);
  assert.deepEqual((await diagnose(id)).clone, {
    status: 'failed',
    reason: { code: 'network', message: 'network' },
    output: null,
    truncated: false,
  });
  await api.db
    .insertInto('sandbox_clone_output')
    .values({ sandbox_id: id, output: 'fatal: no\n', truncated: true })
    .execute();
  const found = (await diagnose(id)).clone;
  assert.deepEqual([found?.output, found?.truncated], ['fatal: no\n', true]);
  await api.call('POST', `/v1/sandboxes/${id}/destroy`);
  assert.equal((await diagnose(id)).clone?.output, null);
});
