// Starts and stops the durable work of one API replica: the steps, and the schedules that watch
// over sandboxes and hosts. The services see of it only the queue.
//
// Versions: replicas of several versions share the queue, and each claims only kinds it knows. A
// step whose input or meaning changes gets a new kind.
import { randomUUID } from 'node:crypto';
import type { Logger } from 'pino';
import type { HostClients } from '../hosts/clients.ts';
import type { LifecycleQueue } from '../services/context/lifecycle-port.ts';
import type { Plans } from '../rules/billing/plan-catalogue.ts';
import type { Mailer } from '../services/context/mail-port.ts';
import type { Database } from '../store/database/schema.ts';
import type { SecretKey } from '../services/context/secret-key.ts';
import type { GitSettings } from '../services/context/settings.ts';
import { clone, type CloneStepContext } from './clones/clone.ts';
import { destroy } from './sandboxes/destroy.ts';
import { Expiry, EXPIRY_EVERY_MS } from './sandboxes/expiry.ts';
import { HostHealth } from './hosts/health.ts';
import { IDLE_EVERY_MS, IdleWatch } from './sandboxes/idle.ts';
import { invitationMail, MAIL_PATIENCE, type MailPatience, type MailStepContext } from './orgs/invitation-mail.ts';
import { provision } from './sandboxes/provision.ts';
import { DurableQueue } from './queue/queue.ts';
import { StepRunner, type StepPrograms } from './queue/runner.ts';
import { Takeover } from './queue/takeover.ts';
import { resize } from './sandboxes/resize.ts';
import { ReplicaSession } from './steps/replica-session.ts';
import { CAP_WARNING_RETENTION_EVERY_MS, forgetCapWarnings, removeOldRows, RETENTION_EVERY_MS } from './retention.ts';
import { runEvery } from './steps/schedule.ts';
import { sleep } from './sandboxes/sleep.ts';
import { rollUpAllUsage, USAGE_ROLLUP_EVERY_MS } from './usage/rollup.ts';
import { CapWatch, USAGE_CAPS_EVERY_MS } from './usage/caps.ts';
import { wake } from './sandboxes/wake.ts';

/** The safety net under the start after the commit; see docs/decisions/durable-work.md for its cost. */
const QUEUE_POLL_MS = 1_000;
const TAKEOVER_EVERY_MS = 500;
const HOST_HEALTH_EVERY_MS = 1_000;
const HOST_PATIENCE_MS = 120_000;
const HOST_SILENCE_MS = 60_000;

export interface DurableOptions {
  databaseUrl: string;
  db: Database;
  hosts: HostClients;
  /** Addresses of the hosts this replica watches over. */
  hostUrls: string[];
  mailer: Mailer;
  /** Origin of the links in mails. */
  publicUrl: string;
  /** Opens the credentials of repositories. */
  secretKey: SecretKey;
  git: GitSettings;
  /** By id. */
  plans: Plans;
  /** From when a cap on machine hours was seen to be reached until what is awake goes to sleep. */
  capGraceSeconds: number;
  log: Logger;
  queuePollMs?: number;
  /** Silence after which Postgres counts this replica as dead. */
  leaseMs?: number;
  /**
   * How long after its request a sandbox waits for a host that does not answer. Default: two
   * minutes.
   */
  hostPatienceMs?: number;
  /**
   * How long a host may be silent before what is awake on it fails as `host_lost`. Default: one
   * minute.
   */
  hostSilenceMs?: number;
  /** How a mail is tried again. Default: for a day, with pauses that grow to half an hour. */
  mailPatience?: MailPatience;
}

type WorkContext = MailStepContext & CloneStepContext;

export interface DurableWork {
  queue: LifecycleQueue;
  /** Id of this process among those that run durable steps. */
  executorId: string;
  /**
   * Claims nothing more, lets running steps end for a moment, and leaves the rest to whoever runs
   * next.
   */
  stop(): Promise<void>;
}

/**
 * Starts the durable work. Rejects when the database cannot be reached; a host that cannot is only
 * logged.
 */
