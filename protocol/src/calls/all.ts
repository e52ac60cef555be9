// Every call of the internal protocols.
import * as agents from './agents.ts';
import * as clones from './clones.ts';
import * as connections from './connections.ts';
import type { CallSpec } from './define.ts';
import * as exec from './exec.ts';
import * as fileWatch from './file-watch.ts';
import * as files from './files.ts';
import * as identity from './identity.ts';
import * as metrics from './metrics.ts';
import * as modelAccess from './model-access.ts';
import * as processes from './processes.ts';
import * as variables from './variables.ts';
import * as vms from './vms.ts';

const MODULES = {
  agents,
  exec,
  identity,
  metrics,
  clones,
  files,
  fileWatch,
  connections,
  modelAccess,
  processes,
  variables,
  vms,
} as const;

type CallsIn<M> = { [K in keyof M]: M[K] extends CallSpec ? M[K] : never }[keyof M];
type Modules = typeof MODULES;
type Call = { [K in keyof Modules]: CallsIn<Modules[K]> }[keyof Modules];

export const CALLS = Object.values(MODULES).flatMap((module) => Object.values<unknown>(module).filter(isCall));

function isCall(value: unknown): value is CallSpec {
  return typeof value === 'object' && value !== null && 'target' in value && 'method' in value;
}

/** Calls that the host daemon handles itself. */
export type HostCall = Extract<Call, { target: 'host' }>;
/** Calls that the guest daemon serves. */
export type GuestCall = Exclude<Call, { target: 'host' }>;
