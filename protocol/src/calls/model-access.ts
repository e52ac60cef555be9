// Access of a VM's agents to model providers. The keys stay in the host's model gateway; no call
// to a guest carries one.
import { MODEL_KEY_CHARACTERS } from '@berth/contract/route/limits.ts';
import { z } from 'zod';
import { modelVersion } from '../host.ts';
import { STREAM_LABEL } from './connections.ts';
import { defineCall } from './define.ts';

/** First segment of an agent's path at the gateway: the provider whose protocol it speaks. */
export const MODEL_PROVIDERS = { agent_one: 'openai', agent_two: 'anthropic' } as const;
export type ModelProvider = (typeof MODEL_PROVIDERS)[keyof typeof MODEL_PROVIDERS];

const providerAccess = z
  .strictObject({
    /** Base URL, from the operator's list. */
    endpoint: z.url({ protocol: /^https?$/ }).max(500),
    key: z
      .string()
      .min(1)
      .max(MODEL_KEY_CHARACTERS)
      .regex(/^[\x21-\x7e]*$/),
  })
  .nullable();

export const modelAccess = z.strictObject({
  /** Org whose limits the requests count for. */
  orgId: z.string().regex(STREAM_LABEL),
  /** Time at which the keys were read, by the database's clock. The host ignores older ones. */
  asOfMs: z.int().min(0),
  /** Names the keys without disclosing them; the host reports the version in force. */
  version: modelVersion,
  /** Null: requests of the agent are refused. */
  agents: z.strictObject({ agent_one: providerAccess, agent_two: providerAccess }),
});
export type ModelAccess = z.infer<typeof modelAccess>;

/**
 * Sets the access of a `running` VM. Resolves when it is in force: requests that use another key
 * have ended. The host forgets it when the VM sleeps or ends and when the daemon exits, and reports
 * that in its list of VMs; until the next call, requests wait.
 */
export const setModelAccess = defineCall({
  name: 'setModelAccess',
  target: 'host',
  method: 'PUT',
  path: '/vms/{vmId}/model-access',
  fenced: true,
  body: modelAccess,
  requestBytes: 16_384,
  form: 'json',
  response: z.object({}),
  responseBytes: 1_024,
  deadlineMs: 10_000,
  marginMs: 2_500,
  repeatable: true,
  since: 4,
});
