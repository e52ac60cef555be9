// Runs page copies in a few persistent threads, one job each, so that the daemon's event loop stays
// responsive.
import { Worker } from 'node:worker_threads';
import { DriverError, SnapshotUnusable } from '../../driver.ts';
import type {
  CaptureJob,
  MemoryFile,
  PagesJob,
  PagesMessage,
  PagesRequest,
  PagesResult,
  PatchJob,
  PatchTarget,
} from './pages-job.ts';

/** Each copies some GB/s; more threads would only take memory bandwidth from the VMs. */
const THREADS = 2;

interface Waiting {
  request: PagesRequest;
  settle: PromiseWithResolvers<PagesResult>;
  /** Resolves with the thread that runs the job. */
  handedTo: PromiseWithResolvers<Worker>;
}

export class Pages {
  readonly #idle: Worker[] = [];
  readonly #busy = new Map<Worker, Waiting>();
  readonly #waiting: Waiting[] = [];
  #closed = false;

  /** Starts a thread ahead of time, since a start takes longer than many jobs. */
  warm(): void {
    if (this.#idle.length + this.#busy.size === 0) this.#idle.push(this.#start());
  }

  /** Rejects with {@link DriverError} or the signal's reason; the file is then incomplete. */
  async capture(job: CaptureJob, signal: AbortSignal): Promise<MemoryFile> {
    const result = await this.#run(job, signal);
    if (!('memory' in result)) throw new DriverError('the memory was not copied');

    return result.memory;
  }

  /**
   * Reads and verifies while the target is pending, then writes into it. Abort the signal if there
   * will be no target. Rejects with {@link SnapshotUnusable} if the file differs from the capture,
   * otherwise as {@link capture}.
   */
  async patch(job: PatchJob, target: Promise<PatchTarget>, signal: AbortSignal): Promise<void> {
    await this.#run(job, signal, target);
  }

  /** Ends the threads; running jobs fail. */
  async close(): Promise<void> {
    this.#closed = true;
    for (const { settle } of this.#waiting.splice(0)) settle.reject(new DriverError('the driver was closed'));

    await Promise.all([...this.#idle.splice(0), ...this.#busy.keys()].map((worker) => worker.terminate()));
  }

  /**
   * Resolves only when the thread has finished with the job, even if cancelled: its file may then
   * be removed.
   */
  async #run(job: PagesJob, signal: AbortSignal, target: Promise<PatchTarget> | null = null): Promise<PagesResult> {
    signal.throwIfAborted();
    if (this.#closed) throw new DriverError('the driver was closed');

    const stop = new SharedArrayBuffer(4);
    const waiting: Waiting = {
      request: { kind: 'job', job, stop },
      settle: Promise.withResolvers(),
      handedTo: Promise.withResolvers(),
    };
    const tell = (known: PatchTarget | null): void => {
      void waiting.handedTo.promise.then((worker) => {
        // Never another job's target: the next job starts after this result was received.
        if (this.#busy.get(worker) === waiting) send(worker, { kind: 'target', target: known });
      });
    };
    void target?.then(tell);
    const giveUp = (): void => {
      Atomics.store(new Int32Array(stop), 0, 1);
      tell(null);
      const at = this.#waiting.indexOf(waiting);
      if (at >= 0) {
        this.#waiting.splice(at, 1);
        waiting.settle.reject(signal.reason);
      }
    };
    signal.addEventListener('abort', giveUp, { once: true });
    this.#waiting.push(waiting);
    this.#dispatch();
    let result: PagesResult;
    try {
      result = await waiting.settle.promise;
    } finally {
      signal.removeEventListener('abort', giveUp);
    }
    if ('unusable' in result) throw new SnapshotUnusable(result.unusable);

    if ('failure' in result) {
      signal.throwIfAborted();
      throw new DriverError(result.failure);
    }
    return result;
  }

  #dispatch(): void {
    while (this.#waiting.length > 0) {
      const worker = this.#idle.pop() ?? (this.#busy.size < THREADS ? this.#start() : null);
      if (worker === null) return;

      const waiting = this.#waiting.shift() as Waiting;
      this.#busy.set(worker, waiting);
      worker.ref();
      send(worker, waiting.request);
      waiting.handedTo.resolve(worker);
    }
  }

  #start(): Worker {
    const worker = new Worker(new URL('./pages-worker.ts', import.meta.url));
    worker.unref();
    const end = (error: Error): void => {
      const at = this.#idle.indexOf(worker);
      if (at >= 0) this.#idle.splice(at, 1);

      this.#busy
        .get(worker)
        ?.settle.reject(new DriverError(`the thread that copies pages has exited: ${error.message}`, { cause: error }));
      this.#busy.delete(worker);
      this.#dispatch();
    };
    worker.on('error', end);
    worker.on('exit', () => end(new Error('terminated')));
    worker.on('message', (result: PagesResult) => {
      const waiting = this.#busy.get(worker);
      this.#busy.delete(worker);
      worker.unref();
      this.#idle.push(worker);
      waiting?.settle.resolve(result);
      this.#dispatch();
    });
    return worker;
  }
}

function send(worker: Worker, message: PagesMessage): void {
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
  worker.postMessage(message);
}
