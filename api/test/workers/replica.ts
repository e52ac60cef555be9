// Starts and drives replica processes (replica-process.ts) in tests and benchmarks.
import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { Plan } from '@berth/contract/billing/plans.ts';
import type { MailConfig } from '../../src/config/config.ts';
import type { MailRetryPolicy } from '../../src/workers/orgs/invitation-mail.ts';

export interface ReplicaOptions {
  databaseUrl: string;
  hostUrl: string;
  hostToken: string;
  orgId: string;
  projectId: string;
  userId: string;
  mail: MailConfig;
  logLevel: string;
  /** False leaves every step to the queue's poll. */
  startAtOnce: boolean;
  queuePollMs?: number;
  leaseMs?: number;
  hostTimeoutMs?: number;
  hostSilenceMs?: number;
  mailRetryPolicy?: MailRetryPolicy;
  /** Timeout of clones. */
  cloneTimeoutSeconds?: number;
  /** Plans in addition to the self-hosted one. */
  plans?: Plan[];
  capGraceSeconds?: number;
}

export interface ReplicaRequest {
  id: number;
  verb: 'create' | 'sleep' | 'wake' | 'resize' | 'destroy' | 'invite' | 'cpu' | 'stop';
  sandboxId?: string;
  /** Invited address. */
  email?: string;
  /** Key of a create with `getOrCreate`. */
  key?: string;
  /** Repository of a create. */
  repository?: string;
  branch?: string;
  /** Size of a resize. */
  size?: { vcpu?: number; memoryGb?: number; diskGb?: number };
  respondAsync?: boolean;
}

export interface ReplicaValue {
  id: string;
  status: string;
  /**
   * Milliseconds the request took inside the replica; CPU milliseconds since its start for `cpu`.
   */
  ms: number;
}

export type ReplicaAnswer = { id: number; value: ReplicaValue } | { id: number; error: string };

const PROGRAM = fileURLToPath(new URL('replica-process.ts', import.meta.url));

/** Running replica. Requests reject if its process exits before the response. */
export class Replica {
  readonly #child: ChildProcess;
  readonly #waiting = new Map<number, { resolve: (value: ReplicaValue) => void; reject: (error: Error) => void }>();
  /** Id of the process among those that run durable steps. */
  executorId = '';
  /** Resolves with the signal or exit code when the process has ended. */
  readonly ended: Promise<string>;
  #nextId = 1;
  #stderr = '';

  private constructor(options: ReplicaOptions, crashAt?: string) {
    this.#child = fork(PROGRAM, [JSON.stringify(options)], {
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
      env: { ...process.env, ...(crashAt === undefined ? {} : { BERTH_CRASH_AT: crashAt }) },
    });
    this.#child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.#stderr = (this.#stderr + text).slice(-20_000);
    });
    this.#child.on('message', (answer: ReplicaAnswer) => {
      const waiter = this.#waiting.get(answer.id);
      this.#waiting.delete(answer.id);
      if ('value' in answer) waiter?.resolve(answer.value);
      else waiter?.reject(new Error(answer.error));
    });
    this.ended = once(this.#child, 'exit').then(([code, signal]) => {
      for (const waiter of this.#waiting.values())
        waiter.reject(new Error(`the replica ended (${signal ?? code}): ${this.#stderr}`));
      this.#waiting.clear();
      return String(signal ?? code);
    });
  }

  /** Resolves when the replica serves. Rejects if it exits first (a crash point at start). */
  static async start(options: ReplicaOptions, crashAt?: string): Promise<Replica> {
    const replica = new Replica(options, crashAt);
    const started = await new Promise<ReplicaValue>((resolve, reject) => replica.#waiting.set(0, { resolve, reject }));
    replica.executorId = started.id;
    return replica;
  }

  /** Sends a request and awaits the response. */
  ask(verb: ReplicaRequest['verb'], more: Omit<ReplicaRequest, 'id' | 'verb'> = {}): Promise<ReplicaValue> {
    const id = this.#nextId++;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      this.#child.send({ id, verb, ...more }, (error) => {
        if (error !== null) reject(new Error(`the replica ended: ${this.#stderr}`, { cause: error }));
      });
    });
  }

  /** Ends the process as `kill -9` does. */
  async kill(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.ended;
  }

  /** Pauses or resumes the process. */
  signal(signal: 'SIGSTOP' | 'SIGCONT'): void {
    this.#child.kill(signal);
  }

  /** Stops gracefully. */
  async stop(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    await this.ask('stop');
    this.#child.disconnect();
    await this.ended;
  }

  /** Tail of its log. */
  get log(): string {
    return this.#stderr;
  }
}
