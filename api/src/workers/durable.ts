// Starts and stops the durable work of one API replica: DBOS on its own pool, the lifecycle steps,
// and the schedules that watch over them. One per process (DBOS is a singleton). The services see
// of it only the queue.
//
// Versions: DBOS runs a step only on replicas of the same `applicationVersion`, so it is a
// constant: a rolling upgrade must not strand what the old replica began. A workflow that changes
// its steps gets a new name and a new queue instead (queue.ts).
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { DBOS, DBOSClient, type DLogger } from '@dbos-inc/dbos-sdk';
import { ensureSystemDatabase } from '@dbos-inc/dbos-sdk/internal/system_database';
import pg from 'pg';
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
import { Dispatch } from './queue/dispatch.ts';
import { Expiry, EXPIRY_EVERY_MS } from './sandboxes/expiry.ts';
import { HostHealth } from './hosts/health.ts';
import { IDLE_EVERY_MS, IdleWatch } from './sandboxes/idle.ts';
import { invitationMail, MAIL_PATIENCE, type MailPatience, type MailStepContext } from './orgs/invitation-mail.ts';
import { provision } from './sandboxes/provision.ts';
import {
  CLONE,
  CLONE_QUEUE,
  DurableQueue,
  INVITATION_MAIL,
  LIFECYCLE_QUEUE,
  MAIL_QUEUE,
  type StepKind,
} from './queue/queue.ts';
import { resize } from './sandboxes/resize.ts';
import { ReplicaSession } from './steps/replica-session.ts';
import { CAP_WARNING_RETENTION_EVERY_MS, forgetCapWarnings, removeOldRows, RETENTION_EVERY_MS } from './retention.ts';
import { runEvery } from './steps/schedule.ts';
import { sleep } from './sandboxes/sleep.ts';
import { Takeover } from './queue/takeover.ts';
import { rollUpAllUsage, USAGE_ROLLUP_EVERY_MS } from './usage/rollup.ts';
import { CapWatch, USAGE_CAPS_EVERY_MS } from './usage/caps.ts';
import { wake } from './sandboxes/wake.ts';

const APPLICATION = { name: 'berth', applicationVersion: '1' } as const;
const DBOS_SCHEMA = 'dbos';
/** DBOS insists on a URL it can parse even when it is given a pool, and then only logs it. */
const UNUSED_URL = 'postgres://pool@localhost/pool';
const POOL_SIZE = 10;
/** The safety net under Dispatch; see docs/decisions/durable-work.md for what it costs. */
const QUEUE_POLL_MS = 1_000;
const TAKEOVER_EVERY_MS = 500;
const HOST_HEALTH_EVERY_MS = 1_000;
const HOST_PATIENCE_MS = 120_000;
const HOST_SILENCE_MS = 60_000;
const MIGRATION_DEADLINE_MS = 120_000;
const MIGRATION_LOOK_EVERY_MS = 50;
/** How long a stopping process lets running steps come to their end. */
const STOP_GRACE_MS = 2_000;
/** A step is tried until it is done, however often that takes a new process. */
const UNLIMITED = 1_000_000_000;

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
  /** Poll of the lifecycle's queue; the default is a safety net only, and measured to be enough. */
  queuePollMs?: number;
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
 * Brings DBOS's own tables up to date. Any number of replicas may call it at once; must be done
 * before {@link startDurable}.
 */
export async function migrateDurable(databaseUrl: string, log: Logger): Promise<void> {
  const pool = openPool(databaseUrl, 2, log);
  try {
    const lock = await pool.connect();
    try {
      await lockMigration(lock);
      await ensureSystemDatabase(UNUSED_URL, dbosLogger(log) as never, pool, DBOS_SCHEMA, false);
    } finally {
      lock.release(true);
    }
  } finally {
    await pool.end();
  }
}

/**
 * Starts the durable work. Rejects when the database cannot be reached; a host that cannot is only
 * logged.
 */