export async function startDurable(options: DurableOptions): Promise<DurableWork> {
  const { databaseUrl, db, hosts, log } = options;
  const executorId = randomUUID();
  const stopping = new AbortController();
  const queue = new DurableQueue(() => runner.wake());
  const context: WorkContext = {
    db,
    hosts,
    log,
    lifecycle: queue,
    stopping: stopping.signal,
    hostPatienceMs: options.hostPatienceMs ?? HOST_PATIENCE_MS,
    hostSilenceMs: options.hostSilenceMs ?? HOST_SILENCE_MS,
    mailer: options.mailer,
    publicUrl: options.publicUrl,
    secretKey: options.secretKey,
    git: options.git,
    mailPatience: options.mailPatience ?? MAIL_PATIENCE,
  };
  const runner = new StepRunner({ db, log, executorId, stopping, programs: programsOf(context) });
  const session = new ReplicaSession({
    databaseUrl,
    executorId,
    log,
    ...(options.leaseMs === undefined ? {} : { leaseMs: options.leaseMs }),
  });
  await session.open();

  const takeover = new Takeover({ context, session, runner, executorId });
  const health = options.hostUrls.map((url) => new HostHealth(context, url));
  const expiry = new Expiry({ context, lifecycle: queue, session });
  const idle = new IdleWatch({ context, lifecycle: queue, session });
  const caps = new CapWatch({
    context,
    plans: options.plans,
    lifecycle: queue,
    session,
    graceSeconds: options.capGraceSeconds,
  });
  runner.wake();
  // A first look before the first request: what a killed process left goes on, and the host of the
  // request has a row.
  await Promise.all([takeover.tick(), ...health.map((host) => host.tick())]);

  const schedules = [
    runEvery(
      { name: 'queue', everyMs: options.queuePollMs ?? QUEUE_POLL_MS, run: async () => runner.wake() },
      stopping.signal,
      log,
    ),
    runEvery({ name: 'takeover', everyMs: TAKEOVER_EVERY_MS, run: () => takeover.tick() }, stopping.signal, log),
    runEvery({ name: 'expiry', everyMs: EXPIRY_EVERY_MS, run: () => expiry.tick() }, stopping.signal, log),
    runEvery({ name: 'idleness', everyMs: IDLE_EVERY_MS, run: () => idle.tick() }, stopping.signal, log),
    runEvery({ name: 'usage caps', everyMs: USAGE_CAPS_EVERY_MS, run: () => caps.tick() }, stopping.signal, log),
    runEvery(
      {
        name: 'cap warning retention',
        everyMs: CAP_WARNING_RETENTION_EVERY_MS,
        run: () => forgetCapWarnings(context, session),
      },
      stopping.signal,
      log,
    ),
    runEvery(
      { name: 'retention', everyMs: RETENTION_EVERY_MS, run: () => removeOldRows(context, session) },
      stopping.signal,
      log,
    ),
    runEvery(
      { name: 'usage rollup', everyMs: USAGE_ROLLUP_EVERY_MS, run: () => rollUpAllUsage(context, session) },
      stopping.signal,
      log,
    ),
    ...health.map((host) =>
      runEvery(
        {
          name: 'host health',
          everyMs: HOST_HEALTH_EVERY_MS,
          run: async () => {
            if (await session.leads('host-health')) await host.tick();
            else host.rest();
          },
        },
        stopping.signal,
        log,
      ),
    ),
  ];

  return {
    queue,
    executorId,
    stop: async () => {
      await runner.stop();
      await Promise.all(schedules);
      await Promise.all(health.map((host) => host.idle()));
      await session.close();
    },
  };
}

function programsOf(context: WorkContext): StepPrograms {
  return {
    provision: (step) => provision(context, step),
    sleep: (step) => sleep(context, step),
    wake: (step) => wake(context, step),
    resize: (step) => resize(context, step),
    destroy: (step) => destroy(context, step),
    clone: (step) => clone(context, step),
    'invitation-mail': (step) => invitationMail(context, step),
  };
}
