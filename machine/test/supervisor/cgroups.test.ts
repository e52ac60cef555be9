import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { cgroupFault } from '../../src/supervisor/cgroups.ts';

test('a host whose kernel cannot limit VMs is named with what it lacks', (context) => {
  const root = mkdtempSync(join(tmpdir(), 'berth-cgroup-'));
  context.after(() => rmSync(root, { recursive: true }));
  assert.equal(cgroupFault(root), 'no cgroup v2 in /sys/fs/cgroup');
  writeFileSync(join(root, 'cgroup.controllers'), 'cpuset cpu io\n');
  assert.equal(cgroupFault(root), 'the kernel lacks the cgroup controllers memory, pids');
  writeFileSync(join(root, 'cgroup.controllers'), 'cpu memory pids\n');
  assert.equal(cgroupFault(root), null);
});
