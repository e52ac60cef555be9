// Runs a shell command in a sandbox.
import { z } from 'zod';
import { COMMAND_OPTION_LIMITS } from '../route/command-options.ts';
import { EXEC_LIMITS } from '../route/limits.ts';
import { defineRoute } from '../route/route.ts';
import { USE_ERRORS } from '../sandboxes/use.ts';
import { sandboxParams } from '../sandboxes/sandboxes.ts';
import { text } from '../route/text.ts';
import { commandOptions } from './options.ts';

/** spec: command and timeoutSeconds; the other fields are Berth's. Unknown fields are rejected. */
const execBody = z.strictObject({
  command: text(1, EXEC_LIMITS.commandCharacters).describe('Command for /bin/sh.'),
  timeoutSeconds: z
    .int()
    .min(EXEC_LIMITS.timeoutSeconds.min)
    .max(EXEC_LIMITS.timeoutSeconds.max)
    .default(EXEC_LIMITS.timeoutSeconds.default)
    .describe('Timeout; the command is killed when it expires.'),
  ...commandOptions,
  stdin: text(0, COMMAND_OPTION_LIMITS.stdinCharacters)
    .optional()
    .describe('Standard input of the command, by default empty.'),
});

/** The other fields with every character as an escape of six, and their names. */
const REST_CHARACTERS =
  6 *
    (COMMAND_OPTION_LIMITS.cwdCharacters +
      COMMAND_OPTION_LIMITS.env.characters +
      COMMAND_OPTION_LIMITS.stdinCharacters) +
  16_384;

/** spec: Exec result. */
export const execResult = z
  .strictObject({
    exitCode: z
      .int()
      .min(0)
      .max(255)
      .describe('Exit code; the request succeeds also if it is not zero. 128 + n after signal n; 124 with `timedOut`.'),
    stdout: z.string(),
    stderr: z.string(),
    truncated: z
      .boolean()
      .describe(`Whether stdout or stderr exceeded ${EXEC_LIMITS.outputBytes} bytes; the tail is kept.`),
    timedOut: z.boolean(),
  })
  .meta({ id: 'ExecResult', description: 'Result of a command.' });
export type ExecResult = z.infer<typeof execResult>;

export const execInSandbox = defineRoute({
  name: 'execInSandbox',
  summary:
    'Runs a command with /bin/sh, by default in /code, and waits until it exits. Wakes a stopped sandbox if its ' +
    'project has wakeOnUse',
  method: 'POST',
  path: '/v1/sandboxes/{sandboxId}/exec',
  auth: ['session', 'api_key'],
  permission: 'sandbox.exec',
  request: { params: sandboxParams, body: execBody },
  bodyBytes: 8 * 1024 * 1024,
  longField: {
    name: 'command',
    maxBytes: 3 * EXEC_LIMITS.commandCharacters,
    tooLong: 'invalid_request',
    restCharacters: REST_CHARACTERS,
  },
  keepsAlive: true,
  response: { status: 200, body: execResult },
  errors: [...USE_ERRORS, 'exec_options_unsupported'],
  activity: 'sandbox_exec',
  published: true,
  example: {
    body: { command: 'python3 hello.py', timeoutSeconds: 30 },
    answer: { exitCode: 0, stdout: 'hello\n', stderr: '', truncated: false, timedOut: false },
  },
});
