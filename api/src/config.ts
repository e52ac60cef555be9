// The only reader of the environment in the control plane. Every variable is listed here, with its default; a wrong value stops the start
// with a message that names the variable.
import { readFileSync } from 'node:fs';
import { planCatalogue } from '@berth/contract/plans.ts';
import { z } from 'zod';
import { planCatalogueOf, type Plans } from './rules/plan-catalogue.ts';

const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const;

export interface DatabaseConfig {
  /** `BERTH_DATABASE_URL`, or else `DATABASE_URL`. */
  databaseUrl: string;
  /** `BERTH_LOG_LEVEL`, default `info`. */
  logLevel: (typeof LOG_LEVELS)[number];
}

export interface ServeConfig extends DatabaseConfig {
  /** `BERTH_LISTEN`: the address to listen on, default 127.0.0.1. */
  listenAddress: string;
  /** `BERTH_PORT`, default 4800; 0 takes a free one. */
  port: number;
  /** `BERTH_DATABASE_CONNECTIONS`: size of the pool that answers requests, default 20. */
  databaseConnections: number;
  /** `BERTH_HOST_URL`: `unix:/path/to/socket` or `http://address:port`. */
  hostUrl: string;
  /** Content of the file `BERTH_HOST_TOKEN_FILE`. */
  hostToken: string;
  /** Content of the JSON file `BERTH_PLANS_FILE` (contract/src/plans.ts); without one, the self-hosted plan alone. */
  plans: Plans;
  /** `BERTH_CRASH_AT`. Tests only; see workers/crash-point.ts. */
  crashAt: string | null;
}

type Environment = Readonly<Record<string, string | undefined>>;

const databaseEnvironment = z.object({
  BERTH_DATABASE_URL: z.string().startsWith('postgres', 'must be a URL postgres://...'),
  BERTH_LOG_LEVEL: z.enum(LOG_LEVELS).default('info'),
});

const serveEnvironment = databaseEnvironment.extend({
  BERTH_LISTEN: z.string().min(1).default('127.0.0.1'),
  BERTH_PORT: z.coerce.number().int().min(0).max(65_535).default(4_800),
  BERTH_DATABASE_CONNECTIONS: z.coerce.number().int().min(2).max(1_000).default(20),
  BERTH_HOST_URL: z.string().regex(/^(unix:\/.+|http:\/\/.+)$/, 'must be unix:/path or http://address:port'),
  BERTH_HOST_TOKEN_FILE: z.string().min(1),
  BERTH_PLANS_FILE: z.string().optional(),
  BERTH_CRASH_AT: z.string().optional(),
});

/** What every command needs. Throws naming the variable that is missing or wrong. */
export function readDatabaseConfig(environment: Environment): DatabaseConfig {
  const values = read(databaseEnvironment, environment);
  return { databaseUrl: values.BERTH_DATABASE_URL, logLevel: values.BERTH_LOG_LEVEL };
}

/** The plan catalogue, as {@link readServeConfig} reads it. Throws naming the variable that is wrong. */
export function readPlanCatalogue(environment: Environment): Plans {
  return readPlans(environment['BERTH_PLANS_FILE'] || undefined);
}

/** What `serve` needs. Throws naming the variable that is missing or wrong. */
export function readServeConfig(environment: Environment): ServeConfig {
  const values = read(serveEnvironment, environment);
  return {
    databaseUrl: values.BERTH_DATABASE_URL,
    logLevel: values.BERTH_LOG_LEVEL,
    listenAddress: values.BERTH_LISTEN,
    port: values.BERTH_PORT,
    databaseConnections: values.BERTH_DATABASE_CONNECTIONS,
    hostUrl: values.BERTH_HOST_URL,
    hostToken: readSecret('BERTH_HOST_TOKEN_FILE', values.BERTH_HOST_TOKEN_FILE),
    plans: readPlans(values.BERTH_PLANS_FILE),
    crashAt: values.BERTH_CRASH_AT ?? null,
  };
}

function read<S extends z.ZodObject>(schema: S, environment: Environment): z.output<S> {
  const given = Object.entries({ ...environment, BERTH_DATABASE_URL: environment['BERTH_DATABASE_URL'] || environment['DATABASE_URL'] });
  // An empty variable is as good as none.
  const result = schema.safeParse(Object.fromEntries(given.filter(([, value]) => value !== '')));
  if (result.success) return result.data;
  const told = result.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`).join('; ');
  throw new Error(`the environment is not usable: ${told}`);
}

function readSecret(variable: string, path: string): string {
  const secret = readFileSync(path, 'utf8').trim();
  if (secret === '') throw new Error(`the environment is not usable: ${variable}: ${path} is empty`);
  return secret;
}

function readPlans(path: string | undefined): Plans {
  if (path === undefined) return planCatalogueOf();
  const refuse = (why: string, cause?: unknown): never => {
    throw new Error(`the environment is not usable: BERTH_PLANS_FILE: ${path}: ${why}`, { cause });
  };
  let content: unknown;
  try {
    content = JSON.parse(readFileSync(path, 'utf8'));
  } catch (error) {
    return refuse(error instanceof Error ? error.message : String(error), error);
  }
  const catalogue = planCatalogue.safeParse(content);
  if (catalogue.success) return planCatalogueOf(catalogue.data.plans);
  return refuse(catalogue.error.issues.map(({ path: place, message }) => `${place.join('.') || 'the whole'}: ${message}`).join('; '));
}
