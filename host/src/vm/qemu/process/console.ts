// The guest's latest console output, kept by QEMU, and the search for a panic in it. The tenant can
// forge all of it.
import { z } from 'zod';
import { CONSOLE_BYTES } from '../machine/argv.ts';
import type { QmpSession } from '../machine/qmp.ts';

const PANIC = /Kernel panic - not syncing: ([^\r\n]{0,200})/;

/** Removes the output from QEMU: a second call returns later output. */
export async function readConsole(qmp: QmpSession, signal: AbortSignal): Promise<string> {
  return qmp.command('ringbuf-read', { device: 'console', size: CONSOLE_BYTES }, z.string(), { signal });
}

/** The kernel's panic message; null if there is none. */
export function panicIn(text: string): string | null {
  return (
    PANIC.exec(text)?.[1]
      ?.replace(/[^\x20-\x7e]/g, '?')
      .trim() ?? null
  );
}
