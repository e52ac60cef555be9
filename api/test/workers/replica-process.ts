// An API replica as a separate process without HTTP: the real services and durable work, driven by
// messages from its parent. Tests kill it; BERTH_CRASH_AT arms its crash point as in the real
// server.
import pino from 'pino';
import { openCore } from '../../src/control-plane/core.ts';
import { planCatalogueOf } from '../../src/rules/billing/plan-catalogue.ts';
import type { ServiceContext } from '../../src/services/context/context.ts';
import { createInvitation } from '../../src/services/orgs/invitations.ts';
import type { LifecycleQueue } from '../../src/services/context/lifecycle-port.ts';
import { createSandbox } from '../../src/services/sandboxes/create.ts';
import { resizeSandbox } from '../../src/services/sandboxes/resize.ts';
import { sleepSandbox } from '../../src/services/sandboxes/sleep.ts';
import { wakeSandbox } from '../../src/services/sandboxes/wake.ts';
import { destroySandbox } from '../../src/services/sandboxes/sandboxes.ts';
import { SecretKey } from '../../src/services/context/secret-key.ts';
import type { SandboxRow } from '../../src/store/database/schema.ts';
import { armCrashPoint } from '../../src/workers/steps/crash-point.ts';
import { SETTINGS } from '../world/settings.ts';
import { settledRow } from '../world/settled.ts';
import type { ReplicaAnswer, ReplicaOptions, ReplicaRequest, ReplicaValue } from './replica.ts';

const options = JSON.parse(process.argv[2] ?? '') as ReplicaOptions;
const crashAt = process.env['BERTH_CRASH_AT'];
if (crashAt !== undefined) armCrashPoint(crashAt);
const log = pino({ level: options.logLevel }, pino.destination(2));
const { leaseMs, queuePollMs, hostTimeoutMs, hostSilenceMs, mailRetryPolicy } = options;
const core = await openCore(
  {
    databaseUrl: options.databaseUrl,
    databaseConnections: 20,
    hostUrl: options.hostUrl,
    hostToken: options.hostToken,
    plans: planCatalogueOf(options.plans),
    settings: {
      ...SETTINGS,
      capGraceSeconds: options.capGraceSeconds ?? SETTINGS.capGraceSeconds,
      git: { ...SETTINGS.git, cloneTimeoutSeconds: options.cloneTimeoutSeconds ?? SETTINGS.git.cloneTimeoutSeconds },
    },
    secretKey: new SecretKey(Buffer.alloc(32)),
    mail: options.mail,
  },
  log,
  {
    durable: {
      ...(leaseMs === undefined ? {} : { leaseMs }),
      ...(queuePollMs === undefined ? {} : { queuePollMs }),
      ...(hostTimeoutMs === undefined ? {} : { hostTimeoutMs }),
      ...(hostSilenceMs === undefined ? {} : { hostSilenceMs }),
      ...(mailRetryPolicy === undefined ? {} : { mailRetryPolicy }),
    },
  },
);
const { durable } = core;
if (durable === null) throw new Error('the replica has no durable work');
const { db } = core.context;
const { queue } = durable;
const lifecycle: LifecycleQueue = {
  enqueue: (trx, kind, step) => queue.enqueue(trx, kind, step),
  enqueueInvitationMail: (trx, invitationId) => queue.enqueueInvitationMail(trx, invitationId),
  started: () => {
    if (options.startAtOnce) queue.started();
  },
};
const context: ServiceContext = { ...core.context, lifecycle };
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
 * Response time and result. Without `respondAsync` it returns the settled state, however slow the
 * host is.
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
      const { key, repository, branch } = request;
      const getOrCreate = key === undefined ? {} : { getOrCreate: { key } };
      const body = { agent: 'agent_one', projectId: options.projectId, repository, branch, ...getOrCreate } as const;
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
      await core.close();
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
// Exit with the parent.
process.on('disconnect', () => process.exit());
send({ id: 0, value: { id: durable.executorId, status: 'started', ms: performance.now() } });
