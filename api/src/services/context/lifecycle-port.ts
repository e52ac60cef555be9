// Durable work as services use it: they commit a step together with its intent, and start it right
// after the commit. Types only; src/workers implements them. Services never import a worker.
import type { DatabaseTransaction } from '../../store/database/schema.ts';

export interface LifecycleStep {
  sandboxId: string;
  /** The sandbox's epoch that the step is for; an older one is void. */
  epoch: number;
}

export interface LifecycleQueue {
  /** Commits with the transaction the step that makes the sandbox's machine. */
  enqueueProvision(trx: DatabaseTransaction, step: LifecycleStep): Promise<void>;
  /** Commits with the transaction the step that captures the sandbox's machine and releases it. */
  enqueueSleep(trx: DatabaseTransaction, step: LifecycleStep): Promise<void>;
  /** Commits with the transaction the step that restores the sandbox's machine. */
  enqueueWake(trx: DatabaseTransaction, step: LifecycleStep): Promise<void>;
  /** Commits with the transaction the step that grows the sandbox's machine while it runs. */
  enqueueResize(trx: DatabaseTransaction, step: LifecycleStep): Promise<void>;
  /** Commits with the transaction the step that deletes the sandbox's machine and disk. */
  enqueueDestroy(trx: DatabaseTransaction, step: LifecycleStep): Promise<void>;
  /** Commits with the transaction the step that clones the sandbox's repository. */
  enqueueClone(trx: DatabaseTransaction, step: LifecycleStep): Promise<void>;
  /**
   * Commits with the transaction the step that mails an invitation; it starts by itself within
   * about a second of the commit. The same `attemptKey` again is the same step.
   */
  enqueueInvitationMail(trx: DatabaseTransaction, invitationId: string, attemptKey: string): Promise<void>;
  /**
   * To be called right after the commit: starts the enqueued step in this process without waiting
   * for the queue's poll. Never throws.
   */
  started(step: LifecycleStep): void;
  /** The same for steps that clone. */
  cloneStarted(): void;
}
