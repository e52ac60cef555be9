// Processes of a sandbox: programs that outlive the request that started them, with their output
// and their end.
import { z } from 'zod';
import { COMMAND_OPTION_LIMITS, PROCESS_LIMITS } from '../route/command-options.ts';
import { HELD } from '../route/held.ts';
import { EXEC_LIMITS, TERMINAL_DEFAULT_SIZE, TERMINAL_SIDE, TERMINAL_SIGNALS } from '../route/limits.ts';
import { numberInQuery } from '../route/number-in-query.ts';
import { defineRoute } from '../route/route.ts';
import { nameInPath, text, timestamp } from '../route/text.ts';
import { sandboxParams } from '../sandboxes/sandboxes.ts';
import { USE_ERRORS } from '../sandboxes/use.ts';
import { commandOptions } from './options.ts';

const side = z.int().min(TERMINAL_SIDE.min).max(TERMINAL_SIDE.max);
export const processParams = sandboxParams.extend({ processId: nameInPath });
const errors = [...USE_ERRORS, 'processes_unsupported'] as const;
export const ERRORS_OF_PROCESS = [...errors, 'process_not_found'] as const;

export const sandboxProcess = z
  .strictObject({
    id: z.string(),
    sandboxId: z.string(),
    name: z.string().nullable(),
    command: z
      .string()
      .describe(`The first ${PROCESS_LIMITS.shownCharacters} characters of its shell line or arguments.`),
    cwd: z.string().describe(`Its first ${PROCESS_LIMITS.shownCharacters} characters.`),
    user: z.string(),
    tty: z.boolean(),
    stdin: z.boolean().describe('Whether it was started with an input.'),
    keepAwake: z.boolean().describe('Whether the sandbox stays awake while it runs.'),
    status: z.enum(['running', 'exited']),
    exitCode: z
      .int()
      .min(0)
      .max(255)
      .nullable()
      .describe(
        '128 + n if signal n killed it, 124 with reason `timed_out`; null while it runs and if its end is unknown.',
      ),
    signal: z.string().nullable().describe('The signal that killed it, such as SIGTERM.'),
    reason: z
      .enum(['timed_out', 'out_of_memory', 'lost'])
      .nullable()
      .describe(
        'Why it ended, other than by itself or a signal: its timeout, the memory of the sandbox, or nobody saw its ' +
          'end because the sandbox was started from its disk.',
      ),
    startedAt: timestamp,
    endedAt: timestamp.nullable(),
  })
  .meta({ id: 'Process', description: 'A process of a sandbox.' });
export type SandboxProcess = z.infer<typeof sandboxProcess>;

const processAnswer = z.strictObject({ process: sandboxProcess });

const startBody = z
  .strictObject({
    command: text(1, EXEC_LIMITS.commandCharacters).optional().describe('Command for /bin/sh.'),
    argv: z
      .array(text(0, COMMAND_OPTION_LIMITS.argumentCharacters))
      .min(1)
      .max(PROCESS_LIMITS.arguments)
      .optional()
      .describe('A program and its arguments, instead of `command`.'),
    ...commandOptions,
    tty: z.boolean().default(false).describe('Runs in a terminal, which merges stdout and stderr into `output`.'),
    cols: side.default(TERMINAL_DEFAULT_SIZE.cols),
    rows: side.default(TERMINAL_DEFAULT_SIZE.rows),
    stdin: z.boolean().default(false).describe('Whether input is written later; otherwise it is empty.'),
    name: text(1, PROCESS_LIMITS.nameCharacters).optional().describe('A label; need not be unique.'),
    keepAwake: z.boolean().default(false).describe('Whether the sandbox stays awake while the process runs.'),
    timeoutSeconds: z
      .int()
      .min(1)
      .max(PROCESS_LIMITS.limitSeconds)
      .optional()
      .describe('The process is killed when it expires, by default never.'),
    outputBytes: z
      .int()
      .min(PROCESS_LIMITS.outputBytes.min)
      .max(PROCESS_LIMITS.outputBytes.max)
      .default(PROCESS_LIMITS.outputBytes.default)
      .describe('Of each stream, at least so many of the last bytes are kept.'),
  })
  .refine(({ command, argv }) => (command === undefined) !== (argv === undefined), {
    message: 'must have either command or argv',
  })
  .describe('Exactly one of `command` and `argv`.');

export type StartProcess = z.output<typeof startBody>;

export const startProcess = defineRoute({
  name: 'startProcess',
  summary:
    'Starts a process, which outlives the request, the connection and a sleep. Wakes a stopped sandbox if its ' +
    'project has wakeOnUse',
  method: 'POST',
  path: '/v1/sandboxes/{sandboxId}/processes',
  auth: ['session', 'api_key'],
  permission: 'sandbox.exec',
  request: { params: sandboxParams, body: startBody },
  bodyBytes: 8 * 1024 * 1024,
  longField: {
    name: 'command',
    maxBytes: 3 * EXEC_LIMITS.commandCharacters,
    tooLong: 'invalid_request',
    restCharacters: 1_048_576,
  },
  idempotent: true,
  response: { status: 201, body: processAnswer },
  errors: [...errors, 'process_limit', 'guest_disk_full'],
  activity: 'sandbox_process_started',
  published: true,
});

export const listProcesses = defineRoute({
  name: 'listProcesses',
  summary: 'Lists the processes of a sandbox, newest first: those that run, and the last that have ended',
  method: 'GET',
  path: '/v1/sandboxes/{sandboxId}/processes',
  auth: ['session', 'api_key'],
  permission: 'sandbox.exec',
  request: { params: sandboxParams },
  response: { status: 200, body: z.strictObject({ processes: z.array(sandboxProcess) }) },
  errors,
  activity: null,
  published: true,
});

