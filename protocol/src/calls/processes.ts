// Calls of processes of the tenant, which outlive their callers and the guest daemon.
import { COMMAND_OPTION_LIMITS } from '@berth/contract/route/command-options.ts';
import { TERMINAL_SIDE, TERMINAL_SIGNALS } from '@berth/contract/route/limits.ts';
import { z } from 'zod';
import {
  COMMAND_ERRORS,
  EXEC_COMMAND_LENGTH,
  PROCESS_ERRORS,
  PROCESS_LIMITS,
  type CommandErrorCode,
  type ProcessErrorCode,
} from '../guest-limits.ts';
import { guestPiece, guestProcess, processId, streamName, streamOffset } from '../processes.ts';
import { defineCall } from './define.ts';
import { guestRunRequest } from './exec.ts';

const { cwdCharacters, env } = COMMAND_OPTION_LIMITS;
const VIEW_BYTES = 3 * (2 * PROCESS_LIMITS.shownCharacters + PROCESS_LIMITS.nameCharacters) + 1_024;
const processErrors = Object.keys(PROCESS_ERRORS) as ProcessErrorCode[];
const params = z.object({ processId });
const processSignal = z.enum(TERMINAL_SIGNALS);
export type ProcessSignal = z.infer<typeof processSignal>;
const waitMs = z.coerce.number<string>().int().min(0).max(PROCESS_LIMITS.waitMs);
const size = z.int().min(TERMINAL_SIDE.min).max(TERMINAL_SIDE.max);
const json = {
  target: 'pass-through',
  form: 'json',
  deadlineMs: 10_000,
  marginMs: 2_500,
  errors: processErrors,
  statuses: { 404: ['processes_unsupported', 'the guest daemon has no processes'] },
  since: 8,
} as const;

const offsets = z.strictObject({
  stdout: streamOffset.optional(),
  stderr: streamOffset.optional(),
  output: streamOffset.optional(),
});
const offsetInQuery = z.coerce.number<string>().pipe(streamOffset).optional();
/** Where to begin. A stream without an offset is not read. */
const fromQuery = z.strictObject({
  stdout: offsetInQuery,
  stderr: offsetInQuery,
  output: offsetInQuery,
  /** Starts so many bytes before the end of each stream, or at the offset if that is later. */
  tail: z.coerce.number<string>().int().min(0).max(PROCESS_LIMITS.readBytes).optional(),
});

/** SHA-256 in hexadecimal digits. */
const digest = z.string().regex(/^[0-9a-f]{64}$/);

const startBody = guestRunRequest.omit({ command: true, timeoutSeconds: true, stdin: true }).extend({
  /** A shell line, or with `argv` a program with its arguments. */
  command: z.string().min(1).max(EXEC_COMMAND_LENGTH).optional(),
  argv: z.array(z.string().max(EXEC_COMMAND_LENGTH)).min(1).max(PROCESS_LIMITS.arguments).optional(),
  /** Absent: three pipes. */
  terminal: z.strictObject({ rows: size, cols: size }).optional(),
  /** True: input is written later. False: it is empty. */
  stdin: z.boolean(),
  keepAwake: z.boolean(),
  name: z.string().max(PROCESS_LIMITS.nameCharacters).nullable(),
  /** Killed after this time. */
  limitSeconds: z.int().min(1).max(PROCESS_LIMITS.limitSeconds).nullable(),
  /** At least so many of the last bytes of each stream stay. */
  outputBytes: z.int().min(PROCESS_LIMITS.outputBytes.min).max(PROCESS_LIMITS.outputBytes.max),
  /** Hash of the request, kept to compare a repeated one. */
  digest,
});
export type GuestProcessStart = z.infer<typeof startBody>;

/** Starts a process. A known id returns that process as it is. */
export const startProcess = defineCall({
  ...json,
  name: 'startProcess',
  method: 'PUT',
  path: '/processes/{processId}',
  params,
  body: startBody,
  requestBytes: 6 * (EXEC_COMMAND_LENGTH + cwdCharacters + env.characters) + 65_536,
  /** `isKnown`: started by an earlier call, with the digest. */
  response: z.object({ process: guestProcess, isKnown: z.boolean(), digest }),
  responseBytes: VIEW_BYTES,
  errors: [...processErrors, ...(Object.keys(COMMAND_ERRORS) as CommandErrorCode[])],
  repeatable: true,
});

/** All processes of the sandbox, newest first. */
export const listProcesses = defineCall({
  ...json,
  name: 'listProcesses',
  method: 'GET',
  path: '/processes',
  response: z.object({ processes: z.array(guestProcess).max(PROCESS_LIMITS.live + PROCESS_LIMITS.ended) }),
  responseBytes: (PROCESS_LIMITS.live + PROCESS_LIMITS.ended) * VIEW_BYTES,
  repeatable: true,
});

