// Dependencies of services. Built in control-plane/core.ts.
import type { Logger } from 'pino';
import type { HostClients } from '../../hosts/clients.ts';
import type { Plans } from '../../rules/billing/plan-catalogue.ts';
import type { Callers } from '../../store/access/callers.ts';
import type { Changes } from '../../store/database/changes.ts';
import type { Database } from '../../store/database/schema.ts';
import type { FindTxtRecords } from './dns-port.ts';
import type { Holds } from './holds.ts';
import type { LifecycleQueue } from './lifecycle-port.ts';
import type { Mailer } from './mail-port.ts';
import type { PaymentProvider } from './payment-port.ts';
import type { SecretKey } from './secret-key.ts';
import type { Settings } from './settings.ts';

export interface ServiceContext {
  db: Database;
  /** Prepared statements of the hot path, on the pool of `db`. */
  callers: Callers;
  changes: Changes;
  lifecycle: LifecycleQueue;
  hosts: HostClients;
  holds: Holds;
  /** Keyed by plan id. */
  plans: Plans;
  settings: Settings;
  secretKey: SecretKey;
  mailer: Mailer;
  findTxtRecords: FindTxtRecords;
  /** null: no payments are collected. */
  payments: PaymentProvider | null;
  log: Logger;
}
