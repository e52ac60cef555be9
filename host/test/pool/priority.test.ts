import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { getPriority } from 'node:os';
import { describe, it } from 'node:test';
import { lowerPriority, standEqual } from '../../src/pool/priority.ts';
import { readProcess } from '@berth/os/process-identity.ts';

function threadsOf(pid: number): number[] {
  return readdirSync(`/proc/${pid}/task`).map(Number);
}

describe(
  'the priority of a process',
  { skip: process.getuid?.() !== 0 && 'a priority is given back by root alone' },
  () => {
    it('is lowered for every thread while it waits and restored for all, new threads included', async () => {
      // Node has several threads; the worker adds one on demand.
      const script = `
        const { Worker } = require('worker_threads');
        const echo = 'require("worker_threads").parentPort.on("message", () => 0)';
        process.stdin.once('data', () =>
          new Worker(echo, { eval: true }).once('online', () => console.log('online')));
        console.log('ready')`;
      const child = spawn(process.execPath, ['-e', script], { stdio: ['pipe', 'pipe', 'inherit'], detached: true });
      try {
        await once(child.stdout, 'data');
        const found = await readProcess(child.pid ?? 0);
        assert.ok(found !== null);
        await lowerPriority(found);
        const before = threadsOf(found.pid);
        assert.ok(before.length > 1);
        assert.deepEqual(new Set(before.map((tid) => getPriority(tid))), new Set([5]));

        child.stdin.write('go\n');
        await once(child.stdout, 'data');
        assert.ok(threadsOf(found.pid).length > before.length);
        await standEqual(found);
        assert.deepEqual(new Set(threadsOf(found.pid).map((tid) => getPriority(tid))), new Set([0]));
        const group = `/proc/${found.pid}/autogroup`;
        assert.match(existsSync(group) ? readFileSync(group, 'utf8') : 'nice 0\n', /nice 0\n$/);
      } finally {
        child.kill('SIGKILL');
        await once(child, 'exit');
      }
    });

    it('can be set for a process that is gone', async () => {
      const gone = { pid: 2 ** 22 - 1, startTicks: '1', bootId: 'none' };
      await lowerPriority(gone);
      await standEqual(gone);
    });
  },
);
