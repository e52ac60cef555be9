// Conditions for creating an ephemeral sandbox.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { CreateSandboxBody } from '@berth/contract/sandboxes/sandboxes.ts';
import { requireConsistentMode, requireModeAllowed } from '../../../src/rules/sandboxes/ephemeral.ts';

type Fields = Pick<CreateSandboxBody, 'mode' | 'ttlSeconds' | 'persistencePolicy'>;

const CASES: [what: string, fields: Fields, refusal: RegExp | null][] = [
  ['nothing', {}, null],
  ['a persistence policy alone', { persistencePolicy: 'always_on' }, null],
  ['mode with ttlSeconds', { mode: 'ephemeral', ttlSeconds: 60 }, null],
  [
    'mode alone',
    { mode: 'ephemeral' },
    /^body\.ttlSeconds is required with mode "ephemeral": an integer from 1 to 86400$/,
  ],
  ['ttlSeconds alone', { ttlSeconds: 60 }, /^body\.ttlSeconds is only for mode "ephemeral"/],
  [
    'ttlSeconds with a persistence policy',
    { ttlSeconds: 60, persistencePolicy: 'always_on' },
    /^body\.ttlSeconds is only for mode/,
  ],
  [
    'mode with a persistence policy',
    { mode: 'ephemeral', ttlSeconds: 60, persistencePolicy: 'sleep_resume' },
    /^body\.persistencePolicy is not allowed with mode "ephemeral"/,
  ],
];

for (const [what, fields, refusal] of CASES) {
  test(`a create with ${what} is ${refusal === null ? 'consistent' : 'refused by name'}`, () => {
    if (refusal === null) requireConsistentMode(fields);
    else assert.throws(() => requireConsistentMode(fields), { code: 'invalid_request', message: refusal });
  });
}

test('mode is allowed exactly in projects with useCase external', () => {
  requireModeAllowed('ephemeral', 'external');
  requireModeAllowed(undefined, 'internal');
  for (const useCase of ['internal', 'External', 'external ', '']) {
    assert.throws(() => requireModeAllowed('ephemeral', useCase), {
      code: 'ephemeral_not_allowed',
      message: /useCase is "external"/,
    });
  }
});
