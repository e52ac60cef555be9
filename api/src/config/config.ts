// The control plane's only reader of the environment; environment.ts lists the variables. A wrong
// value stops the start with a message that names the variable.
import { readFileSync } from 'node:fs';
import { DEFAULT_MACHINE_RATES, type MachineRates } from '@berth/contract/billing/machine-rates.ts';
import { planCatalogue } from '@berth/contract/billing/plans.ts';
import { ORG_REQUESTS_FACTOR } from '@berth/contract/route/limits.ts';
import { isLoopback } from '@berth/os/loopback.ts';
import type { z } from 'zod';
import { databaseEnvironment, secretsEnvironment, serveEnvironment, type LOG_LEVELS } from './environment.ts';
import { modelEndpointsOf } from '../rules/agents/model-endpoints.ts';
import { planCatalogueOf, type Plans } from '../rules/billing/plan-catalogue.ts';
import { originOf } from '../rules/clones/repository.ts';
import { previewUrlFault } from '../rules/previews/host.ts';
import type { SecretKey } from '../services/context/secret-key.ts';
import type { Settings } from '../services/context/settings.ts';
import { findSecretFiles, readSecretFiles, type SecretFiles, type SecretsOfFiles } from './secret-files.ts';

interface DatabaseConfig {
  /** `BERTH_DATABASE_URL`, or else `DATABASE_URL`. */
  databaseUrl: string;
  /** `BERTH_LOG_LEVEL`, default `info`. */
  logLevel: (typeof LOG_LEVELS)[number];
}

export interface ServeConfig extends DatabaseConfig {
  /** `BERTH_LISTEN`: listen address, default 127.0.0.1. */
  listenAddress: string;
  /** `BERTH_PORT`, default 4800; 0 picks a free port. */
  port: number;
  /** `BERTH_DATABASE_CONNECTIONS`: size of the pool that serves requests, default 20. */
  databaseConnections: number;
  /** `BERTH_HOST_URL`: `unix:/path/to/socket` or `http://address:port`. */
  hostUrl: string;
  /** First line of the file `BERTH_HOST_TOKEN_FILE`. */
  hostToken: string;
  /** Content of the JSON file `BERTH_PLANS_FILE` (default: the self-hosted plan alone). */
  plans: Plans;
  /** The current key and former ones, of `BERTH_SECRET_KEY_FILE` or `BERTH_SECRET_KEY_COMMAND`. */
  secretKey: SecretKey;
  /** Read again while serving. */
  secretFiles: SecretFiles;
  settings: Settings;
  mail: MailConfig;
  /** OIDC provider for sign-in; null without `BERTH_OIDC_ISSUER`. */
  oidc: OidcConfig | null;
  /** Payment provider; null without `BERTH_STRIPE_SECRET_KEY_FILE`. */
  stripe: StripeConfig | null;
  /** `BERTH_CRASH_AT`. Tests only; see workers/steps/crash-point.ts. */
  crashAt: string | null;
}

/** Destination of mail: an SMTP server or an outbox folder. */
export type MailConfig =
  | {
      kind: 'smtp';
      /**
       * `BERTH_SMTP_URL`: `smtp://user:password@host:port`, or `smtps://`; or the content of
       * `BERTH_SMTP_URL_FILE`.
       */
      url: string;
      /** `BERTH_MAIL_FROM`. */
      from: string;
    }
  | { kind: 'outbox'; /** `BERTH_OUTBOX_FOLDER`. */ folder: string; from: string };

export interface OidcConfig {
  /** `BERTH_OIDC_ISSUER`: the issuer URL, the base of its discovery document. */
  issuer: string;
  /** `BERTH_OIDC_CLIENT_ID`. */
  clientId: string;
  /** Content of the file `BERTH_OIDC_CLIENT_SECRET_FILE`. */
  clientSecret: string;
  /** `BERTH_OIDC_NAME`: label of the button, default `single sign-on`. */
  name: string;
}

interface StripeConfig {
  /** Content of the file `BERTH_STRIPE_SECRET_KEY_FILE`: a secret or restricted API key. */
  secretKey: string;
  /** Content of the file `BERTH_STRIPE_WEBHOOK_SECRET_FILE`: secret of the webhook endpoint. */
  webhookSecret: string;
  /** `BERTH_STRIPE_API_URL`: replaces Stripe's address in tests. */
  apiUrl: string | null;
}

type Environment = Readonly<Record<string, string | undefined>>;

/** Configuration of every command. Throws naming the missing or wrong variable. */
export function readDatabaseConfig(environment: Environment): DatabaseConfig {
  const values = read(databaseEnvironment, environment);
  return { databaseUrl: values.BERTH_DATABASE_URL, logLevel: values.BERTH_LOG_LEVEL };
}

/** The secrets, as in {@link readServeConfig}. Throws naming the wrong variable. */
export function readSecretsConfig(environment: Environment): SecretsOfFiles {
  return readSecretFiles(findSecretFiles(read(secretsEnvironment, environment), environment));
}

