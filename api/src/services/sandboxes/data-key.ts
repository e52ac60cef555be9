// The data key of a sandbox: its host encrypts with it what a sleeping VM leaves on the disk.
// Stored sealed, and deleted with the sandbox, which makes copies of that disk unreadable.
import { randomBytes } from 'node:crypto';
import { findDataKey, insertDataKey } from '../../store/sandboxes/data-keys.ts';
import type { ServiceContext } from '../context/context.ts';
import { openText, sealText } from '../context/sealed.ts';

const DATA_KEY_BYTES = 32;

/**
 * The sandbox's data key, drawn at the first call; concurrent calls agree. Undefined for a deleted
 * sandbox. Throws `UnsealError` if no secret key opens it.
 */
export async function dataKeyOf(
  { db, secretKey }: Pick<ServiceContext, 'db' | 'secretKey'>,
  sandboxId: string,
): Promise<string | undefined> {
  const keys = secretKey.keysFor('sandbox-data');
  const kept = await findDataKey(db, sandboxId);
  if (kept !== undefined) return openText(keys, sandboxId, kept);

  const drawn = randomBytes(DATA_KEY_BYTES).toString('base64url');
  if (await insertDataKey(db, sandboxId, sealText(keys, sandboxId, drawn))) return drawn;

  const other = await findDataKey(db, sandboxId);
  return other === undefined ? undefined : openText(keys, sandboxId, other);
}
