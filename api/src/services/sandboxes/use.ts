// Taking a sandbox into use: awake, and noted as used before anything is done with it. Every use
// that goes straight to the machine begins here.
import type { SandboxAction } from '@berth/contract/sandboxes/state.ts';
import type { UseSignal } from '../../rules/sandboxes/idleness.ts';
import type { ActivityActor } from '../../store/activity/activity.ts';
import type { LocatedSandboxRow } from '../../store/sandboxes/sandboxes.ts';
import { noteActivity } from './activity-signal.ts';
import type { ServiceContext } from '../context/context.ts';
import { awakeForUse, reread } from './wake-on-use.ts';

/** A sandbox that is awake, and so has a host. */
export type SandboxInUse = LocatedSandboxRow & { host_url: string };

export interface Use {
  action: SandboxAction;
  signalOfUse: UseSignal;
}

/**
 * The sandbox, awake and not put to sleep for being idle within the next minute. Throws what
 * `awakeForUse` does.
 */
export async function takeIntoUse(
  context: ServiceContext,
  actor: ActivityActor,
  sandbox: LocatedSandboxRow,
  { action, signalOfUse }: Use,
  signal: AbortSignal,
): Promise<SandboxInUse> {
  const awake = await awakeForUse(context, actor, sandbox, action, signal);
  // Before the use: whoever is about to put it to sleep for being idle finds this sign of it, or
  // this finds that it fell asleep.
  if (await noteActivity(context, awake, signalOfUse)) return located(awake);
  return located(await awakeForUse(context, actor, await reread(context, awake), action, signal));
}

function located(sandbox: LocatedSandboxRow): SandboxInUse {
  const { host_url } = sandbox;
  if (host_url === null) throw new Error(`sandbox ${sandbox.id} is ${sandbox.status} without a host`);
  return { ...sandbox, host_url };
}
