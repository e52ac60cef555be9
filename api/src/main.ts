// The process of the control plane. Commands:
//   serve (default)   migrate, then serve the public API and do the durable work until SIGTERM
//   migrate           migrate the database and exit
//   bootstrap         create the first account, org, project and API key if there are none
//   keys create       create an API key that acts as the owner of an org
//   owner-link        create a sign-in link for the owner of the operator's org
//   plans set         assign a plan of the catalogue to an org
//   sso off           end an org's requirement of single sign-on
//   secrets status    report the secret keys and host tokens, and the replicas that loaded them
// Operator commands print a line of JSON on stdout.
import type { Server } from 'node:http';
import { parseArgs } from 'node:util';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { permission } from '@berth/contract/route/permissions.ts';
import type { Logger } from 'pino';
import type { BytesInFlight } from './call/bytes-in-flight.ts';
import { readDatabaseConfig, readPlanCatalogue, readSecretsConfig, readServeConfig } from './config/config.ts';
import { openControlPlane } from './control-plane/control-plane.ts';
import { STATEMENT_TIMEOUT_MS } from './control-plane/core.ts';
import { openServer } from './control-plane/server.ts';
import { listen } from './http/app.ts';
import { CONNECTION_BYTES, GarbageAfterPeaks } from './http/garbage.ts';
import { openLog } from './log.ts';
import { makeOwnerLink } from './services/people/accounts.ts';
import { mintOwnerKey } from './services/access/api-keys.ts';
import { bootstrap } from './services/people/bootstrap.ts';
import { changePlan } from './services/billing/plan-change.ts';
import { hostTokenIds } from './hosts/clients.ts';
import { switchSsoOff } from './services/orgs/sso.ts';
import { secretsState } from './services/secrets/status.ts';
import { openDatabase } from './store/database/database.ts';
import { migrate } from './store/database/migrate.ts';
import type { Database } from './store/database/schema.ts';
import { armCrashPoint } from './workers/steps/crash-point.ts';

/**
 * Time for open requests to finish when the process stops; longer execs are broken off, which ends
 * their commands.
 */
const STOP_GRACE_MS = 10_000;
const LOAD_INTERVAL_MS = 10_000;

// Count chunks of files and tunnels as ordinary memory: by default V8 scans the whole heap for each
// 16 MB of them. Preview bodies are freed as they are written.
setFlagsFromString('--external-memory-accounted-in-global-limit');

const [command = 'serve', ...rest] = process.argv.slice(2);
try {
  switch (command) {
    case 'serve':
      await serve();
      break;
    case 'migrate':
      await migrateAll(readDatabaseConfig(process.env).databaseUrl, openLog('silent'));
      break;
    case 'bootstrap':
      await runBootstrap(rest);
      break;
    case 'keys':
      await runKeys(rest);
      break;
    case 'owner-link':
      await runOwnerLink(rest);
      break;
    case 'plans':
      await runPlans(rest);
      break;
    case 'sso':
      await runSso(rest);
      break;
    case 'secrets':
      await runSecrets(rest);
      break;
    default:
      throw new Error(
        `unknown command ${command}; ` +
          'known: serve, migrate, bootstrap, keys create, owner-link, plans set, sso off, secrets status',
      );
  }
} catch (error) {
  process.stderr.write(`berth-api: ${error instanceof Error ? error.message : String(error)}\n`);
  // Exit at once: after a failed start (the port is taken) the process must not do durable work as
  // a replica that serves no requests.
  process.exit(1);
}

async function serve(): Promise<void> {
  const config = readServeConfig(process.env);
  if (config.crashAt !== null) armCrashPoint(config.crashAt);
  const log = openLog(config.logLevel);
  await migrateAll(config.databaseUrl, log);
  const controlPlane = await openControlPlane(config, log);
  const app = await openServer(controlPlane);
  const { address, port } = await listen(app, config.listenAddress, config.port);
  log.info({ address, port }, 'ready');
  collectGarbageAfterPeaks(app.server, controlPlane.calls.inFlight);

  const signal = await stopSignal();
  log.info({ signal }, 'stopping');
  const cutOff = setTimeout(() => app.server.closeAllConnections(), STOP_GRACE_MS);
  await app.close();
  clearTimeout(cutOff);
  await controlPlane.close();
  log.info('stopped');
}

function collectGarbageAfterPeaks(server: Server, inFlight: BytesInFlight): void {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as (options: { type: 'major'; flavor: 'last-resort' }) => void;
  const garbage = new GarbageAfterPeaks(() => collect({ type: 'major', flavor: 'last-resort' }));
  const observe = (): void => {
    server.getConnections((error, count) => {
      if (error === null) garbage.observe(inFlight.held + count * CONNECTION_BYTES);
    });
  };
  setInterval(observe, LOAD_INTERVAL_MS).unref();
}

