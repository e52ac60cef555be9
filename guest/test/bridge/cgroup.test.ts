// The control group of an agent session, in this kernel's cgroup v2 hierarchy.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { cgroupMount } from '../../../os/test/cgroup-mount.ts';
import { killSince, makeCgroup, programGroup } from '../../src/bridge/processes.ts';

const parent = join(cgroupMount(), `berth-agents-${process.pid}`);
const NOBODY = { uid: 65_534, gid: 65_534 };
after(() => removeGroups(parent));

function removeGroups(folder: string): void {
  for (const entry of readdirSync(folder, { withFileTypes: true }))
    if (entry.isDirectory()) removeGroups(join(folder, entry.name));
  rmdirSync(folder);
}

const asUser = (script: string, ...args: string[]): string =>
  execFileSync('setpriv', ['--reuid=65534', '--regid=65534', '--clear-groups', 'sh', '-c', script, ...args], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
  });

function session(name: string): string {
  const group = makeCgroup(parent, name, NOBODY);
  assert.ok(group !== null);
  return group;
}

test('an agent divides its group, and cannot leave it', () => {
  const group = session('one');
  const other = session('two');
  asUser('mkdir "$0/inner"', group);
  const enter = spawn('sh', ['-c', 'echo $$ >"$0/cgroup.procs"; exec sleep 600', programGroup(group)]);
  try {
    const pid = String(enter.pid);
    asUser('until echo "$1" >"$0/inner/cgroup.procs"; do :; done', group, pid);
    assert.equal(readFileSync(join(group, 'inner/cgroup.procs'), 'latin1').trim(), pid);
    for (const outside of [parent, other])
      assert.throws(() => asUser('echo "$1" >"$0/cgroup.procs"', outside, pid), /Command failed/);
    assert.equal(readFileSync(join(group, 'inner/cgroup.procs'), 'latin1').trim(), pid);
    assert.throws(() => asUser('echo 1000 >"$0/cgroup.max.descendants"', group), /Permission denied/);
  } finally {
    enter.kill('SIGKILL');
  }
});

test('an agent makes a bounded number of groups, of a bounded depth', () => {
  const group = session('three');
  asUser('n=0; while [ $n -lt 300 ]; do mkdir "$0/$n" 2>/dev/null || break; n=$((n + 1)); done', group);
  assert.equal(readdirSync(group, { withFileTypes: true }).filter((entry) => entry.isDirectory()).length, 256);
  removeGroups(group);

  const deep = session('four');
  asUser('path=$0; while mkdir "$path/d" 2>/dev/null; do path=$path/d; done', deep);
  assert.equal(existsSync(join(deep, 'd/d/d/d/d/d/d/d')), true);
  assert.equal(existsSync(join(deep, 'd/d/d/d/d/d/d/d/d')), false);
});

test('an interrupt ends what runs in groups that the agent made', async () => {
  const group = session('five');
  mkdirSync(join(group, 'inner'));
  const child = spawn('sh', ['-c', 'echo $$ >"$0/cgroup.procs"; echo in; exec sleep 600', join(group, 'inner')]);
  await once(child.stdout, 'data');
  await killSince({ sessionId: 'five', cgroup: group }, 0, null);
  if (child.signalCode === null) await once(child, 'exit');
  assert.equal(child.signalCode, 'SIGKILL');
});

test('a kernel without the hierarchy gives no group', (context) => {
  const plain = mkdtempSync(join(tmpdir(), 'berth-agents-'));
  context.after(() => rmSync(plain, { recursive: true }));
  assert.equal(makeCgroup(plain, 'six', NOBODY), null);
  assert.equal(makeCgroup('', 'six', NOBODY), null);
});
