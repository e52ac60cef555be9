// Sleep, wake, resize and renew. state.ts defines the statuses in which each is legal.
import { z } from 'zod';
import { exampleSandbox } from '../route/examples.ts';
import { defineRoute } from '../route/route.ts';
import { WAKE_ERRORS } from './use.ts';
import { sandboxAnswer, sandboxParams } from './sandboxes.ts';

/** No body; an empty object is accepted. */
const noBody = z.strictObject({}).optional();

/** The target allocation (spec: Resize request). */
const resizeBody = z
  .strictObject({
    vcpu: z.int().min(1).max(1_024).optional(),
    memoryGb: z.int().min(1).max(65_536).optional(),
    diskGb: z.int().min(1).max(1_048_576).optional().describe('A disk cannot shrink.'),
  })
  .check((context) => {
    const { vcpu, memoryGb, diskGb } = context.value;
    if (vcpu !== undefined || memoryGb !== undefined || diskGb !== undefined) return;
    context.issues.push({
      code: 'custom',
      input: context.value,
      message: 'must have at least one of vcpu, memoryGb, diskGb',
    });
  })
  .meta({ minProperties: 1, description: 'Absent fields keep their value. At least one field is required.' });
export type ResizeBody = z.infer<typeof resizeBody>;

export const sleepSandbox = defineRoute({
  name: 'sleepSandbox',
  summary:
    'Puts a sandbox to sleep: saves memory and disk and releases the VM; an ephemeral sandbox is destroyed instead',
  method: 'POST',
  path: '/v1/sandboxes/{sandboxId}/sleep',
  auth: ['session', 'api_key'],
  permission: 'sandbox.stop',
  request: { params: sandboxParams, body: noBody },
  response: { status: 200, body: sandboxAnswer },
  waits: true,
  errors: ['sandbox_state_conflict'],
  activity: 'sandbox_sleep_requested',
  published: true,
  example: { answer: { sandbox: { ...exampleSandbox, status: 'stopped', wakesFrom: 'snapshot' } } },
});

export const stopSandbox = defineRoute({
  ...sleepSandbox,
  name: 'stopSandbox',
  summary: 'Deprecated alias of sleep',
  path: '/v1/sandboxes/{sandboxId}/stop',
  deprecated: { since: '2026-11-21T00:00:00.000Z', successor: sleepSandbox.path },
});

export const wakeSandbox = defineRoute({
  name: 'wakeSandbox',
  summary: 'Wakes a stopped sandbox with its processes, applying a stored pendingAllocation',
  method: 'POST',
  path: '/v1/sandboxes/{sandboxId}/wake',
  auth: ['session', 'api_key', 'agent_token'],
  permission: 'sandbox.wake',
  request: { params: sandboxParams, body: noBody },
  response: { status: 200, body: sandboxAnswer },
  waits: true,
  errors: [...WAKE_ERRORS, 'host_unavailable'],
  activity: 'sandbox_wake_requested',
  published: true,
  example: {
    answer: {
      sandbox: { ...exampleSandbox, lastWake: { at: '2026-11-22T10:00:00.000Z', from: 'snapshot', reason: null } },
    },
  },
});

export const resumeSandbox = defineRoute({
  ...wakeSandbox,
  name: 'resumeSandbox',
  summary: 'Deprecated alias of wake',
  path: '/v1/sandboxes/{sandboxId}/resume',
  deprecated: { since: '2026-11-21T00:00:00.000Z', successor: wakeSandbox.path },
});

export const resizeSandbox = defineRoute({
  name: 'resizeSandbox',
  summary:
    'Resizes a sandbox: live if the guest confirms it, otherwise at the next wake (pendingAllocation); ' +
    'immediately while stopped',
  method: 'POST',
  path: '/v1/sandboxes/{sandboxId}/resize',
  auth: ['session', 'api_key'],
  permission: 'sandbox.resize',
  request: { params: sandboxParams, body: resizeBody },
  response: { status: 200, body: sandboxAnswer },
  waits: true,
  errors: [
    'sandbox_state_conflict',
    'allocation_out_of_bounds',
    'no_active_plan',
    'plan_limit',
    'insufficient_capacity',
  ],
  activity: 'sandbox_resize_requested',
  published: true,
  example: {
    body: { vcpu: 2, memoryGb: 4 },
    answer: { sandbox: { ...exampleSandbox, allocated_vcpu: 2, allocated_memory_gb: 4, resizing: true } },
  },
});

export const renewSandbox = defineRoute({
  name: 'renewSandbox',
  summary: 'Renews an ephemeral sandbox: extends its expiry by its time to live',
  method: 'POST',
  path: '/v1/sandboxes/{sandboxId}/renew',
  auth: ['session', 'api_key'],
  permission: 'sandbox.stop',
  request: { params: sandboxParams, body: noBody },
  response: { status: 200, body: sandboxAnswer },
  errors: ['not_ephemeral', 'sandbox_state_conflict', 'no_active_plan', 'session_cap_exhausted'],
  activity: 'sandbox_renewed',
  published: true,
  example: {
    answer: {
      sandbox: { ...exampleSandbox, mode: 'ephemeral', ttlSeconds: 3_600, expiresAt: '2026-11-21T10:45:00.000Z' },
    },
  },
});
