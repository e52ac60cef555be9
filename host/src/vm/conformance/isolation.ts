// Conformance: what is left of a VM's process once its guest runs: a uid of its own, no capability, no way to gain one, a system call filter, and
// none of the machine's files. Read from /proc, not from the command line.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { after, before, describe, it } from 'node:test';
import type { ConformanceOptions, Subject, SubjectVm } from './subject.ts';

export function isolationConforms(current: () => Subject, { spec }: ConformanceOptions): void {
  describe('the process of a VM', () => {
    let one: SubjectVm;
    let two: SubjectVm;
    before(async () => {
      one = await current().create(spec);
      two = await current().create(spec);
    });
    after(async () => {
      await current().destroy(one);
      await current().destroy(two);
    });

    it('has, in every thread, no capability, no way to gain one, and a system call filter', () => {
      for (const { running } of [one, two]) {
        const { pid } = running.process;
        const threads = readdirSync(`/proc/${pid}/task`);
        assert.ok(threads.length > 0);
        for (const thread of threads) {
          const status = statusOf(`${pid}/task/${thread}`);
          for (const set of ['CapEff', 'CapPrm', 'CapAmb']) {
            assert.equal(Number(`0x${status.get(set)}`), 0, `${set} of thread ${thread}`);
          }
          assert.deepEqual([status.get('NoNewPrivs'), status.get('Seccomp')], ['1', '2']);
        }
      }
    });

    it('runs as a user and group that no other VM has, and no group beside', () => {
      const [first, second] = [one, two].map(({ running }) => statusOf(String(running.process.pid)));
      for (const status of [first, second]) {
        const uids = status?.get('Uid')?.split(/\s+/) ?? [];
        const gids = status?.get('Gid')?.split(/\s+/) ?? [];
        assert.equal(new Set([...uids, ...gids]).size, 1);
        assert.ok(Number(uids[0]) >= 100_000, `uid ${uids[0]}`);
        const groups = (status?.get('Groups') ?? '').split(/\s+/).filter((group) => group !== '' && group !== gids[0]);
        assert.deepEqual(groups, []);
      }
      assert.notEqual(first?.get('Uid'), second?.get('Uid'));
    });

    it('has network, mounts, processes and IPC of its own', () => {
      const spaces = ['net', 'mnt', 'pid', 'ipc', 'uts'];
      const [first, second] = [one, two].map(({ running }) =>
        spaces.map((space) => readlinkSync(`/proc/${running.process.pid}/ns/${space}`)),
      );
      const own = spaces.map((space) => readlinkSync(`/proc/self/ns/${space}`));
      for (const [at, space] of spaces.entries()) {
        assert.equal(new Set([own[at], first?.[at], second?.[at]]).size, 3, space);
      }
    });

    it('sees none of the machine’s own files', () => {
      for (const { running } of [one, two]) {
        const names = readdirSync(`/proc/${running.process.pid}/root`);
        for (const name of ['etc', 'root', 'home', 'var', 'run', 'proc', 'sys', 'boot', 'srv', 'opt']) {
          assert.ok(!names.includes(name), `/${name}`);
        }
      }
    });
  });
}

function statusOf(path: string): Map<string, string> {
  const lines = readFileSync(`/proc/${path}/status`, 'latin1').split('\n');
  return new Map(lines.map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1).trim()]));
}
