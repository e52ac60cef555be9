// `berth kill`: signals processes, or removes them.
import type { Signal } from '@berth/sdk';
import { UsageError } from '../output/failure.ts';
import type { CliContext } from '../program/context.ts';
import type { Input } from '../program/command-spec.ts';
import { runEach } from '../program/each.ts';
import { findSandbox } from '../service/find-sandbox.ts';
import { findProcess, processesOf } from './find.ts';

interface KillInput {
  signal?: Signal;
  remove?: true;
}

export async function killProcesses(
  context: CliContext,
  { args: [typedSandbox, ...words], options: { signal: name, remove } }: Input<KillInput>,
): Promise<number> {
  const { out, signal } = context;
  if (remove === true && name !== undefined) {
    throw new UsageError('--signal cannot be combined with --remove', {
      remedy: 'use --remove alone: it kills with SIGKILL, and removes',
    });
  }
  const id = await findSandbox(context, typedSandbox, { destructive: true });
  const processes = await processesOf(context, id);
  return await runEach(context, words, {
    progressText: remove === true ? 'removing' : 'signaling',
    work: async (typed) => {
      const process = await findProcess(processes, { sandboxId: id, typed, signal });
      await (remove === true ? process.remove({ signal }) : process.kill(name ?? 'SIGTERM', { signal }));
      return process;
    },
    show: ({ id: processId, data }) => {
      const done = remove === true ? 'removed' : `${name ?? 'SIGTERM'} sent`;
      if (out.json) out.object({ process: data });
      else out.line(`${processId} ${done}`);
    },
  });
}
