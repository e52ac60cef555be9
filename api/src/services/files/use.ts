// Prepares a sandbox for a file call and explains its failure. Wakes a stopped sandbox first if its
// project has wake-on-use.
import type { SandboxAction } from '@berth/contract/sandboxes/state.ts';
import type { ActivityKind } from '@berth/contract/route/activity-kinds.ts';
import type { HostClient } from '../../hosts/client.ts';
import { quotedPath } from '../../rules/files/path.ts';
import { insertActivity, type ActivityActor } from '../../store/activity/activity.ts';
import type { LocatedSandboxRow } from '../../store/sandboxes/sandboxes.ts';
import type { ServiceContext } from '../context/context.ts';
import { ensureAwake, type SandboxInUse } from '../sandboxes/use.ts';
import { explainFileFailure, type APPEND_WORDS } from './failure.ts';

/** Caller and sandbox of a file operation; the signal aborts it. */
export interface FileCall {
  actor: ActivityActor;
  sandbox: LocatedSandboxRow;
  signal: AbortSignal;
  /** Counts bytes that the call keeps. Throws `too_much_in_flight`. */
  hold(this: void, bytes: number): void;
}

export const PART_MAY_BE_WRITTEN = 'the bytes that arrived may be written: query the size and continue there';
export const MAY_BE_WRITTEN = 'the file may or may not have been written';

/** `what`: the paths, quoted, for messages. `open` and `words`: see {@link explainFileFailure}. */
export interface FileUse {
  action: Extract<SandboxAction, `files_${string}`>;
  what: string;
  open?: string;
  words?: typeof APPEND_WORDS | undefined;
}

/** Options of a write, as given. */
export interface WriteOptions {
  ifUnchanged?: string | undefined;
  /** Permission bits in octal. */
  mode?: string | undefined;
}

/** The options as sent to the guest. */
export function optionsOf({ ifUnchanged, mode }: WriteOptions): { ifUnchanged?: string; mode?: string } {
  return {
    ...(ifUnchanged === undefined ? {} : { ifUnchanged }),
    ...(mode === undefined ? {} : { mode: fourDigits(mode) }),
  };
}

export function fourDigits(mode: string): string {
  return mode.padStart(4, '0');
}

export function readingOf(path: string): FileUse {
  return { action: 'files_read', what: quotedPath(path) };
}

export async function useFiles<T>(
  context: ServiceContext,
  { actor, sandbox, signal }: FileCall,
  use: FileUse,
  work: (host: HostClient, sandbox: SandboxInUse) => Promise<T>,
): Promise<T> {
  const inUse = await ensureAwake(context, actor, sandbox, { action: use.action, signalOfUse: 'file' }, signal);
  try {
    return await work(context.hosts.at(inUse.host_url), inUse);
  } catch (error) {
    throw await explainFileFailure(context, { sandboxId: inUse.id, ...use }, error);
  }
}

/** Adds a row to the activity feed. */
export async function noteChange(
  context: ServiceContext,
  { actor, sandbox }: Pick<FileCall, 'actor' | 'sandbox'>,
  kind: ActivityKind,
  details: Readonly<Record<string, string | number>>,
): Promise<void> {
  await insertActivity(context.db, {
    orgId: sandbox.org_id,
    projectId: sandbox.project_id,
    sandboxId: sandbox.id,
    actor,
    kind,
    details,
  });
}
