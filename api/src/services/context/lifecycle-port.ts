// Services' interface to durable work: commit a step together with its intent, and start it right
// after the commit. Types only; src/workers implements them. Services never import a worker.
import type { DatabaseTransaction } from '../../store/database/schema.ts';

export interface LifecycleStep {
  sandboxId: string;
  /** The sandbox's epoch for this step. A step of an older epoch is void. */
  epoch: number;
}

/** Kinds of durable work on a sandbox. */
export type LifecycleStepKind = 'provision' | 'sleep' | 'wake' | 'resize' | 'destroy' | 'clone';

export interface LifecycleQueue {
  /** Enqueues the step in the transaction. Idempotent per step. */
  enqueue(trx: DatabaseTransaction, kind: LifecycleStepKind, step: LifecycleStep): Promise<void>;
  /** Enqueues, in the transaction, the step that mails an invitation. Starts within a second. */
  enqueueInvitationMail(trx: DatabaseTransaction, invitationId: string): Promise<void>;
  /** Starts committed steps in this process without waiting for the poll. Never throws. */
  started(): void;
}
