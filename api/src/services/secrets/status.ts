// State of the secrets for operators: keys of the file, what each is needed for, and the replicas
// that loaded them.
import { PREVIEW_SECONDS } from '@berth/contract/route/limits.ts';
import type { SecretKeyState, SecretsState } from '@berth/protocol/operator-commands.ts';
import type { Database } from '../../store/database/schema.ts';
import { liveReplicas, secondsSinceUse } from '../../store/secrets/replicas.ts';
import { countByPrefix } from '../../store/secrets/sealed-values.ts';
import { sealedPrefix } from '../context/sealed.ts';
import { KEY_ID_BYTES, type SecretKey } from '../context/secret-key.ts';

/** A replica without a report for this long has exited. */
const LIVE_SECONDS = 15;
const DAY_SECONDS = 86_400;
/** Lifetime of the longest signature: a preview link, or an unused sign-in session. */
const LONGEST_SIGNATURE_SECONDS = Math.max(PREVIEW_SECONDS.max, 30 * DAY_SECONDS);

/** `hostTokenIds`: ids of the host token's file. */
export async function secretsState(db: Database, secretKey: SecretKey, hostTokenIds: string[]): Promise<SecretsState> {
  const replicas = await liveReplicas(db, LIVE_SECONDS);
  const uses = await secondsSinceUse(db);
  const counts = await countByPrefix(db, 1 + KEY_ID_BYTES);
  const secretKeys = secretKey.ids.map((id, index): SecretKeyState => {
    const prefix = sealedPrefix(Buffer.from(id, 'hex')).toString('hex');
    const values = counts.get(prefix) ?? 0;
    counts.delete(prefix);
    const since = uses.get(id);
    const neededSeconds = since === undefined ? 0 : Math.max(0, Math.ceil(LONGEST_SIGNATURE_SECONDS - since));
    return { id, current: index === 0, values, neededSeconds };
  });
  // Values of version 1 name no key: each key may be theirs.
  const unnamed = [...counts.values()].reduce((sum, values) => sum + values, 0);
  return { secretKeys, hostTokenIds, replicas, otherValues: unnamed };
}
