// Defaults of a new sandbox.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MACHINE_SIZES, type MachineSize, type Profile } from '@berth/contract/sandboxes/machine-sizes.ts';
import { chooseAllocation } from '../../../src/rules/sandboxes/allocation.ts';

const CASES: [
  profile: Profile | undefined,
  size: MachineSize | undefined,
  projectProfile: Profile | null,
  expected: [Profile, MachineSize],
][] = [
  [undefined, undefined, null, ['auto', 'small']],
  [undefined, 'small', null, ['agent-small', 'small']],
  [undefined, 'medium', null, ['agent-standard', 'medium']],
  [undefined, 'large', null, ['build-heavy', 'large']],
  [undefined, 'xlarge', null, ['repo-large', 'xlarge']],
  ['auto', undefined, null, ['auto', 'small']],
  ['browser-heavy', undefined, 'auto', ['browser-heavy', 'large']],
  ['browser-heavy', 'small', 'auto', ['browser-heavy', 'small']],
  [undefined, undefined, 'long-running', ['long-running', 'medium']],
  [undefined, 'xlarge', 'long-running', ['repo-large', 'xlarge']],
  ['auto', 'xlarge', 'long-running', ['auto', 'xlarge']],
];

for (const [profile, machineSize, projectProfile, [chosen, size]] of CASES) {
  test(`${profile ?? '-'}, ${machineSize ?? '-'}, project ${projectProfile ?? '-'}: ${chosen} on ${size}`, () => {
    const result = chooseAllocation({ profile, machineSize }, { profile: projectProfile, persistencePolicy: null });
    assert.deepEqual([result.profile, result.allocation], [chosen, MACHINE_SIZES[size]]);
  });
}

test('persistence comes from the request, then the project, then sleep_resume', () => {
  const none = { profile: null, persistencePolicy: null };
  assert.equal(chooseAllocation({}, none).persistencePolicy, 'sleep_resume');
  assert.equal(chooseAllocation({}, { ...none, persistencePolicy: 'always_on' }).persistencePolicy, 'always_on');
  assert.equal(
    chooseAllocation({ persistencePolicy: 'sleep_resume' }, { ...none, persistencePolicy: 'always_on' })
      .persistencePolicy,
    'sleep_resume',
  );
});

test('an ephemeral sandbox is always_on whatever its project says, as sleep would end it', () => {
  const defaults = { profile: null, persistencePolicy: 'sleep_resume' } as const;
  assert.equal(chooseAllocation({ mode: 'ephemeral' }, defaults).persistencePolicy, 'always_on');
});
