// Creates that are sent twice: the same key and body again give the sandbox of the first one.
import { createHash } from 'node:crypto';
import type { CreateSandboxBody } from '@berth/contract/sandboxes/sandboxes.ts';
import { canonicalJson } from '../../rules/canonical-json.ts';
import { CodedError } from '../../rules/coded-error.ts';
import { findIdempotencyKey, insertIdempotencyKey } from '../../store/sandboxes/idempotency.ts';
import type { DatabaseTransaction } from '../../store/database/schema.ts';

export interface KeyedCreate {
  orgId: string;
  key: string;
  body: CreateSandboxBody;
  /** Id of the sandbox that this create makes, unless an earlier one made it. */
  sandboxId: string;
}

/**
 * Notes the key together with the create, in its transaction: a create that fails leaves no key.
 * Returns the id of the sandbox that an earlier create with this key and body made, or undefined
 * when this one is the first. Throws `idempotency_key_conflict` for another body.
 */
export async function claimIdempotencyKey(trx: DatabaseTransaction, create: KeyedCreate): Promise<string | undefined> {
  const bodySha256 = createHash('sha256').update(canonicalJson(create.body)).digest();
  const { orgId, key } = create;
  if (await insertIdempotencyKey(trx, { org_id: orgId, key, body_sha256: bodySha256, sandbox_id: create.sandboxId }))
    return undefined;
  // The insert that was refused holds the row, so it is there.
  const earlier = await findIdempotencyKey(trx, orgId, key);
  if (earlier === undefined) throw new Error(`the idempotency key ${key} of ${orgId} is neither new nor there`);
  if (!earlier.body_sha256.equals(bodySha256)) {
    throw new CodedError(
      'idempotency_key_conflict',
      'this Idempotency-Key was used for a create with another body; use a new key for it',
    );
  }

  return earlier.sandbox_id;
}
