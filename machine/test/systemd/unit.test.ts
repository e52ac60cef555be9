import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { unitText } from '../../src/systemd/unit.ts';

const run = promisify(execFile);
const FOLDERS = { checkout: '/opt/berth', dataFolder: '/var/lib/berth', cacheFolder: '/var/cache/berth', version: 257 };

function settingOf(unit: string, name: string): string | undefined {
  return new RegExp(`^${name}=(.*)$`, 'm').exec(unit)?.[1];
}

test('a stop of the unit spares VMs, and none of its settings needs a mount namespace', () => {
  const unit = unitText(FOLDERS);
  assert.deepEqual(
    ['KillMode', 'Delegate', 'OOMPolicy', 'Type', 'Restart'].map((name) => settingOf(unit, name)),
    ['process', 'yes', 'continue', 'notify', 'on-failure'],
  );
  assert.doesNotMatch(unit, /^(Protect|Private|ReadOnly|ReadWrite|Inaccessible|MountFlags|BindPaths|RootDirectory)/m);
});

test('a systemd without DelegateSubgroup delegates nothing', () => {
  assert.equal(settingOf(unitText(FOLDERS), 'DelegateSubgroup'), 'services');
  assert.doesNotMatch(unitText({ ...FOLDERS, version: 252 }), /Delegate|DELEGATED/);
});

test('paths with spaces, quotes and percent signs are quoted', () => {
  const unit = unitText({ ...FOLDERS, checkout: '/opt/a "b"\\c', dataFolder: '/data/100%', cacheFolder: '/c/$x' });
  assert.equal(settingOf(unit, 'ExecStart'), String.raw`"/opt/a \"b\"\\c/berth" up`);
  assert.equal(settingOf(unit, 'RequiresMountsFor'), String.raw`"/opt/a \"b\"\\c" /data/100%% /c/$x`);
});

test('systemd accepts the unit', async (context) => {
  const folder = await mkdtemp(join(tmpdir(), 'berth unit-'));
  context.after(() => rm(folder, { recursive: true }));
  const checkout = join(folder, '100% checkout');
  await mkdir(checkout);
  await writeFile(join(checkout, 'berth'), '', { mode: 0o755 });
  const unit = join(folder, 'berth.service');
  await writeFile(unit, unitText({ ...FOLDERS, checkout, dataFolder: join(folder, 'data') }));
  const { stderr } = await run('systemd-analyze', ['verify', '--man=no', unit]).catch(
    (error: { code?: unknown; stderr: string }) => error,
  );
  // Not on every computer that runs the tests.
  if (stderr === '' || stderr === undefined) return context.skip('no systemd-analyze');
  // Ignored by a systemd before 254.
  const faults = stderr.split('\n').filter((line) => line.includes(unit) && !line.includes('DelegateSubgroup'));
  assert.deepEqual(faults, []);
});
