// Prepares a sandbox for use: wakes it if needed and records the use before it starts. Every
// data-plane use begins here.
import type { UseSignal } from '@berth/contract/sandboxes/sandboxes.ts';
import type { SandboxAction } from '@berth/contract/sandboxes/state.ts';
import { requireLegal } from '../../rules/sandboxes/action.ts';
import type { ActivityActor } from '../../store/activity/activity.ts';
import type { LocatedSandboxRow } from '../../store/sandboxes/sandboxes.ts';
import { recordActivity } from './activity-signal.ts';
import type { ServiceContext } from '../context/context.ts';
import { awakeForUse, reread } from './wake-on-use.ts';

/** An awake sandbox, which therefore has a host. */
export type SandboxInUse = LocatedSandboxRow & { host_url: string };

interface Use {
  action: SandboxAction;
  signalOfUse: UseSignal;
  /** Limit of the wait for a wake. Default: that of commands. */
  waitMs?: number;
  /** False: a sandbox that is not awake is refused, whatever its project says. */
  mayWake?: boolean;
}

/** The sandbox, awake and safe from auto-sleep for a minute. Throws as `awakeForUse`. */
export async function ensureAwake(
  context: ServiceContext,
  actor: ActivityActor,
  sandbox: LocatedSandboxRow,
  { action, signalOfUse, waitMs, mayWake = true }: Use,
  signal: AbortSignal,
): Promise<SandboxInUse> {
  if (!mayWake) requireLegal(action, sandbox.status);
  const awake = await awakeForUse(context, actor, sandbox, action, signal, waitMs);
  // Recorded before the use: either the idle check sees this signal, or this call sees that the
  // sandbox fell asleep.
  if (await recordActivity(context, awake, signalOfUse)) return located(awake);
  const now = await reread(context, awake);
  if (!mayWake) requireLegal(action, now.status);
  return located(await awakeForUse(context, actor, now, action, signal, waitMs));
}

export function located(sandbox: LocatedSandboxRow): SandboxInUse {
  const { host_url } = sandbox;
  if (host_url === null) throw new Error(`sandbox ${sandbox.id} is ${sandbox.status} without a host`);
  return { ...sandbox, host_url };
}