/** The plan catalogue, as in {@link readServeConfig}. Throws naming the wrong variable. */
export function readPlanCatalogue(environment: Environment): Plans {
  return readPlansFile(environment['BERTH_PLANS_FILE'] || undefined).plans;
}

/** Configuration of `serve`. Throws naming the missing or wrong variable. */
export function readServeConfig(environment: Environment): ServeConfig {
  const values = read(serveEnvironment, environment);
  requirePrivateHop(values.BERTH_HOST_URL, values.BERTH_HOST_PLAINTEXT === '1');
  const publicUrl = new URL(values.BERTH_PUBLIC_URL ?? `http://${bracketed(values.BERTH_LISTEN)}:${values.BERTH_PORT}`)
    .origin;
  const { plans, machineRates } = readPlansFile(values.BERTH_PLANS_FILE);
  const secretFiles = findSecretFiles(values, environment);
  const { secretKey, hostTokens } = readSecretFiles(secretFiles);
  return {
    databaseUrl: values.BERTH_DATABASE_URL,
    logLevel: values.BERTH_LOG_LEVEL,
    listenAddress: values.BERTH_LISTEN,
    port: values.BERTH_PORT,
    databaseConnections: values.BERTH_DATABASE_CONNECTIONS,
    hostUrl: values.BERTH_HOST_URL,
    hostToken: hostTokens[0],
    plans,
    secretKey,
    secretFiles,
    settings: {
      publicUrl,
      ...readPreviews(values, publicUrl),
      consoleFolder: values.BERTH_CONSOLE_FOLDER ?? null,
      requestsPerMinute: values.BERTH_REQUESTS_PER_MINUTE,
      orgRequestsPerMinute:
        values.BERTH_ORG_REQUESTS_PER_MINUTE ?? ORG_REQUESTS_FACTOR * values.BERTH_REQUESTS_PER_MINUTE,
      bodiesInFlightMib: values.BERTH_BODIES_IN_FLIGHT_MIB,
      streams: values.BERTH_API_STREAMS,
      visitors: {
        requestsPerMinute: values.BERTH_VISITOR_REQUESTS_PER_MINUTE,
        connections: values.BERTH_VISITOR_CONNECTIONS,
      },
      shares: {
        orgsPerUser: values.BERTH_ORGS_PER_USER,
        projectsPerOrg: values.BERTH_PROJECTS_PER_ORG,
        apiKeysPerOrg: values.BERTH_API_KEYS_PER_ORG,
        agentTokensPerUser: values.BERTH_AGENT_TOKENS_PER_USER,
      },
      sessionTokenMinutes: values.BERTH_SESSION_TOKEN_MINUTES,
      reauthenticateMinutes: values.BERTH_REAUTHENTICATE_MINUTES,
      signUp: values.BERTH_SIGN_UP,
      signUpsPerHour: { address: values.BERTH_SIGN_UPS_PER_ADDRESS, domain: values.BERTH_SIGN_UPS_PER_DOMAIN },
      capGraceSeconds: values.BERTH_CAP_GRACE_SECONDS,
      machineRates,
      trustedProxies: values.BERTH_TRUSTED_PROXIES,
      git: {
        baseUrl: values.BERTH_GIT_BASE_URL.replace(/\/$/, ''),
        allowedOrigins: (values.BERTH_GIT_ALLOW_URLS?.split(',') ?? [])
          .map((host) => host.trim())
          .map((host) => originOf(host.includes('://') ? host : `https://${host}`)),
        cloneTimeoutSeconds: values.BERTH_CLONE_TIMEOUT_SECONDS,
        cloneMaxMib: values.BERTH_CLONE_MAX_MIB,
      },
      modelEndpoints: modelEndpointsOf(values.BERTH_MODEL_ENDPOINTS),
    },
    mail: readMail(values),
    oidc: readOidc(values),
    stripe: readStripe(values),
    crashAt: values.BERTH_CRASH_AT ?? null,
  };
}

function read<S extends z.ZodObject>(schema: S, environment: Environment): z.output<S> {
  const given = Object.entries({
    ...environment,
    BERTH_DATABASE_URL: environment['BERTH_DATABASE_URL'] || environment['DATABASE_URL'],
  });
  // An empty variable counts as unset.
  const result = schema.safeParse(Object.fromEntries(given.filter(([, value]) => value !== '')));
  if (result.success) return result.data;
  const told = result.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`).join('; ');
  throw new Error(`invalid environment: ${told}`);
}

function readSecret(variable: string, path: string): string {
  const secret = readFileSync(path, 'utf8').trim();
  if (secret === '') throw new Error(`invalid environment: ${variable}: ${path} is empty`);
  return secret;
}

/** Defaults to hosts below localhost, on the port of the public URL. */
function readPreviews(
  values: z.output<typeof serveEnvironment>,
  publicUrl: string,
): Pick<Settings, 'previewUrl' | 'previewCookies'> {
  const { origin } = new URL(
    values.BERTH_PREVIEW_URL ?? `http://localhost:${new URL(publicUrl).port || values.BERTH_PORT}`,
  );
  const fault = previewUrlFault(origin, publicUrl);
  if (fault !== null) throw new Error(`invalid environment: BERTH_PREVIEW_URL: ${origin}: ${fault}`);
  const { protocol, hostname } = new URL(origin);
  // Browsers accept no cookies for localhost, so no sibling can set them there.
  const { BERTH_PREVIEW_COOKIES: cookies = protocol === 'https:' && hostname !== 'localhost' ? 'proven' : 'all' } =
    values;
  if (cookies === 'proven' && protocol === 'http:')
    throw new Error('invalid environment: BERTH_PREVIEW_COOKIES: proven requires an https BERTH_PREVIEW_URL');
  return { previewUrl: origin, previewCookies: cookies };
}

