// Finds durable steps that nobody runs any more and sees that somebody does: those of dead
// executors, those this process claimed without starting (Postgres went away in between), and
// sandboxes whose step is not on record or ended without its work done.
import { DBOS, type DBOSClient } from '@dbos-inc/dbos-sdk';
import { SANDBOX_STATES } from '@berth/contract/sandboxes/state.ts';
import { beginClone } from '../../services/clones/clone.ts';
import {
  listEndedSteps,
  listExecutorsAtWork,
  listQuietSteps,
  listUnattended,
  listUnattendedClones,
} from '../../store/sandboxes/lifecycle.ts';
import { lockSandbox } from '../../store/sandboxes/sandboxes.ts';
import type { Dispatch } from './dispatch.ts';
import { requeueStepsOf } from './dispatch.ts';
import { CLONE, CLONE_QUEUE, LIFECYCLE_QUEUE, queueOf, STEP_KINDS, stepId, stepKindOf } from './queue.ts';
import type { ReplicaSession } from '../steps/replica-session.ts';
import type { StepContext } from '../steps/step-context.ts';

/** A step on record as ours that is not in this process for this long was claimed and lost. */
const QUIET_MS = 3_000;
/** How often the slower looks are taken. */
const SLOW_EVERY_MS = 2_000;
const HISTORY_EVERY_MS = 60_000;
const HISTORY_KEPT_MS = 24 * 3_600_000;
const HISTORY_BATCH = 500;

export interface TakeoverOptions {
  context: StepContext;
  session: ReplicaSession;
  dispatch: Dispatch;
  client: DBOSClient;
  executorId: string;
  /** Ids of the steps running in this process. */
  running: ReadonlySet<string>;
}

export class Takeover {
  readonly #options: TakeoverOptions;
  /**
   * Own steps that were not here at the last look; one look may fall between a step's end and its
   * record.
   */
  #missing = new Set<string>();
  #nextSlowAt = 0;
  #nextHistoryAt = 0;

  constructor(options: TakeoverOptions) {
    this.#options = options;
  }

  /** One look around. Cheap when there is nothing to do: one indexed query. */
  async tick(): Promise<void> {
    await this.#takeOverDead();
    const now = Date.now();
    if (now >= this.#nextSlowAt) {
      this.#nextSlowAt = now + SLOW_EVERY_MS;
      await this.#restartLost();
      if (await this.#options.session.leads('unattended')) await this.#attend();
    }
    if (now >= this.#nextHistoryAt) {
      this.#nextHistoryAt = now + HISTORY_EVERY_MS;
      if (await this.#options.session.leads('history')) await this.#forget();
    }
  }

  async #takeOverDead(): Promise<void> {
    const { context, session, dispatch, executorId } = this.#options;
    for (const other of await listExecutorsAtWork(context.db, executorId)) {
      const taken = await session.ifDead(other, () => requeueStepsOf(other));
      if (!taken) continue;
      context.log.info({ executorId: other }, 'took over the steps of a process that is gone');
      dispatch.wake();
      context.lifecycle.cloneStarted();
    }
  }

  async #restartLost(): Promise<void> {
    const { context, dispatch, executorId, running } = this.#options;
    const absent = (await listQuietSteps(context.db, executorId, QUIET_MS)).filter((id) => !running.has(id));
    const lost = absent.filter((id) => this.#missing.has(id));
    this.#missing = new Set(absent);
    if (lost.length === 0) return;
    context.log.warn({ steps: lost }, 'steps were claimed but never started; starting them');
    for (const id of lost) await DBOS.resumeWorkflow(id, { queueName: queueOf(id) });
    dispatch.wake();
    context.lifecycle.cloneStarted();
  }

  async #attend(): Promise<void> {
    const { context, client, dispatch } = this.#options;
    for (const sandbox of await listUnattended(context.db, QUIET_MS, STEP_KINDS)) {
      const kind = stepKindOf(sandbox);
      if (kind === undefined) continue;
      const step = { sandboxId: sandbox.id, epoch: sandbox.epoch };
      const id = stepId(kind, step);
      context.log.warn({ ...step, status: sandbox.status }, 'a sandbox under way had no step; it gets one');
      const before = await client.getWorkflow(id);
      if (before === undefined)
        await client.enqueue({ queueName: LIFECYCLE_QUEUE, workflowName: kind, workflowID: id }, step);
      else await DBOS.rewindWorkflow(id, { startStep: 0, queueName: LIFECYCLE_QUEUE });

      dispatch.wake();
    }
    for (const id of await listUnattendedClones(context.db, QUIET_MS, CLONE)) await this.#attendClone(id);
  }

  async #attendClone(sandboxId: string): Promise<void> {
    const { context, client } = this.#options;
    const step = await context.db.transaction().execute(async (trx) => {
      const sandbox = await lockSandbox(trx, sandboxId);
      if (sandbox?.clone_status !== 'pending' || !SANDBOX_STATES[sandbox.status].awake) return undefined;
      // A replica of before there were clones settled it.
      if (sandbox.clone_epoch === null) await beginClone(trx, context.lifecycle, sandbox);
      return sandbox.clone_epoch === null ? undefined : { sandboxId, epoch: sandbox.clone_epoch };
    });
    if (step !== undefined) {
      const id = stepId(CLONE, step);
      context.log.warn({ ...step }, 'a sandbox with a repository to be cloned had no step; it gets one');
      const before = await client.getWorkflow(id);
      if (before === undefined)
        await client.enqueue({ queueName: CLONE_QUEUE, workflowName: CLONE, workflowID: id }, step);
      else await DBOS.rewindWorkflow(id, { startStep: 0, queueName: CLONE_QUEUE });
    }
    context.lifecycle.cloneStarted();
  }

  async #forget(): Promise<void> {
    const { context } = this.#options;
    const ended = await listEndedSteps(context.db, HISTORY_KEPT_MS, HISTORY_BATCH);
    if (ended.length > 0) await DBOS.deleteWorkflows(ended);
  }
}
