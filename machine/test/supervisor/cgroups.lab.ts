// Groups of an instance, on a host with all controllers of cgroup v2. Runs in the lab, as root.
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { enterGroups } from '../../src/supervisor/cgroups.ts';

const ownGroup = (): string => readFileSync('/proc/self/cgroup', 'latin1').trim().replace(/^0::/, '/sys/fs/cgroup');
const read = (folder: string, file: string): string => readFileSync(join(folder, file), 'latin1').trim();
const OPTIONS = { dataFolder: '/nonexistent', reserveMib: 64, environment: {} };

function enter(environment: NodeJS.ProcessEnv = {}): Extract<ReturnType<typeof enterGroups>, { folder: string }> {
  const groups = enterGroups({ ...OPTIONS, environment });
  assert.ok(groups.folder !== null, JSON.stringify(groups));
  return groups;
}

test('an instance enters its group, keeps it when it enters again, and leaves nothing', () => {
  const before = ownGroup();
  const { folder, leave } = enter();
  const parent = dirname(folder);
  assert.equal(ownGroup(), join(parent, 'services'));
  assert.match(read(folder, 'cgroup.subtree_control'), /cpu.*memory.*pids/);
  assert.deepEqual([read(join(parent, 'services'), 'cpu.weight'), read(folder, 'cpu.weight')], ['300', '100']);
  assert.equal(read(join(parent, 'services'), 'memory.low'), String(64 * 2 ** 20));

  mkdirSync(join(folder, 'vm-1'));
  writeFileSync(join(folder, 'vm-1', 'memory.max'), '1048576');
  assert.equal(enter().folder, folder);
  assert.equal(read(join(folder, 'vm-1'), 'memory.max'), '1048576');

  rmdirSync(join(folder, 'vm-1'));
  leave();
  assert.equal(ownGroup(), before);
  assert.equal(existsSync(parent), false);
});

test('a delegated group is divided, with all processes that systemd put into it', () => {
  const before = ownGroup();
  const unit = '/sys/fs/cgroup/berth-test.service';
  mkdirSync(unit);
  writeFileSync(join(unit, 'cgroup.procs'), String(process.pid));
  const { folder } = enter({ BERTH_CGROUP_DELEGATED: '1' });
  assert.equal(folder, join(unit, 'vms'));
  assert.equal(ownGroup(), join(unit, 'services'));
  // As after a restart of the supervisor, whose unit kept the groups.
  assert.equal(enter({ BERTH_CGROUP_DELEGATED: '1' }).folder, folder);

  writeFileSync(join(before, 'cgroup.procs'), String(process.pid));
  for (const group of [folder, join(unit, 'services'), unit]) rmdirSync(group);
});
