// The control plane's API as a service: confined to the checkout, the database's socket and the
// host's socket, as an unprivileged user.
import { existsSync } from 'node:fs';
import { access, chown, mkdir } from 'node:fs/promises';
import { request } from 'node:http';
import { dirname, join } from 'node:path';
import { startConfined } from '../../supervisor/child.ts';
import type { Config } from '../../config/config.ts';
import type { Bind, Confined } from '../../supervisor/confinement.ts';
import { secretKeyFile } from '../../supervisor/instance.ts';
import type { InstancePaths } from '../../supervisor/instance.ts';
import { API_ALLOCATOR, API_NODE_FLAGS } from './api-memory.ts';
import { withOperatorSecrets } from './operator-secrets.ts';
import { socketDatabaseUrl } from '../database/connection.ts';
import { startAndWait, stopWithin } from '../../supervisor/readiness.ts';
import type { RoleContext } from '../../supervisor/role.ts';
import type { Service } from '../../supervisor/service.ts';

/** Relative to the checkout. */
export const API_PROGRAM = 'api/src/main.ts';
/** The first start makes the tables. */
const ANSWER_DEADLINE_MS = 120_000;
const STOP_GRACE_MS = 20_000;
const CALL_DEADLINE_MS = 5_000;

export function apiService(options: RoleContext): Service {
  return {
    name: 'api',
    start: (onOutput, signal) =>
      startAndWait(
        {
          name: 'api',
          launch: async (forward) => startConfined(serving(options, await confinedApi(options, [])), forward),
          answers: (deadline) => isHealthy(options.config, deadline),
          answerDeadlineMs: ANSWER_DEADLINE_MS,
          stop: stopWithin(STOP_GRACE_MS),
        },
        onOutput,
        signal,
      ),
  };
}

/** Settings of the serving API alone. */
function serving(options: RoleContext, api: Confined): Confined {
  return withConsole(withPlans(options, withOperatorSecrets(options.environment, options.paths, api)));
}

/** Gives the serving API the web console of the set-up. */
function withConsole(api: Confined): Confined {
  const folder = api.environment['BERTH_CONSOLE_FOLDER'];
  if (folder === undefined || folder === '') return api;

  return {
    ...api,
    binds: [...api.binds, { from: folder, to: '/console' }],
    environment: { ...api.environment, BERTH_CONSOLE_FOLDER: '/console' },
  };
}

/** Gives the serving API the copied plan catalogue. */
export function withPlans({ config, paths }: Pick<RoleContext, 'config' | 'paths'>, api: Confined): Confined {
  if (config.plansFile === null) return api;

  return {
    ...api,
    binds: [...api.binds, { from: paths.plans, to: '/plans.json' }],
    environment: { ...api.environment, BERTH_PLANS_FILE: '/plans.json' },
  };
}

/**
 * Gives a command of the API the catalogue copied by the last `up`, which the running API uses too;
 * the operator's file is not visible inside.
 */
export async function withPlansOfLastUp({ paths }: Pick<RoleContext, 'paths'>, api: Confined): Promise<Confined> {
  const there = await access(paths.plans).then(
    () => true,
    () => false,
  );
  return {
    ...api,
    binds: there ? [...api.binds, { from: paths.plans, to: '/plans.json' }] : api.binds,
    environment: { ...api.environment, BERTH_PLANS_FILE: there ? '/plans.json' : '' },
  };
}

