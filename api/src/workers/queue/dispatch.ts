// Starts waiting steps in this process at once, with the queue's own claim: what this and a poll
// (here or in another replica) both see, exactly one of them gets. The one file that reaches behind
// the published face of DBOS; its version is pinned for that.
import { randomUUID } from 'node:crypto';
import { DBOS } from '@dbos-inc/dbos-sdk';
import { DBOSExecutor } from '@dbos-inc/dbos-sdk/internal/dbos-executor';
import type { WorkflowQueue } from '@dbos-inc/dbos-sdk/internal/wfqueue';
import type { Logger } from 'pino';

/** Claims and starts what waits in one queue, whenever told that there may be something. */
export class Dispatch {
  readonly #queueName: string;
  readonly #log: Logger;
  #queue: WorkflowQueue | undefined;
  #claiming = false;
  #again = false;

  constructor(queueName: string, log: Logger) {
    this.#queueName = queueName;
    this.#log = log;
  }

  /**
   * Says that something was committed to the queue. Never throws; claims are never beside each
   * other, and none is missed.
   */
  wake(): void {
    this.#again = true;
    if (this.#claiming) return;
    this.#claiming = true;
    this.#run()
      // The queue's own poll is the safety net.
      .catch((error: unknown) =>
        this.#log.warn({ err: error }, 'could not start waiting steps at once; the queue will'),
      )
      .finally(() => {
        this.#claiming = false;
        if (this.#again) this.wake();
      });
  }

  async #run(): Promise<void> {
    while (this.#again) {
      this.#again = false;
      const executor = DBOSExecutor.globalInstance;
      if (executor?.initialized !== true) return;
      this.#queue ??= (await DBOS.retrieveQueue(this.#queueName)) ?? undefined;
      if (this.#queue === undefined) throw new Error(`there is no queue ${this.#queueName}`);
      const owner = randomUUID();
      const claimed = await executor.systemDatabase.findAndMarkStartableWorkflows(
        this.#queue,
        executor.executorID,
        DBOS.applicationVersion,
        undefined,
        0,
        0,
        owner,
      );
      if (claimed.length > 0) await executor.dispatchDequeuedWorkflows(claimed, owner);
    }
  }
}

/**
 * Puts the steps that a dead executor was running back into their queues; what a live one has
 * claimed since is left alone.
 */
export async function requeueStepsOf(executorId: string): Promise<void> {
  await DBOSExecutor.globalInstance?.recoverPendingWorkflows([executorId]);
}
