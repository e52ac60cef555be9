// `berth sandbox sleep`, `wake` and `rm`: each for one or more sandboxes.
import type { Sandbox, TransitionOptions } from '@berth/sdk';
import type { CliContext } from '../program/context.ts';
import { runEach } from '../program/each.ts';
import { sandboxId } from '../service/resource-id.ts';
import { sandboxLine } from './view.ts';
import type { Action, Input } from '../program/command-spec.ts';

type WaitInput = { wait: boolean };

export const sleepSandboxes = transition('going to sleep', async (sandbox, options) => await sandbox.sleep(options));

export const wakeSandboxes = transition('waking', async (sandbox, options) => await sandbox.wake(options));

/** No confirmation: the user named the ids. */
export const removeSandboxes = transition('deleting', async (sandbox, options) => await sandbox.destroy(options));

function transition(
  progressText: string,
  verb: (sandbox: Sandbox, options: TransitionOptions) => Promise<Sandbox>,
): Action<WaitInput> {
  return async (context: CliContext, { args, options: { wait } }: Input<WaitInput>) => {
    const { connect, out, signal } = context;
    const ids = args.map(sandboxId);
    const { berth } = await connect();
    return await runEach(context, ids, {
      progressText,
      work: async (id) => (await verb(await berth.sandboxes.get(id, { signal }), { wait, signal })).data,
      show: (data) => (out.json ? out.object({ sandbox: data }) : out.line(sandboxLine(data))),
    });
  };
}