/** The API's program with arguments, confined like the API itself. */
export async function confinedApi(options: RoleContext, args: readonly string[]): Promise<Confined> {
  const { checkout, config, paths, user } = options;
  const compiled = join(config.cacheFolder, 'node-compile-api');
  await mkdir(compiled, { recursive: true });
  await chown(compiled, user.uid, user.gid);
  const binds: Bind[] = [
    { from: checkout, to: '/app' },
    { from: paths.hostSocketFolder, to: '/host' },
    { from: paths.apiSecrets, to: '/secrets' },
    // Same path inside, because the log names it for stored messages.
    { from: paths.outbox, to: paths.outbox, writable: true },
    { from: compiled, to: '/compiled', writable: true },
  ];
  const keyFile = await secretKeyFile(paths);
  const isElsewhere = keyFile !== paths.secretKey;
  // Commands that need no key run without it too, for example after a reboot.
  if (isElsewhere && existsSync(keyFile)) binds.push({ from: dirname(keyFile), to: '/loaded-key' });
  const { databaseUrl, socketFolder } = databaseAsSeen(config.databaseUrl, paths);
  if (socketFolder !== null) binds.push({ from: socketFolder, to: '/database' });

  const environment = {
    ...options.environment,
    BERTH_LISTEN: config.listen,
    BERTH_PORT: String(config.port),
    BERTH_DATABASE_URL: databaseUrl,
    BERTH_HOST_URL: 'unix:/host/host.sock',
    BERTH_HOST_TOKEN_FILE: '/secrets/host-token',
    BERTH_SECRET_KEY_FILE: isElsewhere ? '/loaded-key/secret-key' : '/secrets/secret-key',
    BERTH_OUTBOX_FOLDER: paths.outbox,
    NODE_COMPILE_CACHE: '/compiled',
    HOME: '/tmp',
  };
  // Not in the environment: the programs of the confinement must not load it.
  const allocator = Object.entries(API_ALLOCATOR).map(([name, value]) => `${name}=${value}`);
  return {
    user,
    binds,
    command: ['env', ...allocator, '/app/node_modules/.bin/node', ...API_NODE_FLAGS, `/app/${API_PROGRAM}`, ...args],
    environment,
    workingFolder: '/app',
  };
}

/** The database's URL inside the confinement, and the bind of its socket folder, if any. */
export function databaseAsSeen(
  given: string | null,
  paths: InstancePaths,
): { databaseUrl: string; socketFolder: string | null } {
  if (given === null)
    return { databaseUrl: socketDatabaseUrl('/database'), socketFolder: join(paths.postgres, 'socket') };

  const url = new URL(given);
  const host = url.searchParams.get('host');
  if (host === null || !host.startsWith('/')) return { databaseUrl: given, socketFolder: null };

  url.searchParams.set('host', '/database');
  return { databaseUrl: url.href, socketFolder: host };
}

/** The API's URL for a local client. */
export function apiUrl(config: Pick<Config, 'listen' | 'port'>): string {
  const address = config.listen === '0.0.0.0' ? '127.0.0.1' : config.listen === '::' ? '::1' : config.listen;
  return urlAt(address, config.port);
}

/** URLs of the service: its public URL, the parent of previews, and its own address. */
export function servedUrls(
  config: Pick<Config, 'listen' | 'port'>,
  environment: Readonly<NodeJS.ProcessEnv>,
): string[] {
  return [publicUrl(config, environment), previewUrl(config, environment), urlAt(config.listen, config.port)];
}

function urlAt(address: string, port: number): string {
  return `http://${address.includes(':') ? `[${address}]` : address}:${port}`;
}

/** The service's public URL: the operator's `BERTH_PUBLIC_URL`, else that for a local client. */
export function publicUrl(config: Pick<Config, 'listen' | 'port'>, environment: Readonly<NodeJS.ProcessEnv>): string {
  return originOf(environment['BERTH_PUBLIC_URL']) ?? apiUrl(config);
}

/**
 * Parent origin of previews: the operator's `BERTH_PREVIEW_URL`, else names below localhost on the
 * public URL's port.
 */
export function previewUrl(config: Pick<Config, 'listen' | 'port'>, environment: Readonly<NodeJS.ProcessEnv>): string {
  const port = new URL(publicUrl(config, environment)).port || config.port;
  return originOf(environment['BERTH_PREVIEW_URL']) ?? new URL(`http://localhost:${port}`).origin;
}

/** Null for an absent or invalid URL: the API itself rejects an invalid one at start. */
function originOf(given = ''): string | null {
  return /^https?:/i.test(given) && URL.canParse(given) ? new URL(given).origin : null;
}

function isHealthy(config: Config, signal: AbortSignal): Promise<boolean> {
  return new Promise((resolve) => {
    const call = request(
      `${apiUrl(config)}/health`,
      { signal: AbortSignal.any([signal, AbortSignal.timeout(CALL_DEADLINE_MS)]), agent: false },
      (response) => {
        response.resume();
        response.once('error', () => resolve(false));
        response.once('end', () => resolve(response.statusCode === 200));
      },
    );
    call.once('error', () => resolve(false));
    call.end();
  });
}
