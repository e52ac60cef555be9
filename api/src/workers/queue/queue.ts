// Puts durable steps into their queue, in the transaction of their intent, and starts those of the
// lifecycle right after its commit. The id of a lifecycle step is its kind, its sandbox and its
// epoch: to enqueue it twice is to enqueue it once.
import type { SandboxStatus } from '@berth/contract/sandboxes/state.ts';
import { CompiledQuery } from 'kysely';
import type { DBOSClient } from '@dbos-inc/dbos-sdk';
import type { ClientBase } from 'pg';
import type { LifecycleQueue, LifecycleStep } from '../../services/context/lifecycle-port.ts';
import type { DatabaseTransaction } from '../../store/database/schema.ts';
import { crashPoint } from '../steps/crash-point.ts';
import type { Dispatch } from './dispatch.ts';
import type { InvitationMailStep } from '../orgs/invitation-mail.ts';

/**
 * A workflow whose steps change in kind or order gets a new name and a new queue, which only
 * replicas that know it listen to.
 */
export const LIFECYCLE_QUEUE = 'lifecycle';

/** Mails: found by the queue's poll alone, as a second more does not matter to them. */
export const MAIL_QUEUE = 'mail';
export const INVITATION_MAIL = 'invitation-mail';

/** Clones: a queue of their own, which replicas of before there were clones do not listen to. */
export const CLONE_QUEUE = 'clone';
export const CLONE = 'clone';

/** The queue that a step on record belongs to, by its id. */
export function queueOf(id: string): string {
  if (id.startsWith(`${CLONE}:`)) return CLONE_QUEUE;
  return id.startsWith(`${INVITATION_MAIL}:`) ? MAIL_QUEUE : LIFECYCLE_QUEUE;
}

export const STEP_KINDS = ['provision', 'sleep', 'wake', 'resize', 'destroy'] as const;
export type StepKind = (typeof STEP_KINDS)[number];

/** The step that is at work on a sandbox in this status; none when nothing is under way. */
const STEP_OF_STATUS: { readonly [status in SandboxStatus]?: StepKind } = {
  provisioning: 'provision',
  sleeping: 'sleep',
  waking: 'wake',
  destroying: 'destroy',
};

/** The step that is at work on the sandbox by its row; undefined when nothing is under way. */
export function stepKindOf(sandbox: { status: SandboxStatus; resizing: boolean }): StepKind | undefined {
  return STEP_OF_STATUS[sandbox.status] ?? (sandbox.resizing ? 'resize' : undefined);
}

/** Id of the durable step; store/lifecycle.ts builds the same in SQL from the kinds. */
export function stepId(kind: StepKind | typeof CLONE, step: LifecycleStep): string {
  return `${kind}:${step.sandboxId}:${step.epoch}`;
}

export class DurableQueue implements LifecycleQueue {
  readonly #client: DBOSClient;
  readonly #dispatch: Dispatch;
  readonly #cloneDispatch: Dispatch;

  /** A dispatch for the queue of the lifecycle, and one for that of clones. */
  constructor(client: DBOSClient, dispatch: Dispatch, cloneDispatch: Dispatch) {
    this.#client = client;
    this.#dispatch = dispatch;
    this.#cloneDispatch = cloneDispatch;
  }

  async enqueueProvision(trx: DatabaseTransaction, step: LifecycleStep): Promise<void> {
    await this.#enqueue(trx, 'provision', step);
    crashPoint('create:enqueued');
  }

  async enqueueSleep(trx: DatabaseTransaction, step: LifecycleStep): Promise<void> {
    await this.#enqueue(trx, 'sleep', step);
    crashPoint('sleep:enqueued');
  }

  async enqueueWake(trx: DatabaseTransaction, step: LifecycleStep): Promise<void> {
    await this.#enqueue(trx, 'wake', step);
    crashPoint('wake:enqueued');
  }

  async enqueueResize(trx: DatabaseTransaction, step: LifecycleStep): Promise<void> {
    await this.#enqueue(trx, 'resize', step);
    crashPoint('resize:enqueued');
  }

  async enqueueDestroy(trx: DatabaseTransaction, step: LifecycleStep): Promise<void> {
    await this.#enqueue(trx, 'destroy', step);
    crashPoint('destroy:enqueued');
  }

  async enqueueClone(trx: DatabaseTransaction, { sandboxId, epoch }: LifecycleStep): Promise<void> {
    const workflowID = stepId(CLONE, { sandboxId, epoch });
    const options = { queueName: CLONE_QUEUE, workflowName: CLONE, workflowID };
    await this.#client.enqueueInTransaction(clientOf(trx), options, { sandboxId, epoch });
    crashPoint('clone:enqueued');
  }

  async enqueueInvitationMail(trx: DatabaseTransaction, invitationId: string, attemptKey: string): Promise<void> {
    const step: InvitationMailStep = { invitationId, askedAtMs: Date.now() };
    const workflowID = `${INVITATION_MAIL}:${invitationId}:${attemptKey}`;
    await this.#client.enqueueInTransaction(
      clientOf(trx),
      { queueName: MAIL_QUEUE, workflowName: INVITATION_MAIL, workflowID },
      step,
    );
    crashPoint('invitation:enqueued');
  }

  started(_step: LifecycleStep): void {
    crashPoint('step:committed');
    this.#dispatch.wake();
  }

  cloneStarted(): void {
    this.#cloneDispatch.wake();
  }

  async #enqueue(trx: DatabaseTransaction, kind: StepKind, step: LifecycleStep): Promise<void> {
    await this.#client.enqueueInTransaction(
      clientOf(trx),
      { queueName: LIFECYCLE_QUEUE, workflowName: kind, workflowID: stepId(kind, step) },
      { sandboxId: step.sandboxId, epoch: step.epoch },
    );
  }
}

/**
 * The transaction's connection as DBOS wants it: of a `pg` client it calls `query(text, values)`
 * and reads `rows`, nothing else.
 */
function clientOf(trx: DatabaseTransaction): ClientBase {
  const client = {
    query: async (text: string, values: unknown[]) => {
      const { rows } = await trx.executeQuery(CompiledQuery.raw(text, values));
      return { rows, rowCount: rows.length };
    },
  };
  return client as unknown as ClientBase;
}
