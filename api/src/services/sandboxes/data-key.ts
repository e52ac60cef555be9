// The data key of a sandbox: its host encrypts with it what a sleeping VM leaves on the disk.
// Stored sealed, and deleted with the sandbox, which makes copies of that disk unreadable.
import { randomBytes } from 'node:crypto';
import { findDataKey, insertDataKey } from '../../store/sandboxes/data-keys.ts';
import type { ServiceContext } from '../context/context.ts';
import { openText, sealText } from '../context/sealed.ts';

const DATA_KEY_BYTES = 32;

/** The sandbox's data key; undefined without one. Throws as {@link dataKeyOf}. */
export async function existingDataKey(
  { db, secretKey }: Pick<ServiceContext, 'db' | 'secretKey'>,
  sandboxId: string,
): Promise<string | undefined> {
  const kept = await findDataKey(db, sandboxId);
  return kept && openText(secretKey.keysFor('sandbox-data'), sandboxId, kept);
}

/**
 * The sandbox's data key, drawn at the first call; concurrent calls agree. Undefined for a deleted
 * sandbox. Throws `UnsealError` if no secret key opens it.
 */
export async function dataKeyOf(
  context: Pick<ServiceContext, 'db' | 'secretKey'>,
  sandboxId: string,
): Promise<string | undefined> {
  const kept = await existingDataKey(context, sandboxId);
  if (kept !== undefined) return kept;

  const { db, secretKey } = context;
  const keys = secretKey.keysFor('sandbox-data');
  const drawn = randomBytes(DATA_KEY_BYTES).toString('base64url');
  if (await insertDataKey(db, sandboxId, sealText(keys, sandboxId, drawn))) return drawn;

  return await existingDataKey(context, sandboxId);
}
