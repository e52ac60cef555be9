// `berth sandbox update`: changes name, labels and idle time of a sandbox.
import type { api } from '@berth/sdk';
import type { CliContext } from '../program/context.ts';
import { UsageError } from '../output/failure.ts';
import { findSandbox } from '../service/find-sandbox.ts';
import type { Input } from '../program/command-spec.ts';
import { sandboxFields } from './view.ts';

interface UpdateOptions {
  name?: string;
  metadata?: Record<string, string>;
  unset?: string[];
  idleMinutes?: number | 'none';
}

const SHOWN: ReadonlySet<string> = new Set(['id', 'name', 'metadata', 'idle minutes']);

export async function updateSandbox(
  context: CliContext,
  { args: [typed], options }: Input<UpdateOptions>,
): Promise<void> {
  const { connect, out, signal } = context;
  const { name, metadata, unset = [], idleMinutes } = options;
  const labels = metadata !== undefined || unset.length > 0;
  if (name === undefined && !labels && idleMinutes === undefined)
    throw new UsageError('no change given: use --name, --metadata, --unset or --idle-minutes');
  const both = unset.find((key) => metadata !== undefined && Object.hasOwn(metadata, key));
  if (both !== undefined) throw new UsageError(`--metadata and --unset both name the label ${both}`);
  const path = { sandboxId: await findSandbox(context, typed) };
  const { berth } = await connect();
  const changes: api.UpdateSandboxData['body'] = {
    ...(name === undefined ? {} : { name }),
    ...(idleMinutes === undefined ? {} : { idleMinutes: idleMinutes === 'none' ? null : idleMinutes }),
  };
  if (labels) {
    const { sandbox } = await berth.raw.getSandbox({ path, signal });
    const kept = Object.entries(sandbox.metadata).filter(([key]) => !unset.includes(key));
    changes.metadata = { ...Object.fromEntries(kept), ...metadata };
  }
  const answer = await berth.raw.updateSandbox({ path, body: changes, signal });
  if (out.json) out.object(answer);
  else out.fields(sandboxFields(answer.sandbox).filter(([field]) => SHOWN.has(field)));
}
