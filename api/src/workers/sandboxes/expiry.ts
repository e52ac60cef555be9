// Ends ephemeral sandboxes when their time is up. The database knows the time and the due ones, so
// nothing is lost with a process: whoever looks next finds what is overdue. One replica leads, the
// others step in for one that leads and does nothing.
import type { IntentContext } from '../../services/sandboxes/intent.ts';
import { expireSandbox } from '../../services/sandboxes/expiry.ts';
import { listExpired } from '../../store/sandboxes/expiry.ts';
import type { ReplicaSession } from '../steps/replica-session.ts';
import type { StepContext } from '../steps/step-context.ts';

/** How often to look; a sandbox ends this much late at most, and what it takes to commit. */
export const EXPIRY_EVERY_MS = 250;
/**
 * A replica that does not lead ends what is overdue by this much. The row's lock makes it harmless
 * that both do.
 */
const STAND_IN_AFTER_MS = 1_000;
const BATCH = 100;
/** Transactions side by side; the pool serves requests too. */
const AT_ONCE = 4;

interface ExpiryOptions {
  context: StepContext;
  lifecycle: IntentContext['lifecycle'];
  session: Pick<ReplicaSession, 'leads'>;
}

export class Expiry {
  readonly #options: ExpiryOptions;

  constructor(options: ExpiryOptions) {
    this.#options = options;
  }

  /** One look: ends all that is due. One indexed query when nothing is. */
  async tick(): Promise<void> {
    const { context, session } = this.#options;
    const overdueMs = (await session.leads('expiry')) ? 0 : STAND_IN_AFTER_MS;
    while (!context.stopping.aborted) {
      const due = await listExpired(context.db, overdueMs, BATCH);
      const ended = await this.#endAll(due);
      // Without progress there is nothing to gain by looking again at once.
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
      // One that cannot be ended must not keep the others.
      if (!stopping.aborted)
        log.warn({ err: error, sandboxId }, 'could not end an expired sandbox; it will be tried again');
      return false;
    }
  }
}
