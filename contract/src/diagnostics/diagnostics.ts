// Why a sandbox is as it is: reasons, output and events in one response.
import { z } from 'zod';
import { EXAMPLE_IDS } from '../route/examples.ts';
import { defineRoute } from '../route/route.ts';
import { timestamp } from '../route/text.ts';
import { sandboxParams } from '../sandboxes/sandboxes.ts';
import { sandboxStatus } from '../sandboxes/state.ts';

/** Limits in UTF-16 code units, but for `events`, a number. */
export const DIAGNOSTICS_LIMITS = { consoleCharacters: 65_536, cloneCharacters: 16_384, events: 20 } as const;

const OPEN_CODE = 'More may be added; clients must accept unknown values.';
const reason = z.strictObject({
  code: z.string().describe(`Machine-readable. ${OPEN_CODE}`),
  message: z.string().describe('Human-readable.'),
});

export const sandboxDiagnostics = z
  .strictObject({
    sandboxId: z.string(),
    status: sandboxStatus,
    failure: reason
      .extend({ at: timestamp })
      .nullable()
      .describe('Reason of `failed`, or of a sleep or wake that failed; null otherwise.'),
    wakesFrom: z
      .enum(['snapshot', 'disk'])
      .nullable()
      .describe('Source of the next wake; null when the sandbox is awake or cannot be woken.'),
    lastStart: z
      .strictObject({
        kind: z
          .enum(['create', 'wake', 'boot'])
          .describe('`create`: never woken. `wake`: resumed from its snapshot. `boot`: booted from its disk.'),
        at: timestamp.describe('Time of the create request, or at which the sandbox was awake again.'),
        reason: z.string().nullable().describe('Why the disk was booted; null otherwise.'),
      })
      .describe('Last start that succeeded, or the create.'),
    clone: z
      .strictObject({
        status: z.enum(['pending', 'cloning', 'cloned', 'failed']),
        reason: reason.nullable().describe('Reason of `failed`; null otherwise.'),
        output: z
          .string()
          .max(DIAGNOSTICS_LIMITS.cloneCharacters)
          .nullable()
          .describe(
            "Git's last output in the clone that ended, without credentials; null if there was none, and of a " +
              'sandbox that is being deleted.',
          ),
        truncated: z.boolean().describe('Whether earlier output is missing.'),
      })
      .nullable()
      .describe('Clone of the repository; null without one.'),
    console: z
      .strictObject({
        text: z.string().max(DIAGNOSTICS_LIMITS.consoleCharacters),
        truncated: z.boolean().describe('Whether earlier output is missing.'),
        booted: z
          .boolean()
          .describe('Whether the VM booted. Otherwise its memory was restored, and the text has no boot messages.'),
      })
      .nullable()
      .describe(
        'Last output on the console of the VM since its start: messages of its kernel, and whatever root wrote. ' +
          'Control characters and such that hide text appear as their code, as `\\u{202e}`; colours are removed. ' +
          'Of a dead VM it is kept until the next wake.',
      ),
    consoleMissing: reason
      .nullable()
      .describe(
        'Why `console` is null. Codes: `asleep`, `busy`, `deleted`, `no_host`, `not_kept`, `no_response`, ' +
          `\`host_unavailable\`, \`host_outdated\`, \`data_key_unusable\`. ${OPEN_CODE}`,
      ),
    events: z
      .array(
        z.strictObject({
          at: timestamp,
          kind: z.string().describe(`Kind of an entry of the activity feed. ${OPEN_CODE}`),
          reason: z.string().nullable(),
        }),
      )
      .max(DIAGNOSTICS_LIMITS.events)
      .describe("Last changes of its status, size and clone, newest first; from the sandbox's last 1,000 activities."),
  })
  .meta({ id: 'SandboxDiagnostics', description: 'Why a sandbox is as it is.' });
export type SandboxDiagnostics = z.infer<typeof sandboxDiagnostics>;

export const getDiagnostics = defineRoute({
  name: 'getDiagnostics',
  summary: 'Returns why a sandbox is as it is: failure, last start, clone, console; wakes nothing',
  method: 'GET',
  path: '/v1/sandboxes/{sandboxId}/diagnostics',
  auth: ['session', 'api_key'],
  permission: 'sandbox.read',
  request: { params: sandboxParams },
  response: { status: 200, body: z.strictObject({ diagnostics: sandboxDiagnostics }) },
  errors: [],
  activity: null,
  published: true,
  example: {
    answer: {
      diagnostics: {
        sandboxId: EXAMPLE_IDS.sandboxId,
        status: 'failed',
        failure: {
          code: 'guest_panic',
          message: "its guest's kernel panicked. Wake the sandbox if its disk remains; otherwise create another one",
          at: '2026-11-21T10:15:00.000Z',
        },
        wakesFrom: 'disk',
        lastStart: { kind: 'create', at: '2026-11-21T09:45:00.000Z', reason: null },
        clone: null,
        console: {
          text: '[ 1799.5] Kernel panic - not syncing: sysrq triggered crash\n',
          truncated: false,
          booted: false,
        },
        consoleMissing: null,
        events: [
          {
            at: '2026-11-21T10:15:00.000Z',
            kind: 'sandbox_failed',
            reason: "its guest's kernel panicked. Wake the sandbox if its disk remains; otherwise create another one",
          },
          { at: '2026-11-21T09:45:00.000Z', kind: 'sandbox_created', reason: null },
        ],
      },
    },
  },
});