export const getProcess = defineRoute({
  name: 'getProcess',
  summary: `Returns a process. Held ${HELD} until it has ended`,
  method: 'GET',
  path: '/v1/sandboxes/{sandboxId}/processes/{processId}',
  auth: ['session', 'api_key'],
  permission: 'sandbox.exec',
  request: { params: processParams },
  response: { status: 200, body: processAnswer },
  errors: ERRORS_OF_PROCESS,
  activity: null,
  holds: true,
  published: true,
});

const chunk = z
  .strictObject({
    stream: z.enum(['stdout', 'stderr', 'output']),
    offset: z.int().min(0).describe('Offset of its first byte in the stream.'),
    lostBytes: z.int().min(0).describe('Bytes before it that are no longer kept, or had no room on the disk.'),
    data: z.string(),
    encoding: z
      .enum(['utf8', 'base64'])
      .describe('`utf8` if the bytes are valid UTF-8 without NUL, otherwise `base64`.'),
    cursor: z.string().describe('Value of `since` to continue behind it and the chunks before it.'),
  })
  .meta({ id: 'ProcessOutputChunk', description: 'Consecutive bytes of an output.' });

export type ProcessOutputChunk = z.infer<typeof chunk>;

/** Where to begin to read. */
export const outputFrom = {
  since: z
    .string()
    .regex(/^[0-9]{1,16}(?:\.[0-9]{1,16})?$/, 'must be the cursor of a response')
    .optional()
    .describe('The `cursor` of the previous response; without it, from the first byte that is kept.'),
  tail: numberInQuery({
    min: 0,
    max: PROCESS_LIMITS.readBytes,
    description: 'Without `since`: only so many of the last bytes of each stream.',
  }).optional(),
};

export const readProcessOutput = defineRoute({
  name: 'readProcessOutput',
  summary: `Returns output after the cursor, each byte once. Held ${HELD} until there is some, or no writer is left`,
  method: 'GET',
  path: '/v1/sandboxes/{sandboxId}/processes/{processId}/output',
  auth: ['session', 'api_key'],
  permission: 'sandbox.exec',
  request: {
    params: processParams,
    query: z.strictObject(outputFrom),
  },
  response: {
    status: 200,
    body: z.strictObject({
      process: sandboxProcess,
      chunks: z.array(chunk),
      cursor: z.string().describe('Value of `since` for the next request.'),
      complete: z.boolean().describe('Whether this is all: no program can write to the outputs any more.'),
    }),
  },
  errors: ERRORS_OF_PROCESS,
  activity: null,
  holds: true,
  published: true,
});

export const writeProcessInput = defineRoute({
  name: 'writeProcessInput',
  summary: 'Writes to the input of a process, and closes it with `end`. With `offset`, a repeat writes nothing twice',
  method: 'POST',
  path: '/v1/sandboxes/{sandboxId}/processes/{processId}/stdin',
  auth: ['session', 'api_key'],
  permission: 'sandbox.exec',
  request: {
    params: processParams,
    body: z.strictObject({
      data: z.string().max(PROCESS_LIMITS.inputCharacters).default(''),
      encoding: z.enum(['utf8', 'base64']).default('utf8').describe('Encoding of `data`.'),
      offset: z
        .int()
        .min(0)
        .max(Number.MAX_SAFE_INTEGER)
        .optional()
        .describe('Bytes of the input before `data`, by default all so far.'),
      end: z.boolean().default(false).describe('Closes the input after `data`.'),
    }),
  },
  bodyBytes: 8 * 1024 * 1024,
  longField: { name: 'data', maxBytes: 3 * PROCESS_LIMITS.inputCharacters, tooLong: 'invalid_request' },
  response: { status: 200, body: z.strictObject({ offset: z.int().min(0).describe('Bytes of the input so far.') }) },
  errors: [...ERRORS_OF_PROCESS, 'process_over', 'process_input_gap', 'process_input_full'],
  activity: null,
  published: true,
});

export const signalProcess = defineRoute({
  name: 'signalProcess',
  summary: 'Signals the process group of a process, or the foreground programs of its terminal',
  method: 'POST',
  path: '/v1/sandboxes/{sandboxId}/processes/{processId}/signal',
  auth: ['session', 'api_key'],
  permission: 'sandbox.exec',
  request: { params: processParams, body: z.strictObject({ signal: z.enum(TERMINAL_SIGNALS).default('SIGTERM') }) },
  response: { status: 200, body: processAnswer },
  errors: [...ERRORS_OF_PROCESS, 'process_over'],
  activity: 'sandbox_process_signaled',
  published: true,
});

export const resizeProcess = defineRoute({
  name: 'resizeProcess',
  summary: 'Sets the size of the terminal of a process',
  method: 'POST',
  path: '/v1/sandboxes/{sandboxId}/processes/{processId}/size',
  auth: ['session', 'api_key'],
  permission: 'sandbox.exec',
  request: { params: processParams, body: z.strictObject({ cols: side, rows: side }) },
  response: { status: 200, body: processAnswer },
  errors: [...ERRORS_OF_PROCESS, 'process_has_no_terminal'],
  activity: null,
  published: true,
});

export const removeProcess = defineRoute({
  name: 'removeProcess',
  summary: 'Kills a process if it runs, and removes it with its output',
  method: 'DELETE',
  path: '/v1/sandboxes/{sandboxId}/processes/{processId}',
  auth: ['session', 'api_key'],
  permission: 'sandbox.exec',
  request: { params: processParams },
  response: { status: 200, body: z.strictObject({}) },
  errors: ERRORS_OF_PROCESS,
  activity: 'sandbox_process_removed',
  published: true,
});