/** A process; with `waitMs`, held until it has ended. */
export const getProcess = defineCall({
  ...json,
  name: 'getProcess',
  method: 'GET',
  path: '/processes/{processId}',
  params,
  query: z.strictObject({ waitMs: waitMs.optional() }),
  response: z.object({ process: guestProcess }),
  responseBytes: VIEW_BYTES,
  deadlineMs: PROCESS_LIMITS.waitMs + 5_000,
  repeatable: true,
});

/**
 * Output from the offsets on; with `waitMs`, held until there is some, or no writer is left. A
 * stream without an offset is not read.
 */
export const readProcessOutput = defineCall({
  ...json,
  name: 'readProcessOutput',
  method: 'GET',
  path: '/processes/{processId}/output',
  params,
  query: fromQuery.extend({ waitMs: waitMs.optional() }),
  response: z
    .object({
      process: guestProcess,
      /** From where each stream was read. */
      starts: offsets,
      pieces: z.array(guestPiece).max(2),
      /** Streams that nobody can write to any more, of which this response has the end. */
      closed: z.array(streamName).max(2),
    })
    .refine(({ starts, pieces }) => pieces.every(({ stream, offset }) => offset >= (starts[stream] ?? Infinity)), {
      error: 'a piece is of a stream that was not read, or from before its start',
    })
    .refine(({ pieces }) => new Set(pieces.map(({ stream }) => stream)).size === pieces.length, {
      error: 'a stream has two pieces',
    }),
  responseBytes: 2 * Math.ceil(PROCESS_LIMITS.readBytes / 3) * 4 + VIEW_BYTES + 4_096,
  deadlineMs: PROCESS_LIMITS.waitMs + 5_000,
  repeatable: true,
});

/**
 * A stream with the output from the offsets on, as it is written: the frames of terminal-frames.ts.
 * Byte frames are as those of openTerminal. Control frames are {@link followedOrder}: where each
 * stream starts; bytes lost before the next byte frame of a stream; and, last, that no writer is
 * left, or that the process was removed. The caller sends empty byte frames only.
 */
export const followProcess = defineCall({
  name: 'followProcess',
  target: 'pass-through',
  method: 'GET',
  path: '/processes/{processId}/stream',
  params,
  query: fromQuery,
  form: 'upgrade',
  upgrade: 'berth-terminal',
  errors: processErrors,
  statuses: { 404: ['processes_unsupported', 'the guest daemon cannot stream the output of a process'] },
  deadlineMs: 10_000,
  marginMs: 2_500,
  since: 9,
});
export interface ProcessFollowed {
  params: z.infer<typeof params>;
  query: z.infer<typeof fromQuery>;
}

export const followedOrder = z.union([
  z.strictObject({ starts: offsets }),
  z.strictObject({ lost: z.strictObject({ stream: streamName, bytes: z.int().min(1) }) }),
  z.strictObject({ complete: z.literal(true) }),
  z.strictObject({ removed: z.literal(true) }),
]);
export type FollowedOrder = z.infer<typeof followedOrder>;

/**
 * Appends to the input of the process. Bytes before the end of the input so far are skipped, so
 * that a repeated call writes nothing twice.
 */
export const writeProcessInput = defineCall({
  ...json,
  name: 'writeProcessInput',
  method: 'POST',
  path: '/processes/{processId}/input',
  params,
  body: z.strictObject({
    /** Null: all so far, whatever a repeated call has written. */
    offset: streamOffset.nullable(),
    base64: z.string().max(Math.ceil(PROCESS_LIMITS.inputBytes / 3) * 4),
    end: z.boolean(),
  }),
  requestBytes: Math.ceil(PROCESS_LIMITS.inputBytes / 3) * 4 + 1_024,
  response: z.object({
    /** Length of the input so far. */
    offset: streamOffset,
  }),
  responseBytes: 1_024,
});

/** Sends a signal to the process group; in a terminal to the programs in the foreground. */
export const signalProcess = defineCall({
  ...json,
  name: 'signalProcess',
  method: 'POST',
  path: '/processes/{processId}/signal',
  params,
  body: z.strictObject({ signal: processSignal }),
  requestBytes: 1_024,
  response: z.object({ process: guestProcess }),
  responseBytes: VIEW_BYTES,
});

/** The terminal's new size. */
export const resizeProcess = defineCall({
  ...json,
  name: 'resizeProcess',
  method: 'POST',
  path: '/processes/{processId}/size',
  params,
  body: z.strictObject({ rows: size, cols: size }),
  requestBytes: 1_024,
  response: z.object({ process: guestProcess }),
  responseBytes: VIEW_BYTES,
  repeatable: true,
});

/** Kills the process if it runs, and removes it with its output. */
export const removeProcess = defineCall({
  ...json,
  name: 'removeProcess',
  method: 'DELETE',
  path: '/processes/{processId}',
  params,
  /** False: the sandbox has no such process. */
  response: z.object({ isRemoved: z.boolean() }),
  responseBytes: 1_024,
  repeatable: true,
});