function readMail(values: z.output<typeof serveEnvironment>): MailConfig {
  const from = values.BERTH_MAIL_FROM;
  const url =
    values.BERTH_SMTP_URL ??
    (values.BERTH_SMTP_URL_FILE && readSecret('BERTH_SMTP_URL_FILE', values.BERTH_SMTP_URL_FILE));
  return url ? { kind: 'smtp', url, from } : { kind: 'outbox', folder: values.BERTH_OUTBOX_FOLDER, from };
}

function readOidc(values: z.output<typeof serveEnvironment>): OidcConfig | null {
  const {
    BERTH_OIDC_ISSUER: issuer,
    BERTH_OIDC_CLIENT_ID: clientId,
    BERTH_OIDC_CLIENT_SECRET_FILE: secretFile,
  } = values;
  if (issuer === undefined) return null;
  if (clientId === undefined || secretFile === undefined) {
    throw new Error(
      'invalid environment: BERTH_OIDC_ISSUER requires BERTH_OIDC_CLIENT_ID and BERTH_OIDC_CLIENT_SECRET_FILE',
    );
  }
  return {
    issuer,
    clientId,
    clientSecret: readSecret('BERTH_OIDC_CLIENT_SECRET_FILE', secretFile),
    name: values.BERTH_OIDC_NAME,
  };
}

function readStripe(values: z.output<typeof serveEnvironment>): StripeConfig | null {
  const {
    BERTH_STRIPE_SECRET_KEY_FILE: keyFile,
    BERTH_STRIPE_WEBHOOK_SECRET_FILE: webhookFile,
    BERTH_STRIPE_API_URL: apiUrl,
  } = values;
  if (keyFile === undefined && webhookFile === undefined) return null;
  if (keyFile === undefined || webhookFile === undefined) {
    throw new Error(
      'invalid environment: BERTH_STRIPE_SECRET_KEY_FILE and BERTH_STRIPE_WEBHOOK_SECRET_FILE must be set together',
    );
  }

  return {
    secretKey: readStripeSecret('BERTH_STRIPE_SECRET_KEY_FILE', keyFile, ['sk_', 'rk_']),
    webhookSecret: readStripeSecret('BERTH_STRIPE_WEBHOOK_SECRET_FILE', webhookFile, ['whsec_']),
    apiUrl: apiUrl ?? null,
  };
}

/** Swapped secrets would go unnoticed until the first payment is lost. */
function readStripeSecret(variable: string, path: string, beginnings: string[]): string {
  const secret = readSecret(variable, path);
  if (beginnings.some((beginning) => secret.startsWith(beginning)) && /^\w+$/.test(secret)) return secret;
  throw new Error(
    `invalid environment: ${variable}: ${path} must contain one word with the prefix ${beginnings.join(' or ')}`,
  );
}

/** An address in URL form. */
function bracketed(address: string): string {
  return address.includes(':') ? `[${address}]` : address;
}

function readPlansFile(path: string | undefined): { plans: Plans; machineRates: MachineRates } {
  if (path === undefined) return { plans: planCatalogueOf(), machineRates: DEFAULT_MACHINE_RATES };
  const refuse = (why: string, cause?: unknown): never => {
    throw new Error(`invalid environment: BERTH_PLANS_FILE: ${path}: ${why}`, { cause });
  };
  let content: unknown;
  try {
    content = JSON.parse(readFileSync(path, 'utf8'));
  } catch (error) {
    return refuse(error instanceof Error ? error.message : String(error), error);
  }
  const catalogue = planCatalogue.safeParse(content);
  if (catalogue.success) {
    const { plans, machineRates = DEFAULT_MACHINE_RATES } = catalogue.data;
    return { plans: planCatalogueOf(plans), machineRates };
  }
  return refuse(
    catalogue.error.issues.map(({ path: place, message }) => `${place.join('.') || 'the file'}: ${message}`).join('; '),
  );
}

/** The host token and the data of all tenants pass there. */
function requirePrivateHop(hostUrl: string, plaintextAllowed: boolean): void {
  if (hostUrl.startsWith('unix:') || plaintextAllowed || isLoopback(new URL(hostUrl).hostname)) return;

  throw new Error(
    `BERTH_HOST_URL: ${new URL(hostUrl).origin} is plain http beyond this machine: ` +
      'use a TLS or VPN tunnel with a loopback address, or set BERTH_HOST_PLAINTEXT=1 on a network you trust',
  );
}
