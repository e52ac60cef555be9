// A guest's view of a process. The guest is hostile: every field is bounded.
import { z } from 'zod';
import { guestUnixMs } from './agents.ts';
import { PROCESS_ID, PROCESS_LIMITS } from './guest-limits.ts';

export const processId = z.string().regex(PROCESS_ID);

/** Offset in a stream, in bytes from its start. */
export const streamOffset = z.int().min(0).max(Number.MAX_SAFE_INTEGER);

/** `output`: of a terminal, instead of the other two. */
export const streamName = z.enum(['stdout', 'stderr', 'output']);

/**
 * Why a process ended, other than by itself or a signal of a caller. `timed_out`: its time limit.
 * `out_of_memory`: the guest's kernel killed it. `lost`: nobody saw its end, because the VM booted
 * its disk or the keeper of processes was killed.
 */
const endReason = z.enum(['timed_out', 'out_of_memory', 'lost']);

/** Its texts are well-formed and have no control characters: see the guest's shownText. */
export const guestProcess = z.object({
  processId,
  name: z.string().max(PROCESS_LIMITS.nameCharacters).nullable(),
  /** The start of its shell line, or of its arguments. */
  command: z.string().max(PROCESS_LIMITS.shownCharacters),
  cwd: z.string().max(PROCESS_LIMITS.shownCharacters),
  user: z.string().max(32),
  tty: z.boolean(),
  /** Whether it was started with an input. */
  hasInput: z.boolean(),
  keepAwake: z.boolean(),
  startedUnixMs: guestUnixMs,
  /** Null while it runs. */
  end: z
    .object({
      /** Null after a signal, and if lost. */
      exitCode: z.int().min(0).max(255).nullable(),
      signal: z
        .string()
        .regex(/^SIG[A-Z0-9]{1,12}$/)
        .nullable(),
      reason: endReason.nullable(),
      endedUnixMs: guestUnixMs,
    })
    .nullable(),
});
export type GuestProcess = z.infer<typeof guestProcess>;

/** Bytes of a stream. Those between the asked offset and `offset` are lost. */
export const guestPiece = z.object({
  stream: streamName,
  offset: streamOffset,
  base64: z.string().max(Math.ceil(PROCESS_LIMITS.readBytes / 3) * 4),
});
