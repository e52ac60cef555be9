// Finds orphaned durable steps: steps of dead processes, and sandboxes in transition whose step is
// not on record.
import { SANDBOX_STATES } from '@berth/contract/sandboxes/state.ts';
import { beginClone } from '../../services/clones/clone.ts';
import { listUnattended, listUnattendedClones } from '../../store/sandboxes/lifecycle.ts';
import { lockSandbox } from '../../store/sandboxes/sandboxes.ts';
import { listOtherExecutors, releaseSteps } from '../../store/steps/steps.ts';
import type { ReplicaSession } from '../steps/replica-session.ts';
import type { StepContext } from '../steps/step-context.ts';
import { EPOCH_STEP_KINDS, stepKindOf } from '../steps/step-kind.ts';
import type { StepRunner } from './runner.ts';

/** Time in transition after which a sandbox's step is searched for. */
const QUIET_MS = 3_000;
const UNATTENDED_EVERY_MS = 2_000;

interface TakeoverOptions {
  context: StepContext;
  session: ReplicaSession;
  runner: StepRunner;
  executorId: string;
}

export class Takeover {
  readonly #options: TakeoverOptions;
  #nextUnattendedAt = 0;

  constructor(options: TakeoverOptions) {
    this.#options = options;
  }

  /** A pass is usually a single query of a small table. */
  async tick(): Promise<void> {
    await this.#takeOverDead();
    if (performance.now() < this.#nextUnattendedAt) return;
    this.#nextUnattendedAt = performance.now() + UNATTENDED_EVERY_MS;
    if (await this.#options.session.isLeader('unattended')) await this.#recoverUnattended();
  }

  async #takeOverDead(): Promise<void> {
    const { context, session, runner, executorId } = this.#options;
    for (const other of await listOtherExecutors(context.db, executorId)) {
      if (!(await session.runIfDead(other, () => releaseSteps(context.db, other)))) continue;
      context.log.info({ executorId: other }, 'took over the steps of an exited process');
      runner.wake();
    }
  }

  async #recoverUnattended(): Promise<void> {
    const { context, runner } = this.#options;
    for (const sandbox of await listUnattended(context.db, QUIET_MS, EPOCH_STEP_KINDS)) {
      const kind = stepKindOf(sandbox);
      if (kind === undefined) continue;
      const step = { sandboxId: sandbox.id, epoch: sandbox.epoch };
      context.log.warn({ ...step, status: sandbox.status }, 'a sandbox in transition had no step; enqueueing one');
      await context.db.transaction().execute((trx) => context.lifecycle.enqueue(trx, kind, step));
      runner.wake();
    }
    for (const id of await listUnattendedClones(context.db, QUIET_MS, 'clone')) {
      context.log.warn({ sandboxId: id }, 'a sandbox with a pending clone had no step; enqueueing one');
      await this.#recoverClone(id);
      runner.wake();
    }
  }

  async #recoverClone(sandboxId: string): Promise<void> {
    const { db, lifecycle } = this.#options.context;
    await db.transaction().execute(async (trx) => {
      const sandbox = await lockSandbox(trx, sandboxId);
      if (sandbox?.clone_status !== 'pending' || !SANDBOX_STATES[sandbox.status].awake) return;
      // A replica of a version without clones settled the sandbox.
      if (sandbox.clone_epoch === null) await beginClone(trx, lifecycle, sandbox);
      else await lifecycle.enqueue(trx, 'clone', { sandboxId, epoch: sandbox.clone_epoch });
    });
  }
}
