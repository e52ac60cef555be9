// Connections that a wake aborts: those that leave the guest, at once and with an error, and no
// others. Runs in its own network and PID namespace, because the helper enters every network
// namespace that it can see. Needs root.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { HELPER_CALL_NUMBERS } from '../../src/machine/kernel-calls.ts';

const HELPER = fileURLToPath(new URL('../../src/machine/kernel-calls.pl', import.meta.url));
const SCENE = fileURLToPath(new URL('abort-connections.py', import.meta.url));

async function sceneOutput(): Promise<Record<string, string>> {
  const numbers = HELPER_CALL_NUMBERS[process.arch] ?? [];
  const helper = JSON.stringify(['perl', HELPER, ...numbers.map(String)]);
  const spaces = ['--net', '--mount', '--pid', '--fork', '--kill-child=KILL', '--mount-proc'];
  const child = spawn('unshare', [...spaces, 'python3', SCENE, helper], {
    stdio: ['ignore', 'pipe', 'inherit'],
    timeout: 60_000,
    killSignal: 'SIGKILL',
  });
  const chunks: Buffer[] = [];
  child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk));
  const code = await new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', resolve);
  });
  assert.equal(code, 0);
  return JSON.parse(Buffer.concat(chunks).toString('utf8')) as Record<string, string>;
}

const isRoot = process.getuid?.() === 0;

test(
  "connections that leave the VM fail at once; those within it and the caller's stay",
  { skip: !isRoot },
  async () => {
    assert.deepEqual(await sceneOutput(), {
      answers: 'ok ok ok',
      beyond: 'ECONNABORTED',
      'beyond, IPv6 socket': 'ECONNABORTED',
      'beyond, from a container': 'ECONNABORTED',
      'accepted from beyond': 'ECONNABORTED',
      caller: 'open',
      loopback: 'open',
      'loopback, IPv6': 'open',
      'loopback, IPv4 in IPv6': 'open',
      'own address': 'open',
      'to a container': 'open',
      'loopback of a container': 'open',
      'connected UDP': 'open',
      listening: 'takes connections',
    });
  },
);

test('the helper reports unknown requests with a sentence', async () => {
  const child = spawn('perl', [HELPER, '0', '0'], { stdio: ['pipe', 'pipe', 'inherit'] });
  const chunks: Buffer[] = [];
  child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk));
  child.stdin.end('dance now\n');
  await new Promise((resolve) => child.once('close', resolve));
  assert.equal(Buffer.concat(chunks).toString('utf8'), 'what is dance?\n');
});

test('stage 1 of the image loads the module that the helper needs', async () => {
  const stage = await readFile(new URL('../../../image/recipe/root/etc/runit/1', import.meta.url), 'utf8');
  assert.match(stage, /^try modprobe tcp_diag$/m);
});