async function migrateAll(databaseUrl: string, log: Logger): Promise<void> {
  const applied = await migrate(databaseUrl);
  if (applied.length > 0) log.info({ applied }, 'migrated the database to the latest schema');
}

function stopSignal(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, resolve);
  });
}

async function runBootstrap(args: string[]): Promise<void> {
  const { values } = parseArgs({
    args,
    options: {
      'owner-email': { type: 'string', default: 'owner@localhost' },
      'owner-name': { type: 'string', default: 'Owner' },
      'org-name': { type: 'string', default: 'First org' },
      'project-name': { type: 'string', default: 'First project' },
      'key-name': { type: 'string', default: 'operator' },
    },
  });
  await withDatabase(async (db) => {
    print(
      await bootstrap(db, {
        ownerEmail: values['owner-email'].toLowerCase(),
        ownerName: values['owner-name'],
        orgName: values['org-name'],
        projectName: values['project-name'],
        keyName: values['key-name'],
      }),
    );
  });
}

async function runKeys(args: string[]): Promise<void> {
  const [verb, ...options] = args;
  if (verb !== 'create') throw new Error(`unknown command keys ${verb ?? ''}; known: keys create`);
  const { values } = parseArgs({
    args: options,
    options: {
      name: { type: 'string', default: 'operator' },
      org: { type: 'string' },
      'expires-in-days': { type: 'string' },
      scopes: { type: 'string' },
    },
  });
  const days = values['expires-in-days'];
  if (days !== undefined && !(/^\d{1,3}$/.test(days) && Number(days) >= 1 && Number(days) <= 365))
    throw new Error(`--expires-in-days must be an integer from 1 to 365, not ${days}`);

  const scopes = values.scopes === undefined ? null : values.scopes.split(',').filter((scope) => scope !== '');
  const unknown = scopes?.find((scope) => !permission.options.some((name) => name === scope));
  if (unknown !== undefined)
    throw new Error(`--scopes: ${unknown} is not a permission; known: ${permission.options.join(', ')}`);
  await withDatabase(async (db) => {
    print(
      await mintOwnerKey(db, {
        name: values.name,
        orgId: values.org,
        scopes,
        expiresInDays: days === undefined ? null : Number(days),
      }),
    );
  });
}

async function runOwnerLink(args: string[]): Promise<void> {
  parseArgs({ args, options: {} });
  await withDatabase(async (db) => {
    print(await makeOwnerLink(db));
  });
}

async function runPlans(args: string[]): Promise<void> {
  const [verb, ...options] = args;
  if (verb !== 'set') throw new Error(`unknown command plans ${verb ?? ''}; known: plans set`);
  const { values } = parseArgs({ args: options, options: { org: { type: 'string' }, plan: { type: 'string' } } });
  const { org: orgId, plan } = values;
  const plans = readPlanCatalogue(process.env);
  if (plan === undefined) throw new Error(`--plan is missing; known: ${[...plans.keys()].join(', ')}`);
  await withDatabase(async (db) => {
    print(await changePlan(db, plans, { orgId, plan }));
  });
}

async function runSso(args: string[]): Promise<void> {
  const [verb, ...options] = args;
  if (verb !== 'off') throw new Error(`unknown command sso ${verb ?? ''}; known: sso off`);
  const { org } = parseArgs({ args: options, options: { org: { type: 'string' } } }).values;
  if (org === undefined) throw new Error('--org is missing');
  await withDatabase(async (db) => {
    print(await switchSsoOff(db, org));
  });
}

async function runSecrets(args: string[]): Promise<void> {
  const [verb] = args;
  if (verb !== 'status' || args.length > 1)
    throw new Error(`unknown command secrets ${args.join(' ')}; known: secrets status`);
  const { secretKey, hostTokens } = readSecretsConfig(process.env);
  await withDatabase(async (db) => {
    print(await secretsState(db, secretKey, hostTokenIds(hostTokens)));
  });
}

/** Runs an operator command on the migrated database, and closes the database. */
async function withDatabase(run: (db: Database) => Promise<void>): Promise<void> {
  const { databaseUrl } = readDatabaseConfig(process.env);
  await migrate(databaseUrl);
  const { db } = openDatabase({
    url: databaseUrl,
    maxConnections: 1,
    statementTimeoutMs: STATEMENT_TIMEOUT_MS,
    onIdleError: (error) => process.stderr.write(`berth-api: Postgres connection lost: ${error.message}\n`),
  });
  try {
    await run(db);
  } finally {
    await db.destroy();
  }
}

function print(value: unknown): void {
  process.stdout.write(`${JSON.stringify(value)}\n`);
}
