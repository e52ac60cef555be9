// Starts and stops the durable work of an API replica: the steps, and the schedules that watch
// sandboxes and hosts. Services see only the queue.
// Replicas of several versions share the queue, and each claims only kinds it knows. A step whose
// input or meaning changes gets a new kind.
import { randomUUID } from 'node:crypto';
import type { Logger } from 'pino';
import type { HostClients } from '../hosts/clients.ts';
import type { LifecycleQueue } from '../services/context/lifecycle-port.ts';
import type { Plans } from '../rules/billing/plan-catalogue.ts';
import type { Mailer } from '../services/context/mail-port.ts';
import type { Database } from '../store/database/schema.ts';
import type { SecretKey } from '../services/context/secret-key.ts';
import type { GitSettings, Settings } from '../services/context/settings.ts';
import { AgentApprovals, AGENT_APPROVALS_EVERY_MS } from './agents/approvals.ts';
import { AgentTurns, AGENT_TURNS_EVERY_MS, QUIET_AGENTS_EVERY_MS } from './agents/turns.ts';
import { clone, type CloneStepContext } from './clones/clone.ts';
import { destroy } from './sandboxes/destroy.ts';
import { Expiry, EXPIRY_EVERY_MS } from './sandboxes/expiry.ts';
import { HostHealth } from './hosts/health.ts';
import { IDLE_EVERY_MS, IdleWatch } from './sandboxes/idle.ts';
import {
  invitationMail,
  MAIL_RETRY_POLICY,
  type MailRetryPolicy,
  type MailStepContext,
} from './orgs/invitation-mail.ts';
import { provision } from './sandboxes/provision.ts';
import { DurableQueue } from './queue/queue.ts';
import { StepRunner, type StepPrograms } from './queue/runner.ts';
import { Takeover } from './queue/takeover.ts';
import { resize } from './sandboxes/resize.ts';
import { ReplicaSession } from './steps/replica-session.ts';
import {
  ACTIVITY_PARTITIONS_EVERY_MS,
  CAP_WARNING_RETENTION_EVERY_MS,
  purgeCapWarnings,
  removeOldRows,
  renewActivityPartitions,
  RETENTION_EVERY_MS,
} from './retention.ts';
import { runEvery } from './steps/schedule.ts';
import { RESEAL_EVERY_MS, SECRETS_EVERY_MS, SecretWatch, type SecretsNow } from './secrets/secret-watch.ts';
import { sleep } from './sandboxes/sleep.ts';
import { rollUpAllUsage, USAGE_ROLLUP_EVERY_MS } from './usage/rollup.ts';
import { CapWatch, USAGE_CAPS_EVERY_MS } from './usage/caps.ts';
import { wake } from './sandboxes/wake.ts';

/**
 * Fallback for steps not started after their commit; docs/decisions/durable-work.md has its cost.
 */
const QUEUE_POLL_MS = 1_000;
const TAKEOVER_EVERY_MS = 500;
const HOST_HEALTH_EVERY_MS = 1_000;
const HOST_TIMEOUT_MS = 120_000;
const HOST_SILENCE_MS = 60_000;

export interface DurableOptions {
  databaseUrl: string;
  db: Database;
  hosts: HostClients;
  /** Addresses of the hosts watched by this replica. */
  hostUrls: string[];
  mailer: Mailer;
  /** Origin of the links in mails. */
  publicUrl: string;
  /** Opens what is stored sealed. */
  secretKey: SecretKey;
  /** Reads the files of the secrets again; null: they are fixed. */
  rereadSecrets?: (() => SecretsNow) | null;
  git: GitSettings;
  settings: Pick<Settings, 'modelEndpoints'>;
  /** Keyed by id. */
  plans: Plans;
  /** Time between reaching a machine hour cap and putting sandboxes to sleep. */
  capGraceSeconds: number;
  log: Logger;
  queuePollMs?: number;
  /** Silence after which Postgres considers this replica dead. */
  leaseMs?: number;
  /** Time from its request that a sandbox waits for an unresponsive host. Default: two minutes. */
  hostTimeoutMs?: number;
  /** Host silence after which its awake sandboxes fail as `host_lost`. Default: one minute. */
  hostSilenceMs?: number;
  /** Retry policy of mails. Default: for a day, with pauses of up to half an hour. */
  mailRetryPolicy?: MailRetryPolicy;
}

