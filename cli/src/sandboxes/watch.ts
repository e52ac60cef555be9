// `berth sandbox ls --watch`: shows the list and its changes until Ctrl-C.
import type { SandboxData } from '@berth/sdk';
import type { CliContext } from '../program/context.ts';
import { plainText } from '../output/plain-text.ts';
import { Screen } from '../output/screen.ts';
import { tableLines } from '../output/table.ts';
import { repeat, tolerant } from '../interaction/repeat.ts';
import { SANDBOX_COLUMNS, sandboxLine } from './view.ts';

interface Watch {
  /** Requests the list. */
  read: () => Promise<readonly SandboxData[]>;
  intervalSeconds: number;
}

/** A change of the list: `removed` sandboxes are deleted, or no longer match. */
interface Change {
  change: 'added' | 'changed' | 'removed';
  sandbox: SandboxData;
}

/** Resolves with the exit code. */
export async function watchSandboxes(context: CliContext, { read, intervalSeconds }: Watch): Promise<number> {
  const { out, signal, stdout, environment } = context;
  const known = new Map<string, SandboxData>();
  const poll = tolerant(read, {
    failed: ({ message }) => {
      if (!stdout.isTTY) out.note(`berth: ${plainText(message)}; retrying`);
    },
  });
  const options = { intervalSeconds, signal };
  if (out.json || !stdout.isTTY || environment['TERM'] === 'dumb') {
    return await repeat(options, async () => {
      for (const change of changesOf(known, await poll())) {
        if (out.json) out.objectLine(change);
        else out.line(`${sandboxLine(change.sandbox)}${change.change === 'removed' ? ' (removed)' : ''}`);
      }
    });
  }
  let shown: readonly SandboxData[] = [];
  try {
    return await Screen.during(stdout, async (screen) => {
      const title = `${intervalSeconds === 1 ? 'every second' : `every ${intervalSeconds} s`}; Ctrl-C stops`;
      return await repeat(options, async () => {
        const now = await poll();
        if (now !== null) shown = now;
        const lines =
          shown.length === 0 ? ['no sandboxes'] : tableLines(SANDBOX_COLUMNS, shown, { width: out.columns });
        screen.show([title, '', ...lines]);
      });
    });
  } finally {
    // Leaves the last list on the normal screen.
    out.table(SANDBOX_COLUMNS, shown, 'no sandboxes');
  }
}

/** Compares the list with the known sandboxes, and replaces those. */
function changesOf(known: Map<string, SandboxData>, now: readonly SandboxData[] | null): Change[] {
  if (now === null) return [];
  const changes: Change[] = [];
  const ids = new Set(now.map(({ id }) => id));
  for (const [id, sandbox] of known) {
    if (ids.has(id)) continue;
    changes.push({ change: 'removed', sandbox });
    known.delete(id);
  }
  // Oldest first, as the feed of activity.
  for (const sandbox of now.toReversed()) {
    const before = known.get(sandbox.id);
    if (before === undefined) changes.push({ change: 'added', sandbox });
    else if (withoutUse(before) !== withoutUse(sandbox)) changes.push({ change: 'changed', sandbox });
    known.set(sandbox.id, sandbox);
  }
  return changes;
}

/** A use of the sandbox is no change. */
function withoutUse(sandbox: SandboxData): string {
  return JSON.stringify({ ...sandbox, lastActiveAt: '', lastActiveBy: null });
}
