// What the guest last wrote to its console, as its QEMU keeps it, and the one thing that is looked
// for in it. All of it is the tenant's to forge.
import { z } from 'zod';
import { CONSOLE_BYTES } from '../machine/argv.ts';
import type { QmpSession } from '../machine/qmp.ts';

const PANIC = /Kernel panic - not syncing: ([^\r\n]{0,200})/;

/** Takes it out of QEMU: a second reading gives what came since. */
export async function readConsole(qmp: QmpSession, signal: AbortSignal): Promise<string> {
  return qmp.command('ringbuf-read', { device: 'console', size: CONSOLE_BYTES }, z.string(), { signal });
}

/** What the kernel says when it gives up; null when it says nothing of the kind. */
export function panicIn(text: string): string | null {
  return (
    PANIC.exec(text)?.[1]
      ?.replace(/[^\x20-\x7e]/g, '?')
      .trim() ?? null
  );
}
