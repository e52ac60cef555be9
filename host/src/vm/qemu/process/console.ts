// The guest's latest console output, kept by QEMU in a ring of its memory and taken from it here,
// and the search for a panic in it. Nothing of it is on the host's disk. The tenant can forge all
// of it.
import { CONSOLE_BYTES } from '@berth/protocol/calls/vms.ts';
import { z } from 'zod';
import type { ConsoleOutput } from '../../driver.ts';
import type { QmpSession } from '../machine/qmp.ts';

const PANIC = /Kernel panic - not syncing: ([^\r\n]{0,200})/;
/** Base64 of the whole ring. */
const encoded = z.base64().max(4 * Math.ceil(CONSOLE_BYTES / 3));

/** Last output of one QEMU process: at most {@link CONSOLE_BYTES}. */
export class Console {
  #bytes: Buffer | null = null;
  #truncated = false;

  /**
   * Moves the output from QEMU's ring to this memory. In base64: as text, QEMU drops all that
   * follows a NUL byte. Rejects like a QMP command.
   */
  async take(qmp: QmpSession, signal: AbortSignal): Promise<void> {
    const asked = { device: 'console', size: CONSOLE_BYTES, format: 'base64' };
    const answer = await qmp.command('ringbuf-read', asked, encoded, { signal }).catch((error: unknown) => {
      // A late answer is lost, and with it what it took from the ring.
      this.#truncated = true;
      throw error;
    });
    const taken = Buffer.from(answer, 'base64');
    const all = Buffer.concat([this.#bytes ?? Buffer.alloc(0), taken]);
    // A full ring has most likely lost earlier output.
    this.#truncated ||= taken.length >= CONSOLE_BYTES || all.length > CONSOLE_BYTES;
    this.#bytes = Buffer.from(all.subarray(-CONSOLE_BYTES));
  }

  /** Null before anything was taken. Invalid UTF-8 appears as U+FFFD. */
  get content(): ConsoleOutput | null {
    return this.#bytes && { text: this.#bytes.toString('utf8'), truncated: this.#truncated };
  }
}

/** The kernel's panic message; null if there is none. */
export function panicIn(text: string): string | null {
  return (
    PANIC.exec(text)?.[1]
      ?.replace(/[^\x20-\x7e]/g, '?')
      .trim() ?? null
  );
}
