// Rules for creating ephemeral sandboxes. Pure.
import { TTL_SECONDS } from '@berth/contract/route/limits.ts';
import { EXTERNAL_USE_CASE } from '@berth/contract/orgs/projects.ts';
import type { CreateSandboxBody } from '@berth/contract/sandboxes/sandboxes.ts';
import { CodedError, invalidField } from '../coded-error.ts';

type ModeFields = Pick<CreateSandboxBody, 'mode' | 'ttlSeconds' | 'persistencePolicy'>;

/**
 * Throws `invalid_request` for contradicting fields: `ttlSeconds` requires `mode`, which excludes a
 * persistence policy.
 */
export function requireConsistentMode({ mode, ttlSeconds, persistencePolicy }: ModeFields): void {
  if (mode === undefined) {
    if (ttlSeconds !== undefined)
      throw invalidField('body.ttlSeconds', 'is only for mode "ephemeral"; leave it out, or add the mode');
    return;
  }
  if (ttlSeconds === undefined) {
    const { min, max } = TTL_SECONDS;
    throw invalidField('body.ttlSeconds', `is required with mode "${mode}": an integer from ${min} to ${max}`);
  }

  if (persistencePolicy !== undefined)
    throw invalidField('body.persistencePolicy', `is not allowed with mode "${mode}"; leave one of them out`);
}

/**
 * Throws `ephemeral_not_allowed` if the project's sandboxes do not serve the end users of its
 * operator's product.
 */
export function requireModeAllowed(mode: ModeFields['mode'], useCase: string): void {
  if (mode === undefined || useCase === EXTERNAL_USE_CASE) return;
  throw new CodedError(
    'ephemeral_not_allowed',
    `body.mode "${mode}" is allowed only in projects whose useCase is "${EXTERNAL_USE_CASE}"; ` +
      `this project's is "${useCase}"`,
    { field: 'body.mode' },
  );
}
