// Sandboxes: the resource, and the routes that create, list, fetch and destroy it. Commands are in
// exec.ts, statuses in sandbox-state.ts.
import { z } from 'zod';
import { EXAMPLE_IDS, exampleSandbox } from '../route/examples.ts';
import { END_USER_ID_CHARACTERS, NAME_CHARACTERS, TTL_SECONDS } from '../route/limits.ts';
import { machineSize, profile } from './machine-sizes.ts';
import { pageFields, pageQuery } from '../route/page.ts';
import { defineRoute } from '../route/route.ts';
import { agent, allocation, branchName, labels, metadata, persistencePolicy, repository } from './fields.ts';
import { sandboxStatus } from './state.ts';
import { sshPublicKey } from './ssh-public-key.ts';
import { idText, text, timestamp } from '../route/text.ts';

const endUserId = text(1, END_USER_ID_CHARACTERS).describe(
  "Whom of the operator's own users it is for. Opaque: never parsed, not assumed unique; their usage is counted by it.",
);

/**
 * The create request (spec: Sandbox). The table is complete: unknown fields are refused by name.
 */
export const createSandboxBody = z.strictObject({
  agent,
  projectId: idText.describe('A project of this org.'),
  name: text(1, NAME_CHARACTERS).optional().describe('Made up by the server when absent.'),
  repository: repository
    .nullable()
    .optional()
    .describe(
      "Cloned into `/code`: `owner/repo` on the git host of the service, or the full https URL of a repository. Absent: the project's default; null: none.",
    ),
  branch: branchName
    .nullable()
    .optional()
    .describe(
      "Absent: the project's default, where the repository is the project's too; null, or neither: the one that the repository says.",
    ),
  profile: profile.optional().describe("The project's default when absent, or what follows from `machineSize`."),
  machineSize: machineSize.optional().describe('Instead of the machine tier that the profile starts with.'),
  sshPublicKey: sshPublicKey.optional(),
  endUserId: endUserId.optional(),
  metadata: metadata.optional(),
  persistencePolicy: persistencePolicy.optional().describe("The project's default when absent, or `sleep_resume`."),
  mode: z
    .enum(['ephemeral'])
    .optional()
    .describe(
      '`ephemeral`: it ends with its time to live. Only in projects whose `useCase` is `external`; needs `ttlSeconds`.',
    ),
  ttlSeconds: z
    .int()
    .min(TTL_SECONDS.min)
    .max(TTL_SECONDS.max)
    .optional()
    .describe(
      "Time to live from the create on. Required with `mode`, refused without it; the plan's longest session may be shorter.",
    ),
});
export type CreateSandboxBody = z.infer<typeof createSandboxBody>;

const count = z.int().positive();

/** A sandbox as callers see it. The names in snake case are the spec's. */
export const sandbox = z
  .strictObject({
    id: idText,
    orgId: idText,
    projectId: idText,
    name: z.string(),
    agent,
    status: sandboxStatus,
    statusReason: z
      .strictObject({ code: z.string().describe('For programs.'), message: z.string().describe('For people.') })
      .nullable()
      .describe(
        'Why, with `failed`, and with a status it fell back to because a sleep or a wake did not work; null otherwise.',
      ),
    statusChangedAt: timestamp,
    sandbox_profile: profile,
    allocated_vcpu: count,
    allocated_memory_gb: count,
    allocated_disk_gb: count,
    pendingAllocation: allocation.optional().describe('Present when a resize is stored for the next wake.'),
    persistencePolicy,
    mode: z.enum(['persistent', 'ephemeral']),
    ttlSeconds: z.int().nullable().describe('With `ephemeral`, null otherwise: the configured time to live.'),
    expiresAt: timestamp.nullable().describe('With `ephemeral`, null otherwise: when it ends.'),
    wakesFrom: z
      .enum(['snapshot', 'disk'])
      .nullable()
      .describe(
        'What a wake would start from: its snapshot with all processes, or a boot of its disk; null when there is nothing to wake, or it is awake.',
      ),
    lastWake: z
      .strictObject({
        at: timestamp,
        from: z.enum(['snapshot', 'disk']),
        reason: z.string().nullable().describe('Why not from its snapshot; null when it was.'),
      })
      .nullable()
      .describe('How it was woken the last time; null when it never was.'),
    lastActiveAt: timestamp.describe(
      'The last command, file call or other sign of use that counts against sleeping when idle.',
    ),
    repository: z.string().nullable(),
    branch: z.string().nullable(),
    clone: z
      .strictObject({
        status: z.enum(['pending', 'cloning', 'cloned', 'failed']),
        reason: z
          .strictObject({ code: z.string().describe('For programs.'), message: z.string().describe('For people.') })
          .nullable()
          .describe('Why it failed; null otherwise.'),
      })
      .nullable()
      .describe(
        'How far its repository is; null without one. `pending`: not begun, or begun anew when it is awake again. The sandbox is `running` while it is `cloning`, and `ready` afterwards, also when it `failed`.',
      ),
    endUserId: z.string().nullable(),
    metadata: labels,
    createdAt: timestamp,
    updatedAt: timestamp,
    deletedAt: timestamp.nullable(),
  })
  .meta({ id: 'Sandbox', description: 'A machine of a project.' });
