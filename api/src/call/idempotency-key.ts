import { IDEMPOTENCY_KEY } from '@berth/contract/route/limits.ts';
import { idempotencyKey } from '@berth/contract/route/text.ts';
import { CodedError } from '../rules/coded-error.ts';

/**
 * Returns the key from the values of the header `Idempotency-Key`; undefined without one. Throws
 * `invalid_request` when the key is malformed or sent twice.
 */
export function readIdempotencyKey(given: readonly string[]): string | undefined {
  if (given.length === 0) return undefined;
  const [key] = given;
  if (given.length === 1 && idempotencyKey.safeParse(key).success) return key;
  throw new CodedError(
    'invalid_request',
    `the header Idempotency-Key must occur once, with 1 to ${IDEMPOTENCY_KEY.maxCharacters} printable ASCII characters`,
  );
}
