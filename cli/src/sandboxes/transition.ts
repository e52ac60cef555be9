// `berth sandbox sleep`, `wake` and `rm`: each for one or more sandboxes.
import type { Sandbox, TransitionOptions } from '@berth/sdk';
import type { CliContext } from '../program/context.ts';
import { runEach } from '../program/each.ts';
import { findSandbox, NoSandbox } from '../service/find-sandbox.ts';
import { sandboxLine } from './view.ts';
import type { Action, Input } from '../program/command-spec.ts';

type WaitInput = { wait: boolean };

interface Verb {
  progressText: string;
  /** It can lose data. */
  destructive: boolean;
  act: (sandbox: Sandbox, options: TransitionOptions) => Promise<Sandbox>;
}

/** Destroys an ephemeral sandbox. */
export const sleepSandboxes = transition({
  progressText: 'going to sleep',
  destructive: true,
  act: async (sandbox, options) => await sandbox.sleep(options),
});

export const wakeSandboxes = transition({
  progressText: 'waking',
  destructive: false,
  act: async (sandbox, options) => await sandbox.wake(options),
});

/** No confirmation: the user named the sandboxes. */
export const removeSandboxes = transition({
  progressText: 'deleting',
  destructive: true,
  act: async (sandbox, options) => await sandbox.destroy(options),
});

function transition(verb: Verb): Action<WaitInput> {
  return async (context: CliContext, { args, options: { wait } }: Input<WaitInput>) => {
    const { connect, out, signal } = context;
    const { ids, missing } = await findAll(context, args, verb);
    const { berth } = await connect();
    return await runEach(context, ids, {
      progressText: verb.progressText,
      work: async (id) => {
        if (missing.has(id)) throw missing.get(id);
        return (await verb.act(await berth.sandboxes.get(id, { signal }), { wait, signal })).data;
      },
      show: (data) => (out.json ? out.object({ sandbox: data }) : out.line(sandboxLine(data))),
    });
  };
}

/**
 * Ids in the order of the words; a word without a sandbox stays, with its failure. Throws for an
 * ambiguous word, before anything is done.
 */
async function findAll(
  context: CliContext,
  words: readonly string[],
  { destructive }: Verb,
): Promise<{ ids: string[]; missing: Map<string, unknown> }> {
  const ids: string[] = [];
  const missing = new Map<string, unknown>();
  for (const word of words) {
    try {
      ids.push(await findSandbox(context, word, { destructive }));
    } catch (error) {
      if (!(error instanceof NoSandbox)) throw error;
      missing.set(word, error);
      ids.push(word);
    }
  }
  return { ids, missing };
}
