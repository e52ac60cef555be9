// The header Idempotency-Key, on routes that take it.
import type { IncomingMessage } from 'node:http';
import { IDEMPOTENCY_KEY } from '@berth/contract/route/limits.ts';
import { CodedError } from '../../rules/coded-error.ts';

const FORM = new RegExp(`^[\\x20-\\x7e]{1,${IDEMPOTENCY_KEY.maxCharacters}}$`);

/**
 * The key that the caller sent, or undefined. Throws `invalid_request` when it has another form or
 * is there twice.
 */
export function readIdempotencyKey(request: IncomingMessage): string | undefined {
  const given = request.headersDistinct['idempotency-key'];
  if (given === undefined) return undefined;
  const [key = ''] = given;
  if (given.length === 1 && FORM.test(key)) return key;
  throw new CodedError(
    'invalid_request',
    `the header Idempotency-Key must be there once, with 1 to ${IDEMPOTENCY_KEY.maxCharacters} characters of printable ASCII`,
  );
}
