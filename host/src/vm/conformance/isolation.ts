// Conformance: confinement of a VM's process once its guest runs: a dedicated uid, no capabilities
// and no way to gain any, a system call filter, no host files. Reads /proc, not the command line.
import assert from 'node:assert/strict';
import { existsSync, lstatSync, readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs';
import { basename, join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { ConformanceOptions, Subject, SubjectVm } from './subject.ts';

/** Paths as the VM's process sees them. */
const OPEN_IN_A_VM =
  /^(\/dev\/(null|kvm|net\/tun)|anon_inode:\S+|socket:\[\d+\]|\/memfd:.*|\/(image|template|vm)\/[\w.-]+)$/;
/** Messages, and the listener and connection of its control. */
const SOCKETS_OF_A_VM = 3;

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
          for (const set of ['CapEff', 'CapPrm', 'CapAmb', 'CapBnd'])
            assert.equal(Number(`0x${status.get(set)}`), 0, `${set} of thread ${thread}`);

          assert.deepEqual([status.get('NoNewPrivs'), status.get('Seccomp')], ['1', '2']);
          // The jail's allow-list, and that of QEMU itself.
          assert.ok(Number(status.get('Seccomp_filters') ?? 2) >= 2);
        }
      }
    });

    it('runs as a user and group that no other VM has, without supplementary groups', () => {
      const [first, second] = [one, two].map(({ running }) => statusOf(String(running.process.pid)));
      for (const status of [first, second]) {
        const uids = status?.get('Uid')?.split(/\s+/) ?? [];
        const gids = status?.get('Gid')?.split(/\s+/) ?? [];
        assert.equal(new Set([...uids, ...gids]).size, 1);
        // Neither a user's uid nor a subordinate uid for containers.
        assert.ok(Number(uids[0]) >= 65_536 && Number(uids[0]) < 100_000, `uid ${uids[0]}`);
        const groups = (status?.get('Groups') ?? '').split(/\s+/).filter((group) => group !== '' && group !== gids[0]);
        assert.deepEqual(groups, []);
      }
      assert.notEqual(first?.get('Uid'), second?.get('Uid'));
    });

    it('has its own network, mount, process and IPC namespaces', () => {
      const spaces = ['net', 'mnt', 'pid', 'ipc', 'uts'];
      const [first, second] = [one, two].map(({ running }) =>
        spaces.map((space) => readlinkSync(`/proc/${running.process.pid}/ns/${space}`)),
      );
      const own = spaces.map((space) => readlinkSync(`/proc/self/ns/${space}`));
      for (const [at, space] of spaces.entries())
        assert.equal(new Set([own[at], first?.[at], second?.[at]]).size, 3, space);
    });

    it('can write only to files in its folder, through descriptors, mappings and paths', () => {
      for (const { running, folder } of [one, two]) {
        const { pid } = running.process;
        const own = readdirSync(folder).map((name) => identityOf(join(folder, name)));
        const open = openFiles(pid);
        assert.ok(open.some(({ writable }) => writable) && open.some(({ writable }) => !writable), 'files are open');
        assert.deepEqual(
          open.filter(({ file, writable }) => writable && !own.includes(file)),
          [],
        );
        // A shared writable mapping writes to its file.
        const mapped = readFileSync(`/proc/${pid}/maps`, 'latin1').split('\n');
        const written = mapped.filter((line) => /^\S+ .w.s /.test(line) && / \/(?!dev\/zero|memfd:)/.test(line));
        assert.deepEqual(written, []);
        const mounts = readFileSync(`/proc/${pid}/mountinfo`, 'latin1').trim().split('\n');
        const shown = mounts
          .map((line) => line.split(' '))
          .filter(([, , , , path = '']) => /^\/(usr|image|template)(\/|$)/.test(path));
        assert.ok(shown.length >= 3, 'program, image and template are mounts');
        assert.deepEqual(
          shown.filter(([, , , , , options = '']) => !options.split(',').includes('ro')),
          [],
        );
      }
    });

    it('has no open file but its disk, image, template, devices, event queues and sockets', () => {
      for (const { running } of [one, two]) {
        const folder = `/proc/${running.process.pid}/fd`;
        const open = readdirSync(folder).map((fd) => readlinkSync(`${folder}/${fd}`));
        assert.ok(
          open.some((path) => path.startsWith('/vm/')),
          'its disk is open',
        );
        assert.deepEqual(
          open.filter((path) => !OPEN_IN_A_VM.test(path)),
          [],
        );
        assert.ok(open.filter((path) => path.startsWith('socket:')).length <= SOCKETS_OF_A_VM, open.join(', '));
      }
    });

    it('is limited in memory by the size of its VM', () => {
      for (const { running } of [one, two]) {
        const memory = limitOf(running, 'Max data size');
        assert.ok(memory >= spec.memoryMib * 2 ** 20 && memory <= (spec.memoryMib + 1_536) * 2 ** 20, `${memory}`);
        assert.ok(limitOf(running, 'Max address space') <= memory + 16 * 2 ** 30);
        assert.ok(limitOf(running, 'Max open files', 'hard') <= 1_024);
      }
    });

    it('leaves no core file, is limited in file size by its disk, and is the first OOM victim', () => {
      for (const { running } of [one, two]) {
        assert.equal(limitOf(running, 'Max core file size', 'hard'), 0);
        const largestFile = limitOf(running, 'Max file size');
        assert.ok(largestFile >= spec.diskGib * 2 ** 30 && largestFile <= (spec.diskGib + 2) * 2 ** 30);
        assert.ok(limitOf(running, 'Max processes', 'hard') <= 10_000);
        assert.equal(Number(readFileSync(`/proc/${running.process.pid}/oom_score_adj`, 'latin1')), 1_000);
      }
    });

    it('sees none of the host’s own files', () => {
      for (const { running } of [one, two]) {
        const names = readdirSync(`/proc/${running.process.pid}/root`);
        for (const name of ['etc', 'root', 'home', 'var', 'run', 'proc', 'sys', 'boot', 'srv', 'opt'])
          assert.ok(!names.includes(name), `/${name}`);

        const programs = ['bin', 'sbin', 'libexec', 'local'].flatMap((folder) => listed(running, `usr/${folder}`));
        assert.deepEqual(programs, [basename(readlinkSync(`/proc/${running.process.pid}/exe`))]);
      }
    });
  });
}

