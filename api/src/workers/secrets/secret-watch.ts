// Follows the files of the secret key and the host token: loads changes, reports them to the other
// replicas and to the operator's commands, and seals stored values again.
import type { HostClients } from '../../hosts/clients.ts';
import type { SecretKey } from '../../services/context/secret-key.ts';
import { resealAll } from '../../services/secrets/reseal.ts';
import { forgetReplica, reportSecrets } from '../../store/secrets/replicas.ts';
import type { ReplicaSession } from '../steps/replica-session.ts';
import type { StepContext } from '../steps/step-context.ts';

/** Bounds the delay of a rotation. */
export const SECRETS_EVERY_MS = 1_000;
export const RESEAL_EVERY_MS = 5_000;
const REPORT_EVERY_MS = 5_000;
/** Another replica may have sealed with a former key until it loaded the current one. */
const RESEAL_AGAIN_MS = 60_000;

/** Secrets of the files, as read now. */
export interface SecretsNow {
  secretKey: SecretKey;
  hostTokens: readonly [string, ...string[]];
}

interface SecretWatchParts {
  context: Pick<StepContext, 'db' | 'log' | 'stopping'>;
  secretKey: SecretKey;
  hosts: HostClients;
  replicaId: string;
  /** Throws if a file cannot be used; the loaded secrets stay. null: the secrets are fixed. */
  reread: (() => SecretsNow) | null;
}

export class SecretWatch {
  readonly #parts: SecretWatchParts;
  #reportedAtMs = -Infinity;
  /** True if a file could not be used at the last attempt. */
  #isBroken = false;
  #resealedAtMs = -Infinity;
  /** Ids at the last pass over the stored values. */
  #resealedIds = '';

  constructor(parts: SecretWatchParts) {
    this.#parts = parts;
  }

  /**
   * Loads changed files, and reports the loaded secrets: also after a file that cannot be used, so
   * that a rotation waits for this replica.
   */
  async tick(): Promise<void> {
    this.#load();
    const { context, secretKey, hosts, replicaId } = this.#parts;
    if (performance.now() - this.#reportedAtMs < REPORT_EVERY_MS) return;
    await reportSecrets(context.db, replicaId, { secretKeyIds: secretKey.ids, hostTokenIds: hosts.tokenIds });
    this.#reportedAtMs = performance.now();
  }

  #load(): void {
    const { context, secretKey, hosts, reread } = this.#parts;
    if (reread === null) return;
    try {
      const now = reread();
      const changed = [secretKey.replaceWith(now.secretKey), hosts.useTokens(now.hostTokens)];
      this.#isBroken = false;
      if (!changed.includes(true)) return;
      this.#reportedAtMs = -Infinity;
      context.log.info({ secretKeyIds: secretKey.ids, hostTokenIds: hosts.tokenIds }, 'loaded changed secrets');
    } catch (error) {
      // Each second another attempt: log the first failure.
      if (!this.#isBroken)
        context.log.error({ err: error }, 'cannot load the secret files: the loaded secrets stay in use');
      this.#isBroken = true;
    }
  }

  /** Seals values that another key sealed. */
  async reseal(session: Pick<ReplicaSession, 'isLeader'>): Promise<void> {
    const { context, secretKey } = this.#parts;
    const ids = secretKey.ids.join();
    // With one key, nothing seals with another after the first pass.
    const againMs = secretKey.ids.length === 1 ? Infinity : RESEAL_AGAIN_MS;
    if (ids === this.#resealedIds && performance.now() - this.#resealedAtMs < againMs) return;
    if (!(await session.isLeader('reseal'))) return;
    const { sealed, unreadable, why } = await resealAll({ db: context.db, secretKey }, context.stopping);
    if (sealed > 0) context.log.info({ sealed, keyId: secretKey.ids[0] }, 'sealed stored values with the current key');
    if (unreadable > 0) context.log.error({ unreadable, why }, 'stored values cannot be decrypted');
    if (context.stopping.aborted) return;
    this.#resealedIds = ids;
    this.#resealedAtMs = performance.now();
  }

  async close(): Promise<void> {
    const { context, replicaId } = this.#parts;
    await forgetReplica(context.db, replicaId).catch((error: unknown) => {
      context.log.debug({ err: error }, 'could not withdraw the report of this replica');
    });
  }
}
