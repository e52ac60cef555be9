// Idempotent creates: the same key and body return the first create's sandbox.
import { createHash } from 'node:crypto';
import type { CreateSandboxBody } from '@berth/contract/sandboxes/sandboxes.ts';
import { canonicalJson } from '../../rules/canonical-json.ts';
import { CodedError } from '../../rules/coded-error.ts';
import { findIdempotencyKey, insertIdempotencyKey } from '../../store/sandboxes/idempotency.ts';
import type { DatabaseTransaction } from '../../store/database/schema.ts';

interface KeyedCreate {
  orgId: string;
  key: string;
  body: CreateSandboxBody;
  /** Id of the sandbox if this create is the first. */
  sandboxId: string;
}

/**
 * Claims the key in the create's transaction: a failed create leaves no key. Returns the sandbox id
 * of an earlier create with this key and body; undefined if this is the first. Throws
 * `idempotency_key_conflict` for another body.
 */
export async function claimIdempotencyKey(trx: DatabaseTransaction, create: KeyedCreate): Promise<string | undefined> {
  const bodySha256 = createHash('sha256').update(canonicalJson(create.body)).digest();
  const { orgId, key } = create;
  if (await insertIdempotencyKey(trx, { org_id: orgId, key, body_sha256: bodySha256, sandbox_id: create.sandboxId }))
    return undefined;
  // The conflicting row is locked by the insert, so it exists.
  const earlier = await findIdempotencyKey(trx, orgId, key);
  if (earlier === undefined) throw new Error(`the idempotency key ${key} of ${orgId} was neither inserted nor found`);
  if (!earlier.body_sha256.equals(bodySha256)) {
    throw new CodedError(
      'idempotency_key_conflict',
      'this Idempotency-Key was used for a create with another body; use a new key for it',
    );
  }

  return earlier.sandbox_id;
}