export type Sandbox = z.infer<typeof sandbox>;

/** Answer of every route that gives one sandbox. */
export const sandboxAnswer = z.strictObject({ sandbox });
const orgParams = z.object({ orgId: idText.describe('Id of an org of the caller.') });
export const sandboxParams = z.object({ sandboxId: idText.describe('Id of a sandbox.') });

export const listSandboxes = defineRoute({
  name: 'listSandboxes',
  summary: "The org's sandboxes, newest first, without deleted ones",
  method: 'GET',
  path: '/v1/orgs/{orgId}/sandboxes',
  auth: ['session', 'api_key'],
  permission: 'sandbox.read',
  request: {
    params: orgParams,
    query: pageQuery.extend({ endUserId: endUserId.optional().describe('Only those of this end user.') }),
  },
  response: { status: 200, body: z.strictObject({ sandboxes: z.array(sandbox), ...pageFields }) },
  errors: [],
  activity: null,
  published: true,
  example: { query: { limit: 20 }, answer: { sandboxes: [exampleSandbox], nextCursor: null, hasMore: false } },
});

export const createSandbox = defineRoute({
  name: 'createSandbox',
  summary: 'Creates a sandbox',
  method: 'POST',
  path: '/v1/orgs/{orgId}/sandboxes',
  auth: ['session', 'api_key'],
  permission: 'sandbox.create',
  request: { params: orgParams, body: createSandboxBody },
  response: { status: 201, body: sandboxAnswer },
  idempotent: true,
  waits: true,
  errors: [
    'unknown_project',
    'ephemeral_not_allowed',
    'no_active_plan',
    'concurrent_sandbox_limit',
    'machine_hour_limit',
    'plan_limit',
    'insufficient_capacity',
    'host_unavailable',
  ],
  activity: 'sandbox_created',
  published: true,
  example: {
    body: {
      agent: 'agent_one',
      projectId: EXAMPLE_IDS.projectId,
      name: 'ada-workspace',
      machineSize: 'small',
      endUserId: 'user-4711',
      metadata: { plan: 'trial', seats: 3 },
    },
    answer: { sandbox: exampleSandbox },
  },
});

export const getSandbox = defineRoute({
  name: 'getSandbox',
  summary: 'One sandbox, a deleted one too',
  method: 'GET',
  path: '/v1/sandboxes/{sandboxId}',
  auth: ['session', 'api_key'],
  permission: 'sandbox.read',
  request: { params: sandboxParams },
  response: { status: 200, body: sandboxAnswer },
  errors: [],
  activity: null,
  published: true,
  example: { answer: { sandbox: exampleSandbox } },
});

export const destroySandbox = defineRoute({
  name: 'destroySandbox',
  summary: 'Deletes the machine, its disk and its snapshot for good. A second call gives the same answer',
  method: 'POST',
  path: '/v1/sandboxes/{sandboxId}/destroy',
  auth: ['session', 'api_key'],
  permission: 'sandbox.destroy',
  /** Takes no body (spec: Sandboxes rule 8); an empty object is taken for none. */
  request: { params: sandboxParams, body: z.strictObject({}).optional() },
  response: { status: 200, body: sandboxAnswer },
  waits: true,
  errors: [],
  activity: 'sandbox_destroy_requested',
  published: true,
  example: { answer: { sandbox: { ...exampleSandbox, status: 'deleted', deletedAt: '2026-11-22T10:00:00.000Z' } } },
});
