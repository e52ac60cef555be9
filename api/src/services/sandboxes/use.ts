// Brings a sandbox awake and records the use before it starts. Every use that goes straight to the
// VM begins here.
import type { SandboxAction } from '@berth/contract/sandboxes/state.ts';
import type { UseSignal } from '../../rules/sandboxes/idleness.ts';
import type { ActivityActor } from '../../store/activity/activity.ts';
import type { LocatedSandboxRow } from '../../store/sandboxes/sandboxes.ts';
import { noteActivity } from './activity-signal.ts';
import type { ServiceContext } from '../context/context.ts';
import { awakeForUse, reread } from './wake-on-use.ts';

/** An awake sandbox, which therefore has a host. */
export type SandboxInUse = LocatedSandboxRow & { host_url: string };

export interface Use {
  action: SandboxAction;
  signalOfUse: UseSignal;
}

/**
 * Returns the sandbox awake; it is not put to sleep as idle within the next minute. Throws what
 * `awakeForUse` does.
 */
export async function ensureAwake(
  context: ServiceContext,
  actor: ActivityActor,
  sandbox: LocatedSandboxRow,
  { action, signalOfUse }: Use,
  signal: AbortSignal,
): Promise<SandboxInUse> {
  const awake = await awakeForUse(context, actor, sandbox, action, signal);
  // Recorded before the use: either an idle check finds this signal, or this finds that the sandbox
  // fell asleep.
  if (await noteActivity(context, awake, signalOfUse)) return located(awake);
  return located(await awakeForUse(context, actor, await reread(context, awake), action, signal));
}

function located(sandbox: LocatedSandboxRow): SandboxInUse {
  const { host_url } = sandbox;
  if (host_url === null) throw new Error(`sandbox ${sandbox.id} is ${sandbox.status} without a host`);
  return { ...sandbox, host_url };
}
