// Durable work as services use it: they commit a step together with its intent, and start it right
// after the commit. Types only; src/workers implements them. Services never import a worker.
import type { DatabaseTransaction } from '../../store/database/schema.ts';

export interface LifecycleStep {
  sandboxId: string;
  /** The sandbox's epoch for this step. A step of an older epoch is void. */
  epoch: number;
}

/** The work on a sandbox that outlives the process that began it. */
export type LifecycleStepKind = 'provision' | 'sleep' | 'wake' | 'resize' | 'destroy' | 'clone';

export interface LifecycleQueue {
  /** Commits the step with the transaction. The same step again is one step. */
  enqueue(trx: DatabaseTransaction, kind: LifecycleStepKind, step: LifecycleStep): Promise<void>;
  /** Commits with the transaction the step that mails an invitation; the poll starts it within a second. */
  enqueueInvitationMail(trx: DatabaseTransaction, invitationId: string): Promise<void>;
  /** Starts committed steps in this process without waiting for the poll. Never throws. */
  started(): void;
}
