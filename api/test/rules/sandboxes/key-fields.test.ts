// Fields that a create with `getOrCreate` shares with the create of its sandbox.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { OPEN_EGRESS } from '@berth/contract/sandboxes/egress-policy.ts';
import type { CreateSandboxBody } from '@berth/contract/sandboxes/sandboxes.ts';
import { requireSameFields, type KeyFields } from '../../../src/rules/sandboxes/key-fields.ts';

const MADE: KeyFields = {
  agent: 'agent_one',
  profile: 'auto',
  machineSize: 'small',
  persistencePolicy: 'sleep_resume',
  mode: 'persistent',
  ttlSeconds: null,
  repository: null,
  branch: null,
  egress: OPEN_EGRESS,
  endUserId: null,
  sshPublicKey: null,
};
const OTHERS: { [field in keyof KeyFields]: NonNullable<CreateSandboxBody[field]> } = {
  agent: 'agent_two',
  profile: 'build-heavy',
  machineSize: 'large',
  persistencePolicy: 'always_on',
  mode: 'ephemeral',
  ttlSeconds: 60,
  repository: 'acme/app',
  branch: 'main',
  egress: { ...OPEN_EGRESS, mode: 'none' },
  endUserId: 'user-1',
  sshPublicKey: `ssh-ed25519 ${'A'.repeat(300)}`,
};
const compare = (given: Partial<CreateSandboxBody>, wished: Partial<KeyFields>): void =>
  requireSameFields(
    { agent: 'agent_one', projectId: 'p', ...given },
    { ...MADE, ...wished },
    { id: 'sbx_1', fields: MADE },
  );

for (const field of Object.keys(OTHERS) as (keyof KeyFields)[]) {
  const other = { [field]: OTHERS[field] };
  test(`another ${field} is refused by name; without the field the sandbox is found`, () => {
    assert.throws(() => compare(other, other), {
      code: 'sandbox_differs',
      message: new RegExp(`with other fields: ${field} is .{1,61}, not .{1,61}\\. Leave the fields out`),
    });
    if (field !== 'agent') compare({}, other);
    compare({ [field]: MADE[field] ?? undefined }, {});
  });
}

test('name, labels and idle time are not compared', () => {
  compare({ name: 'x', metadata: { a: 1 }, idleMinutes: 5 }, {});
});
