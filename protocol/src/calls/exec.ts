// The call that runs a command.
import { EXEC_LIMITS } from '@berth/contract/route/limits.ts';
import { z } from 'zod';
import { EXEC_COMMAND_LENGTH, EXEC_OUTPUT_BYTES } from '../guest-limits.ts';
import { defineCall } from './define.ts';

/**
 * Limit of the response: two outputs with every byte as a six byte JSON escape, and room for the
 * rest.
 */
export const EXEC_RESPONSE_BYTES = 2 * 6 * EXEC_OUTPUT_BYTES + 4_096;

export const guestExecRequest = z.strictObject({
  command: z.string().min(1).max(EXEC_COMMAND_LENGTH),
  timeoutSeconds: z.int().min(EXEC_LIMITS.timeoutSeconds.min).max(EXEC_LIMITS.timeoutSeconds.max),
});
export type GuestExecRequest = z.infer<typeof guestExecRequest>;

/** UTF-16 units, at most as many as the bytes that the guest keeps. */
const output = z.string().max(EXEC_OUTPUT_BYTES);

/** `exitCode` is the shell's: 128 + n when signal n killed it, 124 with `timedOut`. */
export const guestExecResult = z.object({
  exitCode: z.int().min(0).max(255),
  stdout: output,
  stderr: output,
  truncated: z.boolean(),
  timedOut: z.boolean(),
});
export type GuestExecResult = z.infer<typeof guestExecResult>;

/**
 * Runs a `/bin/sh -c` command in `/code` as user `berth`. Closing the connection kills its process
 * group. The deadline leaves time to start the shell: fifty concurrent starts are slow.
 */
export const exec = defineCall({
  name: 'exec',
  target: 'pass-through',
  method: 'POST',
  path: '/exec',
  body: guestExecRequest,
  // Every character of the longest command as a six byte JSON escape, plus the other fields.
  requestBytes: 6 * EXEC_COMMAND_LENGTH + 1_024,
  form: 'keepalive',
  response: guestExecResult,
  responseBytes: EXEC_RESPONSE_BYTES,
  deadlineMs: 10_000,
  timeoutField: 'timeoutSeconds',
  marginMs: 5_000,
  since: 1,
});
