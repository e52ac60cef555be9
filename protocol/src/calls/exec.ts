// The call that runs a command.
import { COMMAND_OPTION_LIMITS, USER_NAME } from '@berth/contract/route/command-options.ts';
import { EXEC_LIMITS } from '@berth/contract/route/limits.ts';
import { z } from 'zod';
import { COMMAND_ERRORS, EXEC_COMMAND_LENGTH, EXEC_OUTPUT_BYTES, type CommandErrorCode } from '../guest-limits.ts';
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

const { cwdCharacters, env, stdinCharacters } = COMMAND_OPTION_LIMITS;

export const guestRunRequest = guestExecRequest.extend({
  /** A relative path is relative to `/code`. */
  cwd: z.string().min(1).max(cwdCharacters).optional(),
  /** `NAME=VALUE`, in addition to the variables of every command. */
  env: z
    .array(
      z
        .string()
        .regex(/^[A-Za-z_][A-Za-z0-9_]*=/)
        .max(env.characters + 1),
    )
    .max(env.variables)
    .optional(),
  user: z.string().regex(USER_NAME).optional(),
  stdin: z.string().max(stdinCharacters).optional(),
});
export type GuestRunRequest = z.infer<typeof guestRunRequest>;

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

const running = {
  target: 'pass-through',
  method: 'POST',
  form: 'keepalive',
  response: guestExecResult,
  responseBytes: EXEC_RESPONSE_BYTES,
  deadlineMs: 10_000,
  timeoutField: 'timeoutSeconds',
  marginMs: 5_000,
} as const;

/**
 * Runs a `/bin/sh -c` command in `/code` as user `berth`. Closing the connection kills its process
 * group. The deadline leaves time to start the shell: fifty concurrent starts are slow.
 */
export const exec = defineCall({
  ...running,
  name: 'exec',
  path: '/exec',
  body: guestExecRequest,
  // Every character of the longest command as a six byte JSON escape, plus the other fields.
  requestBytes: 6 * EXEC_COMMAND_LENGTH + 1_024,
  since: 1,
});

/** {@link exec} with options, which guests of earlier versions do not have. */
export const run = defineCall({
  ...running,
  name: 'run',
  path: '/run',
  body: guestRunRequest,
  requestBytes: 6 * (EXEC_COMMAND_LENGTH + cwdCharacters + env.characters + stdinCharacters) + 16_384,
  errors: Object.keys(COMMAND_ERRORS) as CommandErrorCode[],
  statuses: { 404: ['exec_options_unsupported', 'the guest daemon has no options for commands'] },
  since: 8,
});
