// Wire format of sleep, wake and resize, and of two deprecated aliases, which respond like their
// targets.
import {
  resizeSandbox,
  resumeSandbox,
  sleepSandbox,
  stopSandbox,
  wakeSandbox,
} from '@berth/contract/sandboxes/lifecycle.ts';
import type { Sandbox } from '@berth/contract/sandboxes/sandboxes.ts';
import * as resizes from '../../services/sandboxes/resize.ts';
import * as sleeps from '../../services/sandboxes/sleep.ts';
import * as wakes from '../../services/sandboxes/wake.ts';
import { bind, type Call } from '../../call/bind.ts';
import { viewSandbox } from './view.ts';
import type { ServiceContext } from '../../services/context/context.ts';

/** Fields that an alias and its target share. */
type BareCall = Pick<Call<typeof sleepSandbox | typeof wakeSandbox>, 'actor' | 'params' | 'respondAsync' | 'signal'>;

interface SandboxAnswer {
  sandbox: Sandbox;
}

export const sandboxLifecycleRoutes = [
  bind(sleepSandbox, sleep),
  bind(stopSandbox, sleep),
  bind(wakeSandbox, wake),
  bind(resumeSandbox, wake),
  bind(resizeSandbox, async (context, { actor, params, body, ...answer }) => ({
    sandbox: viewSandbox(await resizes.resizeSandbox(context, actor, params.sandboxId, body, answer)),
  })),
];

async function sleep(context: ServiceContext, { actor, params, ...answer }: BareCall): Promise<SandboxAnswer> {
  return { sandbox: viewSandbox(await sleeps.sleepSandbox(context, actor, params.sandboxId, answer)) };
}

async function wake(context: ServiceContext, { actor, params, ...answer }: BareCall): Promise<SandboxAnswer> {
  return { sandbox: viewSandbox(await wakes.wakeSandbox(context, actor, params.sandboxId, answer)) };
}
