// Sandboxes: the resource, and the routes that create, list, fetch and destroy it. Commands are in exec.ts, statuses in sandbox-state.ts.
import { z } from 'zod';
import { END_USER_ID_CHARACTERS, NAME_CHARACTERS, TTL_SECONDS } from './limits.ts';
import { machineSize, profile } from './machine-sizes.ts';
import { pageFields, pageQuery } from './page.ts';
import { defineRoute } from './route.ts';
import { agent, branchName, metadata, persistencePolicy, repository } from './sandbox-fields.ts';
import { sandboxStatus } from './sandbox-state.ts';
import { sshPublicKey } from './ssh-public-key.ts';
import { idText, text, timestamp } from './text.ts';

/** The create request (spec: Sandbox). The table is complete: unknown fields are refused by name. */
export const createSandboxBody = z.strictObject({
  agent,
  projectId: idText,
  name: text(1, NAME_CHARACTERS).optional(),
  /** Cloned into `/code`. Absent: the project's default; null: none. */
  repository: repository.nullable().optional(),
  /** Absent: the project's default, where the repository is the project's too; null, or neither: the one that the repository says. */
  branch: branchName.nullable().optional(),
  profile: profile.optional(),
  machineSize: machineSize.optional(),
  /** May sign in as `berth` over a tunnel to port 22. */
  sshPublicKey: sshPublicKey.optional(),
  endUserId: text(1, END_USER_ID_CHARACTERS).optional(),
  metadata: metadata.optional(),
  persistencePolicy: persistencePolicy.optional(),
  mode: z.enum(['ephemeral']).optional(),
  /** From the create on. Required with `mode`, refused without it. */
  ttlSeconds: z.int().min(TTL_SECONDS.min).max(TTL_SECONDS.max).optional(),
});
export type CreateSandboxBody = z.infer<typeof createSandboxBody>;

const count = z.int().positive();

/** A sandbox as callers see it. The names in snake case are the spec's. */
export const sandbox = z.strictObject({
  id: idText,
  orgId: idText,
  projectId: idText,
  name: z.string(),
  agent,
  status: sandboxStatus,
  /** Why, with `failed`, and with a status it fell back to because a sleep or a wake did not work; null otherwise. The code is for programs, the message for people. */
  statusReason: z.strictObject({ code: z.string(), message: z.string() }).nullable(),
  statusChangedAt: timestamp,
  sandbox_profile: profile,
  allocated_vcpu: count,
  allocated_memory_gb: count,
  allocated_disk_gb: count,
  /** Present when a resize is stored for the next wake. */
  pendingAllocation: z.strictObject({ vcpu: count, memoryGb: count, diskGb: count }).optional(),
  persistencePolicy,
  mode: z.enum(['persistent', 'ephemeral']),
  /** With `ephemeral`, null otherwise: the configured time to live, and when it ends. */
  ttlSeconds: z.int().nullable(),
  expiresAt: timestamp.nullable(),
  /** What a wake would start from: its snapshot with all processes, or a boot of its disk; null when there is nothing to wake, or it is awake. */
  wakesFrom: z.enum(['snapshot', 'disk']).nullable(),
  /** How it was woken the last time; `reason` says why not from its snapshot. */
  lastWake: z.strictObject({ at: timestamp, from: z.enum(['snapshot', 'disk']), reason: z.string().nullable() }).nullable(),
  /** The last command, file call or other sign of use that counts against sleeping when idle. */
  lastActiveAt: timestamp,
  repository: z.string().nullable(),
  branch: z.string().nullable(),
  /**
   * How far its repository is; null without one. `pending`: not begun, or begun anew when it is awake again. The sandbox is `running` while it is `cloning`, and
   * `ready` afterwards, also when it `failed`: then `reason` says why, the code for programs and the message for people.
   */
  clone: z
    .strictObject({
      status: z.enum(['pending', 'cloning', 'cloned', 'failed']),
      reason: z.strictObject({ code: z.string(), message: z.string() }).nullable(),
    })
    .nullable(),
  endUserId: z.string().nullable(),
  metadata: z.record(z.string(), z.union([z.string(), z.number(), z.boolean()])),
  createdAt: timestamp,
  updatedAt: timestamp,
  deletedAt: timestamp.nullable(),
});
export type Sandbox = z.infer<typeof sandbox>;

/** Answer of every route that gives one sandbox. */
export const sandboxAnswer = z.strictObject({ sandbox });
const orgParams = z.object({ orgId: idText });
export const sandboxParams = z.object({ sandboxId: idText });

export const listSandboxes = defineRoute({
  name: 'listSandboxes',
  summary: "The org's sandboxes, newest first, without deleted ones",
  method: 'GET',
  path: '/v1/orgs/{orgId}/sandboxes',
  auth: ['session', 'api_key'],
  permission: 'sandbox.read',
  request: { params: orgParams, query: pageQuery.extend({ endUserId: text(1, END_USER_ID_CHARACTERS).optional() }) },
  response: { status: 200, body: z.strictObject({ sandboxes: z.array(sandbox), ...pageFields }) },
  errors: [],
  activity: null,
  published: true,
});

export const createSandbox = defineRoute({
  name: 'createSandbox',
  summary: 'Creates a sandbox; the answer waits up to 2 s for it to be running, or not at all with `Prefer: respond-async`',
  method: 'POST',
  path: '/v1/orgs/{orgId}/sandboxes',
  auth: ['session', 'api_key'],
  permission: 'sandbox.create',
  request: { params: orgParams, body: createSandboxBody },
  response: { status: 201, body: sandboxAnswer },
  idempotent: true,
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
});

export const destroySandbox = defineRoute({
  name: 'destroySandbox',
  summary: 'Deletes the machine, its disk and its snapshot for good; waits and answers like create. A second call gives the same answer',
  method: 'POST',
  path: '/v1/sandboxes/{sandboxId}/destroy',
  auth: ['session', 'api_key'],
  permission: 'sandbox.destroy',
  /** Takes no body (spec: Sandboxes rule 8); an empty object is taken for none. */
  request: { params: sandboxParams, body: z.strictObject({}).optional() },
  response: { status: 200, body: sandboxAnswer },
  errors: [],
  activity: 'sandbox_destroy_requested',
  published: true,
});