export async function startDurable(options: DurableOptions): Promise<DurableWork> {
  const { databaseUrl, db, hosts, log } = options;
  const executorId = randomUUID();
  const stopping = new AbortController();
  const pool = openPool(databaseUrl, POOL_SIZE, log);
  const client = await DBOSClient.create({
    systemDatabaseUrl: UNUSED_URL,
    systemDatabasePool: pool,
    systemDatabaseSchemaName: DBOS_SCHEMA,
    applicationName: APPLICATION.name,
    logger: dbosLogger(log),
  });
  const dispatch = new Dispatch(LIFECYCLE_QUEUE, log);
  const cloneDispatch = new Dispatch(CLONE_QUEUE, log);
  const queue = new DurableQueue(client, dispatch, cloneDispatch);
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
  const session = new ReplicaSession({ databaseUrl, executorId, log });
  await session.open();

  const running = new Set<string>();
  const register = <Step>(
    name: StepKind | typeof CLONE | typeof INVITATION_MAIL,
    run: (context: WorkContext, step: Step) => Promise<void>,
  ): ((step: Step) => Promise<void>) => {
    const tracked = async (step: Step): Promise<void> => {
      const id = DBOS.workflowID ?? '';
      running.add(id);
      try {
        await run(context, step);
      } finally {
        running.delete(id);
      }
    };
    return DBOS.registerWorkflow(tracked, { name, maxRecoveryAttempts: UNLIMITED });
  };
  DBOS.setConfig({
    ...APPLICATION,
    executorID: executorId,
    systemDatabaseUrl: UNUSED_URL,
    systemDatabasePool: pool,
    systemDatabaseSchemaName: DBOS_SCHEMA,
    runMigrations: false,
    // Serves DBOS's messages and events, which nothing here uses; it would cost a connection and
    // 100 ms of start.
    useListenNotify: false,
    listenQueues: [LIFECYCLE_QUEUE, CLONE_QUEUE, MAIL_QUEUE],
    logger: dbosLogger(log),
  });
  register('provision', provision);
  register('sleep', sleep);
  register('wake', wake);
  register('resize', resize);
  register('destroy', destroy);
  register(CLONE, clone);
  register(INVITATION_MAIL, invitationMail);
  await DBOS.launch();
  await DBOS.registerQueue(LIFECYCLE_QUEUE, {
    minPollingIntervalMs: options.queuePollMs ?? QUEUE_POLL_MS,
    onConflict: 'always_update',
  });
  await DBOS.registerQueue(CLONE_QUEUE, { minPollingIntervalMs: QUEUE_POLL_MS, onConflict: 'always_update' });
  await DBOS.registerQueue(MAIL_QUEUE, { minPollingIntervalMs: QUEUE_POLL_MS, onConflict: 'always_update' });

  const takeover = new Takeover({ context, session, dispatch, client, executorId, running });
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
  dispatch.wake();
  cloneDispatch.wake();
  // A first look before the first request: what a killed process left goes on, and the host of the
  // request has a row.
  await Promise.all([takeover.tick(), ...health.map((host) => host.tick())]);

  const schedules = [
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
      await DBOS.shutdown({ deregister: true, workflowCompletionTimeoutMS: STOP_GRACE_MS });
      stopping.abort();
      await Promise.all(schedules);
      await Promise.all(health.map((host) => host.idle()));
      await client.destroy();
      await session.close();
      await pool.end();
    },
  };
}

/**
 * Two first migrations at once deadlock: DBOS builds indexes concurrently, and those wait for every
 * open snapshot. A query that waits for a lock holds one too, so this one asks again and again
 * instead.
 */
async function lockMigration(lock: pg.PoolClient): Promise<void> {
  const deadline = Date.now() + MIGRATION_DEADLINE_MS;
  for (;;) {
    const { rows } = await lock.query<{ locked: boolean }>(
      `select pg_try_advisory_lock(hashtextextended('berth:migrate-dbos', 0)) as locked`,
    );
    if (rows[0]?.locked === true) return;
    if (Date.now() > deadline)
      throw new Error(`another replica has been migrating the database for ${MIGRATION_DEADLINE_MS} ms`);
    await delay(MIGRATION_LOOK_EVERY_MS);
  }
}

function openPool(databaseUrl: string, max: number, log: Logger): pg.Pool {
  const pool = new pg.Pool({
    connectionString: databaseUrl,
    max,
    connectionTimeoutMillis: 10_000,
    keepAlive: true,
    application_name: 'berth-api-durable',
  });
  const broke = (error: Error): void => log.warn({ err: error }, 'a connection of the durable work broke');
  // The pool listens to idle connections only; one that breaks between two queries of its user
  // would end the process.
  pool.on('connect', (client) => client.on('error', broke));
  pool.on('error', broke);
  return pool;
}

/** DBOS tells of every launch and claim at `info`; that is detail here. */
function dbosLogger(log: Logger): DLogger {
  const child = log.child({ part: 'dbos' });
  return {
    debug: (entry) => child.debug(String(entry)),
    info: (entry) => child.debug(String(entry)),
    warn: (entry) => child.warn(String(entry)),
    error: (entry, metadata) => child.error({ stack: metadata?.stack }, String(entry)),
  };
}
