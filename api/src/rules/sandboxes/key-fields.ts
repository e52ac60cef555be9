// Compares a create with `getOrCreate` with the create that made the sandbox of its key. Pure.
import type { EgressBody } from '@berth/contract/sandboxes/egress-policy.ts';
import type { Agent, PersistencePolicy } from '@berth/contract/sandboxes/fields.ts';
import type { MachineSize, Profile } from '@berth/contract/sandboxes/machine-sizes.ts';
import type { CreateSandboxBody } from '@berth/contract/sandboxes/sandboxes.ts';
import { canonicalJson } from '../canonical-json.ts';
import { CodedError } from '../coded-error.ts';

/**
 * Fields of a create as they took effect, with the defaults of that time. A resize or another
 * egress policy leaves them: a later create with the same fields finds the sandbox.
 */
export interface KeyFields {
  agent: Agent;
  profile: Profile;
  machineSize: MachineSize;
  persistencePolicy: PersistencePolicy;
  mode: 'persistent' | 'ephemeral';
  ttlSeconds: number | null;
  repository: string | null;
  branch: string | null;
  egress: EgressBody;
  endUserId: string | null;
  sshPublicKey: string | null;
}

const FIELDS = [
  'agent',
  'profile',
  'machineSize',
  'persistencePolicy',
  'mode',
  'ttlSeconds',
  'repository',
  'branch',
  'egress',
  'endUserId',
  'sshPublicKey',
] as const satisfies readonly (keyof KeyFields & keyof CreateSandboxBody)[];

/** Characters of a value in the message; the longest policy has thousands. */
const SHOWN_CHARACTERS = 60;

/**
 * Throws `sandbox_differs` if a field that the body has differs from the create of the sandbox.
 * @param wished the body's fields with defaults @param made those of the sandbox
 */
export function requireSameFields(
  body: CreateSandboxBody,
  wished: KeyFields,
  { id, fields: made }: { id: string; fields: KeyFields },
): void {
  const differences = FIELDS.filter(
    (field) => body[field] !== undefined && canonicalJson(wished[field]) !== canonicalJson(made[field]),
  ).map((field) => `${field} is ${shown(made[field])}, not ${shown(wished[field])}`);
  if (differences.length === 0) return;
  throw new CodedError(
    'sandbox_differs',
    `body.getOrCreate.key belongs to the sandbox ${id}, which was created with other fields: ` +
      `${differences.join('; ')}. Leave the fields out, use another key, or destroy the sandbox`,
    { field: 'body.getOrCreate.key' },
  );
}

function shown(value: unknown): string {
  const json = canonicalJson(value);
  return json.length <= SHOWN_CHARACTERS ? json : `${json.slice(0, SHOWN_CHARACTERS)}…`;
}
