// A process with the memory of a template's VM, in QEMU's place.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { open } from 'node:fs/promises';
import type { TestContext } from 'node:test';
import { readProcess, type ProcessIdentity } from '@berth/os/process-identity.ts';
import { architectureOf } from '@berth/os/system-calls.ts';
import { TEMPLATE_SIZE } from '../../../../src/vm/machine-size.ts';
import { PretendedQemu } from './pretended-qemu.ts';

interface PretendedMemory {
  qemu: PretendedQemu;
  process: ProcessIdentity;
  /** Reads from the start of the memory. */
  read: (bytes: number) => Promise<Buffer>;
}

/** Starts the process, which ends with the test. */
export async function pretendMemory(context: TestContext): Promise<PretendedMemory> {
  const bytes = TEMPLATE_SIZE.memoryMib * 2 ** 20;
  const mmap = architectureOf(process.arch).numberOf('mmap');
  const script = `$| = 1; print syscall(${mmap}, 0, ${bytes}, 3, 0x22, -1, 0), "\\n"; <STDIN>`;
  const program = spawn('perl', ['-e', script], { stdio: ['pipe', 'pipe', 'inherit'] });
  context.after(() => program.kill());
  const [printed] = (await once(program.stdout, 'data')) as [Buffer];
  const address = Number(printed);
  const identity = await readProcess(program.pid ?? 0);
  assert.ok(identity !== null);
  const qemu = new PretendedQemu();
  const size = bytes.toString(16);
  qemu.ramBlocks = `mem  4 KiB  0x0 0x${size} 0x${size} 0x${address.toString(16)}\n`;
  const read = async (length: number): Promise<Buffer> => {
    await using memory = await open(`/proc/${identity.pid}/mem`);
    return (await memory.read(Buffer.alloc(length), 0, length, address)).buffer;
  };
  return { qemu, process: identity, read };
}
