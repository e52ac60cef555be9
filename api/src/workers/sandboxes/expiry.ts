// Destroys expired ephemeral sandboxes. Deadlines are in the database, so any process finds overdue
// sandboxes. A single replica leads; the others stand in for a leader that makes no progress.
import type { IntentContext } from '../../services/sandboxes/intent.ts';
import { expireSandbox } from '../../services/sandboxes/ephemeral.ts';
import { listExpired } from '../../store/sandboxes/expiry.ts';
import type { ReplicaSession } from '../steps/replica-session.ts';
import type { StepContext } from '../steps/step-context.ts';

/** Poll interval; a sandbox is destroyed at most this late, plus the commit. */
export const EXPIRY_EVERY_MS = 250;
/**
 * Delay after which a replica that does not lead acts too. The row lock makes concurrent attempts
 * harmless.
 */
const STAND_IN_AFTER_MS = 1_000;
const BATCH = 100;
/** Concurrent transactions; the pool also serves requests. */
const AT_ONCE = 4;

interface ExpiryOptions {
  context: StepContext;
  lifecycle: IntentContext['lifecycle'];
  session: Pick<ReplicaSession, 'isLeader'>;
}

export class Expiry {
  readonly #options: ExpiryOptions;

  constructor(options: ExpiryOptions) {
    this.#options = options;
  }

  /** Destroys all due sandboxes. Without any, a pass is a single indexed query. */
  async tick(): Promise<void> {
    const { context, session } = this.#options;
    const overdueMs = (await session.isLeader('expiry')) ? 0 : STAND_IN_AFTER_MS;
    while (!context.stopping.aborted) {
      const due = await listExpired(context.db, overdueMs, BATCH);
      const ended = await this.#endAll(due);
      // Without progress an immediate retry is pointless.
      if (due.length < BATCH || ended === 0) return;
    }
  }

  async #endAll(sandboxIds: readonly string[]): Promise<number> {
    const waiting = [...sandboxIds];
    let ended = 0;
    const endNext = async (): Promise<void> => {
      for (let id = waiting.shift(); id !== undefined; id = waiting.shift()) if (await this.#end(id)) ended += 1;
    };
    await Promise.all(Array.from({ length: AT_ONCE }, endNext));
    return ended;
  }

  async #end(sandboxId: string): Promise<boolean> {
    const { db, log, stopping } = this.#options.context;
    try {
      return await expireSandbox({ db, lifecycle: this.#options.lifecycle }, sandboxId);
    } catch (error) {
      // A failure must not block the other sandboxes.
      if (!stopping.aborted)
        log.warn({ err: error, sandboxId }, 'could not destroy an expired sandbox; the next scan retries');
      return false;
    }
  }
}
