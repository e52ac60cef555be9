// Running one shell command in a sandbox.
import { z } from 'zod';
import { EXEC_LIMITS } from './limits.ts';
import { defineRoute } from './route.ts';
import { sandboxParams } from './sandboxes.ts';
import { text } from './text.ts';

/** The table is complete: unknown fields are refused by name. */
export const execBody = z.strictObject({
  /** Given to /bin/sh in /code. */
  command: text(1, EXEC_LIMITS.commandCharacters),
  timeoutSeconds: z
    .int()
    .min(EXEC_LIMITS.timeoutSeconds.min)
    .max(EXEC_LIMITS.timeoutSeconds.max)
    .default(EXEC_LIMITS.timeoutSeconds.default),
});

/** spec: Exec result. A non-zero exit code is a successful request; 124 with `timedOut`. */
export const execResult = z.strictObject({
  exitCode: z.int().min(0).max(255),
  stdout: z.string(),
  stderr: z.string(),
  truncated: z.boolean(),
  timedOut: z.boolean(),
});
export type ExecResult = z.infer<typeof execResult>;

export const execInSandbox = defineRoute({
  name: 'execInSandbox',
  summary: 'Runs a command with /bin/sh in /code and waits for its end. Wakes a stopped sandbox first where its project has wakeOnUse',
  method: 'POST',
  path: '/v1/sandboxes/{sandboxId}/exec',
  auth: ['session', 'api_key'],
  permission: 'sandbox.exec',
  request: { params: sandboxParams, body: execBody },
  bodyBytes: 8 * 1024 * 1024,
  response: { status: 200, body: execResult },
  errors: [
    'sandbox_state_conflict',
    'sandbox_unreachable',
    'host_unavailable',
    // Of the wake that a command begins where the project's `wakeOnUse` is on.
    'wake_not_possible',
    'no_active_plan',
    'concurrent_sandbox_limit',
    'machine_hour_limit',
    'insufficient_capacity',
  ],
  activity: 'sandbox_exec',
  published: true,
});