type WorkContext = MailStepContext & CloneStepContext;

export interface DurableWork {
  queue: LifecycleQueue;
  executorId: string;
  /**
   * Claims no more steps, lets running steps finish briefly, and leaves the rest to other
   * processes.
   */
  stop(): Promise<void>;
}

/**
 * Starts the durable work. Rejects when the database is unreachable; an unreachable host is only
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
    hostTimeoutMs: options.hostTimeoutMs ?? HOST_TIMEOUT_MS,
    hostSilenceMs: options.hostSilenceMs ?? HOST_SILENCE_MS,
    mailer: options.mailer,
    publicUrl: options.publicUrl,
    secretKey: options.secretKey,
    settings: options.settings,
    git: options.git,
    mailRetryPolicy: options.mailRetryPolicy ?? MAIL_RETRY_POLICY,
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
  const agentApprovals = new AgentApprovals({ context, session });
  const agentTurns = new AgentTurns({ context, session, withTurns: true });
  const quietAgents = new AgentTurns({ context, session, withTurns: false });
  const secrets = new SecretWatch({
    context,
    secretKey: options.secretKey,
    hosts,
    replicaId: executorId,
    reread: options.rereadSecrets ?? null,
  });
  const caps = new CapWatch({
    context,
    plans: options.plans,
    lifecycle: queue,
    session,
    graceSeconds: options.capGraceSeconds,
  });
  runner.wake();
  // Run once before the first request: resumes the steps of a killed process, and creates the
  // host's row.
  await Promise.all([takeover.tick(), runner.claimed(), ...health.map((host) => host.tick())]);

  const schedules = [
    runEvery(
      {
        name: 'queue',
        everyMs: options.queuePollMs ?? QUEUE_POLL_MS,
        waitsFirst: true,
        run: async () => runner.wake(),
      },
      stopping.signal,
      log,
    ),
    runEvery({ name: 'takeover', everyMs: TAKEOVER_EVERY_MS, run: () => takeover.tick() }, stopping.signal, log),
    runEvery({ name: 'secrets', everyMs: SECRETS_EVERY_MS, run: () => secrets.tick() }, stopping.signal, log),
    runEvery({ name: 'reseal', everyMs: RESEAL_EVERY_MS, run: () => secrets.reseal(session) }, stopping.signal, log),
    runEvery({ name: 'expiry', everyMs: EXPIRY_EVERY_MS, run: () => expiry.tick() }, stopping.signal, log),
    runEvery({ name: 'idleness', everyMs: IDLE_EVERY_MS, run: () => idle.tick() }, stopping.signal, log),
    runEvery(
      { name: 'agent approvals', everyMs: AGENT_APPROVALS_EVERY_MS, run: () => agentApprovals.tick() },
      stopping.signal,
      log,
    ),
    runEvery(
      { name: 'agent turns', everyMs: AGENT_TURNS_EVERY_MS, run: () => agentTurns.tick() },
      stopping.signal,
      log,
    ),
    runEvery(
      { name: 'quiet agents', everyMs: QUIET_AGENTS_EVERY_MS, run: () => quietAgents.tick() },
      stopping.signal,
      log,
    ),
    runEvery({ name: 'usage caps', everyMs: USAGE_CAPS_EVERY_MS, run: () => caps.tick() }, stopping.signal, log),
    runEvery(
      {
        name: 'cap warning retention',
        everyMs: CAP_WARNING_RETENTION_EVERY_MS,
        run: () => purgeCapWarnings(context, session),
      },
      stopping.signal,
      log,
    ),
    runEvery(
      {
        name: 'retention',
        everyMs: RETENTION_EVERY_MS,
        run: () => removeOldRows({ ...context, plans: options.plans }, session),
      },
      stopping.signal,
      log,
    ),
    runEvery(
      {
        name: 'activity partitions',
        everyMs: ACTIVITY_PARTITIONS_EVERY_MS,
        run: () => renewActivityPartitions({ ...context, plans: options.plans }, session),
      },
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
            if (await session.isLeader('host-health')) await host.tick();
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
      await Promise.all([...health.map((host) => host.idle()), agentApprovals.idle()]);
      await secrets.close();
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
