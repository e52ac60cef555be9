// `berth sandbox sleep`, `wake` and `rm`: each for named sandboxes, or those that a filter
// selects.
import type { Sandbox, SandboxData, TransitionOptions } from '@berth/sdk';
import type { CliContext } from '../program/context.ts';
import { runEach } from '../program/each.ts';
import { EXIT, UsageError } from '../output/failure.ts';
import { findSandbox, NoSandbox } from '../service/find-sandbox.ts';
import {
  isChangedBy,
  isStillSelected,
  isSelection,
  selectSandboxes,
  type BulkAction,
  type SelectionInput,
} from './selection.ts';
import { sandboxLine } from './view.ts';
import type { Action, Input } from '../program/command-spec.ts';

type TransitionInput = SelectionInput & { wait: boolean };

interface Verb {
  action: BulkAction;
  progressText: string;
  /** For the summary. */
  done: string;
  /** Can lose data. */
  destructive: boolean;
  act: (sandbox: Sandbox, options: TransitionOptions) => Promise<Sandbox>;
}

/** Destroys an ephemeral sandbox. */
export const sleepSandboxes = transition({
  action: 'sleep',
  progressText: 'going to sleep',
  done: 'put to sleep',
  destructive: true,
  act: async (sandbox, options) => await sandbox.sleep(options),
});

export const wakeSandboxes = transition({
  action: 'wake',
  progressText: 'waking',
  done: 'woken',
  destructive: false,
  act: async (sandbox, options) => await sandbox.wake(options),
});

/** No confirmation of named sandboxes. */
export const removeSandboxes = transition({
  action: 'destroy',
  progressText: 'deleting',
  done: 'deleted',
  destructive: true,
  act: async (sandbox, options) => await sandbox.destroy(options),
});

function transition(verb: Verb): Action<TransitionInput> {
  return async (context: CliContext, { args, options }: Input<TransitionInput>) => {
    if (args.length === 0) return await changeSelected(context, verb, options);
    if (isSelection(options)) throw new UsageError('names cannot be combined with --all or a filter');
    if (options.yes === true) throw new UsageError('--yes requires --all or a filter: names need no confirmation');
    const { connect, signal } = context;
    const { ids, missing } = await findAll(context, args, verb);
    const { berth } = await connect();
    return await runEach(context, ids, {
      progressText: verb.progressText,
      work: async (id) => {
        if (missing.has(id)) throw missing.get(id);
        return (await verb.act(await berth.sandboxes.get(id, { signal }), { wait: options.wait, signal })).data;
      },
      show: (data) => show(context, data),
    });
  };
}

/** Resolves with 1 if any failed. */
async function changeSelected(context: CliContext, verb: Verb, options: TransitionInput): Promise<number> {
  const { connect, out, signal } = context;
  const selected = await selectSandboxes(context, options, verb.action);
  if (selected.length === 0) return EXIT.ok;
  const { berth } = await connect();
  let changed = 0;
  let failed = 0;
  let skipped = 0;
  const work = async (id: string): Promise<SandboxData> => {
    try {
      const sandbox = await berth.sandboxes.get(id, { signal });
      // Changed since the list, or while the question was open.
      if (!isChangedBy(verb.action, sandbox.data) || !isStillSelected(options, sandbox.data)) {
        skipped += 1;
        return sandbox.data;
      }
      const { data } = await verb.act(sandbox, { wait: options.wait, signal });
      changed += 1;
      return data;
    } catch (error) {
      failed += 1;
      throw error;
    }
  };
  const ids = selected.map(({ id }) => id);
  const each = { progressText: verb.progressText, work, show: (data: SandboxData) => show(context, data) };
  const summary = (): void => {
    const rest = [
      ...(failed > 0 ? [`failed: ${failed}`] : []),
      ...(skipped > 0 ? [`no longer selected: ${skipped}`] : []),
    ];
    out.note([`berth: ${options.wait ? verb.done : 'requested'}: ${changed}`, ...rest].join(', '));
  };
  const code = await runEach(context, ids, each).catch((error: unknown) => {
    summary();
    throw error;
  });
  summary();
  return code === EXIT.ok ? EXIT.ok : EXIT.failed;
}

function show({ out }: CliContext, data: SandboxData): void {
  if (out.json) out.object({ sandbox: data });
  else out.line(sandboxLine(data));
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