function limitOf({ process }: SubjectVm['running'], name: string, kind: 'soft' | 'hard' = 'soft'): number {
  const limits = readFileSync(`/proc/${process.pid}/limits`, 'latin1');
  return Number(new RegExp(`^${name} +(\\S+) +(\\S+)`, 'm').exec(limits)?.[kind === 'soft' ? 1 : 2]);
}

/** Names in a folder as the VM's process sees it; none if it has no such folder. */
function listed({ process }: SubjectVm['running'], folder: string): string[] {
  const path = `/proc/${process.pid}/root/${folder}`;
  return existsSync(path) ? readdirSync(path) : [];
}

function statusOf(path: string): Map<string, string> {
  const lines = readFileSync(`/proc/${path}/status`, 'latin1').split('\n');
  return new Map(lines.map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1).trim()]));
}

/** Device and inode of a path, independent of the mount namespace. */
function identityOf(path: string): string {
  const { dev, ino } = statSync(path);
  return `${dev}:${ino}`;
}

function openFiles(pid: number): { file: string; path: string; writable: boolean }[] {
  return readdirSync(`/proc/${pid}/fd`)
    .map((fd) => `/proc/${pid}/fd/${fd}`)
    .filter((path) => lstatSync(path).isSymbolicLink() && statSync(path).isFile())
    .map((path) => {
      const flags = Number.parseInt(
        /^flags:\s+(\d+)$/m.exec(readFileSync(path.replace('/fd/', '/fdinfo/'), 'latin1'))?.[1] ?? '',
        8,
      );
      // Access mode in the two lowest bits: 0 is read-only.
      return { file: identityOf(path), path: readlinkSync(path), writable: (flags & 3) !== 0 };
    });
}
