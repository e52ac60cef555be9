// The console of a sandbox through control plane, host daemon with its fake driver, and a guest
// that writes it.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { after, before, test } from 'node:test';
import { sandboxDiagnostics, type SandboxDiagnostics } from '@berth/contract/diagnostics/diagnostics.ts';
import { FakeInstallation } from './fake-installation.ts';

/** Distinctive text, as the test searches for it on the disk. */
const LAST = 'Kernel panic - not syncing: WatchedForOnTheDisk';
const GIB = 2 ** 30;

let berth: FakeInstallation;
before(async () => {
  berth = await FakeInstallation.start({});
});
after(() => berth.stop());

async function diagnose(id: string): Promise<SandboxDiagnostics> {
  const answer = await berth.call('GET', `/v1/sandboxes/${id}/diagnostics`);
  return sandboxDiagnostics.parse(answer['diagnostics']);
}

/** Files of the host daemon with the text, without those of the guest itself. */
function filesWithText(): string[] {
  try {
    const found = execFileSync('grep', ['-rlaF', LAST, berth.folder], { encoding: 'utf8' });
    return found.split('\n').filter((path) => path !== '' && !path.includes('/vm/'));
  } catch (error) {
    if ((error as { status?: number }).status === 1) return [];
    throw error;
  }
}

test('the last 64 KiB of a console of 1 GiB outlive its VM and the daemon, until the wake', async () => {
  const { id } = await berth.create({ projectId: await berth.makeProject({ name: 'console' }) });
  await berth.until(id, ({ status }) => status === 'ready');
  assert.deepEqual((await diagnose(id)).console, { text: '', truncated: false, booted: false });

  await berth.exec(id, `truncate -s ${GIB} /run/console; printf '\\033[31m\\n%s' '${LAST}' >> /run/console`);
  const live = (await diagnose(id)).console;
  assert.deepEqual([live?.truncated, live?.text.endsWith(`\n${LAST}`)], [true, true]);
  assert.ok((live?.text.length ?? Infinity) <= 65_536);

  const end = "for p in /proc/[0-9]*; do grep -qs '[g]uestd.mjs' $p/cmdline && kill -9 ${p#/proc/}; done";
  await assert.rejects(berth.exec(id, end));
  await berth.until(id, ({ status }) => status === 'failed');
  const dead = await diagnose(id);
  assert.deepEqual([dead.failure?.code, dead.wakesFrom, dead.console], ['process_ended', 'disk', live]);
  assert.deepEqual(filesWithText(), []);

  await berth.end('host');
  assert.deepEqual((await diagnose(id)).consoleMissing?.code, 'host_unavailable');
  await berth.run('host');
  assert.deepEqual((await diagnose(id)).console, live);

  await berth.call('POST', `/v1/sandboxes/${id}/wake`);
  await berth.until(id, ({ status }) => status === 'ready');
  const woken = await diagnose(id);
  assert.deepEqual([woken.lastStart.kind, woken.failure], ['boot', null]);
  assert.deepEqual(woken.console, { text: '', truncated: false, booted: true });

  await berth.call('POST', `/v1/sandboxes/${id}/sleep`);
  await berth.until(id, ({ status }) => status === 'stopped');
  assert.equal((await diagnose(id)).consoleMissing?.code, 'asleep');
  assert.equal((await berth.get(id)).status, 'stopped');
});
