// One API replica as a process of its own, without HTTP: the real services and the real durable
// work, driven by messages of its parent. Tests kill it; its crash point is armed by BERTH_CRASH_AT
// as in the real server.
import pino from 'pino';
import { HostClients } from '../../src/hosts/clients.ts';
import { planCatalogueOf } from '../../src/rules/billing/plan-catalogue.ts';
import { openMailer } from '../../src/mail/mailer.ts';
import type { ServiceContext } from '../../src/services/context/context.ts';
import { createInvitation } from '../../src/services/orgs/invitations.ts';
import type { LifecycleQueue } from '../../src/services/context/lifecycle-port.ts';
import { createSandbox } from '../../src/services/sandboxes/create.ts';
import { resizeSandbox } from '../../src/services/sandboxes/resize.ts';
import { sleepSandbox } from '../../src/services/sandboxes/sleep.ts';
import { wakeSandbox } from '../../src/services/sandboxes/wake.ts';
import { destroySandbox } from '../../src/services/sandboxes/sandboxes.ts';
import { SecretKey } from '../../src/services/context/secret-key.ts';
import { Callers } from '../../src/store/access/callers.ts';
import { openDatabase } from '../../src/store/database/database.ts';
import { SandboxChanges } from '../../src/store/sandboxes/changes.ts';
import type { SandboxRow } from '../../src/store/database/schema.ts';
import { armCrashPoint } from '../../src/workers/steps/crash-point.ts';
import { startDurable } from '../../src/workers/durable.ts';
import { SETTINGS } from '../world/settings.ts';
import { settledRow } from '../world/settled.ts';
import type { ReplicaAnswer, ReplicaOptions, ReplicaRequest, ReplicaValue } from './replica.ts';

const options = JSON.parse(process.argv[2] ?? '') as ReplicaOptions;
const crashAt = process.env['BERTH_CRASH_AT'];
if (crashAt !== undefined) armCrashPoint(crashAt);
const log = pino({ level: options.logLevel }, pino.destination(2));
const { db, pool } = openDatabase({
  url: options.databaseUrl,
  maxConnections: 20,
  statementTimeoutMs: 30_000,
  onIdleError: (error) => log.debug({ err: error }, 'idle connection broke'),
});
const changes = new SandboxChanges(options.databaseUrl, (error) => log.debug({ err: error }, 'listening broke'));
await changes.start();
const hosts = new HostClients(options.hostToken);
const mailer = openMailer(options.mail, log);
const settings = {
  ...SETTINGS,
  git: { ...SETTINGS.git, cloneTimeoutSeconds: options.cloneTimeoutSeconds ?? SETTINGS.git.cloneTimeoutSeconds },
};
const secretKey = new SecretKey(Buffer.alloc(32));
const plans = planCatalogueOf(options.plans);
const work = await startDurable({
  databaseUrl: options.databaseUrl,
  db,
  hosts,
  hostUrls: [options.hostUrl],
  mailer,
  publicUrl: SETTINGS.publicUrl,
  secretKey,
  git: settings.git,
  plans,
  capGraceSeconds: options.capGraceSeconds ?? SETTINGS.capGraceSeconds,
  log,
  ...(options.mailPatience === undefined ? {} : { mailPatience: options.mailPatience }),
  ...(options.queuePollMs === undefined ? {} : { queuePollMs: options.queuePollMs }),
  ...(options.hostPatienceMs === undefined ? {} : { hostPatienceMs: options.hostPatienceMs }),
  ...(options.hostSilenceMs === undefined ? {} : { hostSilenceMs: options.hostSilenceMs }),
});
const lifecycle: LifecycleQueue = {
  enqueueProvision: (trx, step) => work.queue.enqueueProvision(trx, step),
  enqueueSleep: (trx, step) => work.queue.enqueueSleep(trx, step),
  enqueueWake: (trx, step) => work.queue.enqueueWake(trx, step),
  enqueueResize: (trx, step) => work.queue.enqueueResize(trx, step),
  enqueueDestroy: (trx, step) => work.queue.enqueueDestroy(trx, step),
  enqueueClone: (trx, step) => work.queue.enqueueClone(trx, step),
  enqueueInvitationMail: (trx, invitationId, attemptKey) =>
    work.queue.enqueueInvitationMail(trx, invitationId, attemptKey),
  started: (step) => {
    if (options.startAtOnce) work.queue.started(step);
  },
  cloneStarted: () => work.queue.cloneStarted(),
};
const context: ServiceContext = {
  db,
  callers: new Callers(pool),
  changes,
  hosts,
  lifecycle,
  plans,
  settings,
  secretKey,
  mailer,
  payments: null,
  log,
};
const actor = {
  kind: 'api_key',
  id: 'key_test',
  userId: options.userId,
  requestId: null,
  orgId: options.orgId,
  scopes: null,
  role: 'owner',
} as const;

const send = (answer: ReplicaAnswer): void => {
  process.send?.(answer);
};

/**
 * How long the answer took, and what it led to: who did not ask to be answered at once is told the
 * end, however slow the machine is.
 */
async function timed(answering: Promise<SandboxRow>, respondAsync: boolean): Promise<ReplicaValue> {
  const startedAt = performance.now();
  const answered = await answering;
  const ms = performance.now() - startedAt;
  const { id, status } = respondAsync ? answered : await settledRow(db, answered, ms);
  return { id, status, ms };
}

async function serve(request: ReplicaRequest): Promise<ReplicaValue> {
  const answer = { respondAsync: request.respondAsync ?? false, signal: new AbortController().signal };
  switch (request.verb) {
    case 'create': {
      const { repository, branch } = request;
      const body = { agent: 'agent_one', projectId: options.projectId, repository, branch } as const;
      return await timed(
        createSandbox(context, actor, options.orgId, body, answer).then(({ sandbox }) => sandbox),
        answer.respondAsync,
      );
    }
    case 'sleep':
      return await timed(sleepSandbox(context, actor, request.sandboxId ?? '', answer), answer.respondAsync);
    case 'wake':
      return await timed(wakeSandbox(context, actor, request.sandboxId ?? '', answer), answer.respondAsync);
    case 'resize':
      return await timed(
        resizeSandbox(context, actor, request.sandboxId ?? '', request.size ?? {}, answer),
        answer.respondAsync,
      );
    case 'destroy':
      return await timed(destroySandbox(context, actor, request.sandboxId ?? '', answer), answer.respondAsync);
    case 'invite': {
      const { id, status } = await createInvitation(context, actor, options.orgId, { email: request.email ?? '' });
      return { id, status, ms: 0 };
    }
    case 'cpu': {
      const { user, system } = process.cpuUsage();
      return { id: '', status: '', ms: (user + system) / 1_000 };
    }
    case 'stop': {
      await work.stop();
      hosts.close();
      await changes.close();
      await db.destroy();
      return { id: '', status: '', ms: 0 };
    }
    default:
      throw new Error(`unknown request ${String(request.verb)}`);
  }
}

process.on('message', (request: ReplicaRequest) => {
  serve(request).then(
    (value) => send({ id: request.id, value }),
    (error: unknown) =>
      send({ id: request.id, error: error instanceof Error ? (error.stack ?? error.message) : String(error) }),
  );
});
// The parent is gone: nothing is left to serve.
process.on('disconnect', () => process.exit());
send({ id: 0, value: { id: work.executorId, status: 'started', ms: performance.now() } });
