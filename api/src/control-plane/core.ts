// The control plane without adapters: database, hosts, mail, payments and durable work, which form
// the context of services. Sufficient for a replica without an HTTP server.
import type { Logger } from 'pino';
import type { Pool } from 'pg';
import type { ServeConfig } from '../config/config.ts';
import { readSecretFiles } from '../config/secret-files.ts';
import { HostClients } from '../hosts/clients.ts';
import { openMailer } from '../mail/mailer.ts';
import { Holds } from '../services/context/holds.ts';
import type { ServiceContext } from '../services/context/context.ts';
import type { FindTxtRecords } from '../services/context/dns-port.ts';
import type { LifecycleQueue } from '../services/context/lifecycle-port.ts';
import type { Mailer } from '../services/context/mail-port.ts';
import type { PaymentProvider } from '../services/context/payment-port.ts';
import { findTxtRecords } from '../services/orgs/txt-records.ts';
import { Callers } from '../store/access/callers.ts';
import { openDatabase } from '../store/database/database.ts';
import { Changes } from '../store/database/changes.ts';
import { startDurable, type DurableOptions, type DurableWork } from '../workers/durable.ts';

export const STATEMENT_TIMEOUT_MS = 30_000;

export type CoreConfig = Pick<
  ServeConfig,
  'databaseUrl' | 'databaseConnections' | 'hostUrl' | 'hostToken' | 'plans' | 'settings' | 'secretKey'
> &
  Partial<Pick<ServeConfig, 'mail' | 'stripe' | 'secretFiles'>>;

export interface CoreOverrides {
  /** Replaces the mailer of the configuration. */
  mailer?: Mailer | undefined;
  /** Replaces the system's resolver. */
  findTxtRecords?: FindTxtRecords | undefined;
  /** Replaces the provider of the configuration; null collects no payments. */
  payments?: PaymentProvider | null | undefined;
  /** Receives the steps instead of the durable work, which is then not started. */
  lifecycle?: LifecycleQueue | undefined;
  durable?:
    | Pick<DurableOptions, 'leaseMs' | 'queuePollMs' | 'hostTimeoutMs' | 'hostSilenceMs' | 'mailRetryPolicy'>
    | undefined;
}

export interface ControlPlaneCore {
  context: ServiceContext;
  /** The pool of `context.db`. */
  pool: Pool;
  /** null: `overrides.lifecycle` receives the steps. */
  durable: DurableWork | null;
  /** Stops the durable work and closes all connections. */
  close(this: void): Promise<void>;
}

/** Requires a migrated database. */
export async function openCore(
  config: CoreConfig,
  log: Logger,
  overrides: CoreOverrides = {},
): Promise<ControlPlaneCore> {
  const { databaseUrl, plans, settings, secretKey } = config;
  // Before the connections, which an error here would leave open.
  const mailer = overrides.mailer ?? openConfiguredMailer(config, log);
  const payments = overrides.payments === undefined ? await openPayments(config) : overrides.payments;
  const { db, pool } = openDatabase({
    url: databaseUrl,
    maxConnections: config.databaseConnections,
    statementTimeoutMs: STATEMENT_TIMEOUT_MS,
    onIdleError: (error) => log.warn({ err: error }, 'Postgres connection lost'),
  });
  const changes = new Changes(databaseUrl, (error) => log.warn({ err: error }, 'Postgres LISTEN connection lost'));
  await changes.start();
  const hosts = new HostClients(config.hostToken, config.settings.streams);
  const { secretFiles } = config;
  const rereadSecrets = secretFiles === undefined ? null : () => readSecretFiles(secretFiles);
  const work = { databaseUrl, db, hosts, hostUrls: [config.hostUrl], mailer, secretKey, rereadSecrets, plans, log };
  const { publicUrl, git, capGraceSeconds } = settings;
  const durable =
    overrides.lifecycle === undefined
      ? await startDurable({ ...work, settings, publicUrl, git, capGraceSeconds, ...overrides.durable })
      : null;
  const lifecycle = overrides.lifecycle ?? durable?.queue;
  if (lifecycle === undefined) throw new Error('no lifecycle queue is configured');
  return {
    context: {
      db,
      callers: new Callers(pool),
      changes,
      lifecycle,
      hosts,
      holds: new Holds(),
      plans,
      settings,
      secretKey,
      mailer,
      findTxtRecords: overrides.findTxtRecords ?? findTxtRecords,
      payments,
      log,
    },
    pool,
    durable,
    close: async () => {
      await durable?.stop();
      hosts.close();
      await changes.close();
      await db.destroy();
    },
  };
}

function openConfiguredMailer({ mail }: CoreConfig, log: Logger): Mailer {
  if (mail === undefined) throw new Error('neither a mailer nor a mail configuration is given');
  return openMailer(mail, log);
}

/** Loaded on demand: the package is large. */
async function openPayments({ stripe }: CoreConfig): Promise<PaymentProvider | null> {
  return stripe === undefined || stripe === null ? null : (await import('../payment/stripe.ts')).openStripe(stripe);
}
