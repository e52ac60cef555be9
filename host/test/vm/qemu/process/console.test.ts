// The console of a VM in QEMU's own ring, of a QEMU without a machine: the test writes as a guest.
import assert from 'node:assert/strict';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { CONSOLE_BYTES } from '@berth/protocol/calls/vms.ts';
import { readProcess } from '@berth/os/process-identity.ts';
import { z } from 'zod';
import { VM_FILES } from '../../../../src/vm/qemu/machine/argv.ts';
import { openQmp, type QmpSession } from '../../../../src/vm/qemu/machine/qmp.ts';
import { QEMU_PROGRAM } from '../../../../src/vm/qemu/machine/qemu-version.ts';
import { Console, panicIn } from '../../../../src/vm/qemu/process/console.ts';
import { Control } from '../../../../src/vm/qemu/process/control.ts';

const signal = AbortSignal.timeout(60_000);
let folder: string;
let qemu: ChildProcess;
let qmp: QmpSession;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'berth-console-'));
  const ring = `ringbuf,id=console,size=${CONSOLE_BYTES}`;
  const socket = join(folder, VM_FILES.control);
  qemu = spawn(
    QEMU_PROGRAM,
    [
      '-machine',
      'none',
      '-nodefaults',
      '-display',
      'none',
      '-chardev',
      ring,
      '-qmp',
      `unix:${socket},server=on,wait=off`,
    ],
    { stdio: 'inherit', cwd: folder },
  );
  qmp = await openQmp(socket, () => undefined, { signal });
});
afterEach(async () => {
  qmp.close();
  if (qemu.exitCode === null && qemu.signalCode === null) {
    qemu.kill('SIGKILL');
    await once(qemu, 'exit');
  }
  await rm(folder, { recursive: true });
});

async function write(content: Buffer | string): Promise<void> {
  const data = Buffer.from(content).toString('base64');
  await qmp.command('ringbuf-write', { device: 'console', data, format: 'base64' }, z.unknown(), { signal });
}

test('the last 64 KiB of a guest that writes without end are kept, in no file', async () => {
  const console = new Console();
  const chunk = Buffer.alloc(60_000, 'x');
  for (let times = 0; times < 4; times += 1) await write(chunk);
  await write('the end');
  await console.take(qmp, signal);
  assert.deepEqual([console.content?.text.length, console.content?.truncated], [CONSOLE_BYTES, true]);
  assert.ok(console.content?.text.endsWith('xthe end'));
  await write('!');
  await console.take(qmp, signal);
  assert.deepEqual([console.content?.text.length, console.content?.text.slice(-4)], [CONSOLE_BYTES, 'end!']);
  assert.deepEqual(await readdir(folder), [VM_FILES.control]);
});

test('nothing that a guest writes hides what follows: NUL, invalid UTF-8, escapes', async () => {
  const console = new Console();
  const before = console.content;
  assert.equal(before, null);
  const hidden = Buffer.concat([Buffer.from([0, 0xff, 0xc0]), Buffer.from('\u001b[2J\u0085')]);
  await write(Buffer.concat([hidden, Buffer.from('Kernel panic - not syncing: found\n')]));
  await console.take(qmp, signal);
  assert.equal(console.content?.text, '\0\ufffd\ufffd\u001b[2J\u0085Kernel panic - not syncing: found\n');
  assert.equal(console.content.truncated, false);
  assert.equal(panicIn(console.content.text), 'found');
});

test('a control keeps what was read beyond the exit of QEMU, and knows when nothing was', async () => {
  const process = await readProcess(qemu.pid ?? 0);
  assert.ok(process);
  const warned: string[] = [];
  const [reader, other] = [0, 1].map(() => new Control(process, null, (message) => warned.push(message)));
  assert.ok(reader && other);
  reader.attach(qmp);
  await write('one ');
  await Promise.all([reader.readConsole(signal), reader.readConsole(signal)]);
  await write('two');
  assert.deepEqual(await reader.readConsole(signal), { text: 'one two', truncated: false });
  qemu.kill('SIGKILL');
  await once(qemu, 'exit');
  assert.deepEqual(await reader.readConsole(signal), { text: 'one two', truncated: false });
  assert.equal(await other.readConsole(signal), null);
  reader.close();
  other.close();
  assert.deepEqual(warned, []);
});
