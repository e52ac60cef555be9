// Finds a process by its id or its name.
import { BerthError, type SandboxProcess, type SandboxProcesses } from '@berth/sdk';
import { CliFailure } from '../output/failure.ts';
import { plainText } from '../output/plain-text.ts';
import type { CliContext } from '../program/context.ts';
import { statusText } from './view.ts';

const PROCESS_ID = /^prc_[a-z2-7]{24}$/;
/** Ids in the error of an ambiguous name. */
const MOST_NAMED = 10;

export async function processesOf(
  { connect }: Pick<CliContext, 'connect'>,
  sandboxId: string,
): Promise<SandboxProcesses> {
  return (await connect()).berth.sandboxes.processes(sandboxId);
}

/** Throws a CliFailure unless exactly one process is meant. */
export async function findProcess(
  processes: SandboxProcesses,
  { sandboxId, typed = '', signal }: { sandboxId: string; typed: string | undefined; signal: AbortSignal },
): Promise<SandboxProcess> {
  if (PROCESS_ID.test(typed)) {
    try {
      return await processes.get(typed, { signal });
    } catch (error) {
      if (!(error instanceof BerthError) || error.code !== 'process_not_found') throw error;
      throw unknown(sandboxId, typed);
    }
  }
  const named = (await processes.list({ signal })).filter(({ data }) => data.name === typed);
  const running = named.filter(({ data }) => data.status === 'running');
  const [only] = running.length === 1 ? running : named;
  if (only === undefined) throw unknown(sandboxId, typed);
  if (running.length === 1 || named.length === 1) return only;
  const ids = named.slice(0, MOST_NAMED).map(({ id, data }) => `${id} (${statusText(data)})`);
  const more = named.length > MOST_NAMED ? ` and ${named.length - MOST_NAMED} more` : '';
  throw new CliFailure(`${named.length} processes have the name '${plainText(typed)}': ${ids.join(', ')}${more}`, {
    remedy: 'use an id',
  });
}

function unknown(sandboxId: string, typed: string): CliFailure {
  return new CliFailure(`${sandboxId} has no process '${plainText(typed)}'`, {
    remedy: `berth ps -a ${sandboxId} lists its processes`,
  });
}
