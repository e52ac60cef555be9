// `berth sandbox wait`: waits until a sandbox has a status, or its repository is cloned.
import { BerthError, type SandboxData } from '@berth/sdk';
import type { CliContext } from '../program/context.ts';
import { CliFailure, EXIT } from '../output/failure.ts';
import { plainText } from '../output/plain-text.ts';
import { findSandbox } from '../service/find-sandbox.ts';
import type { Input } from '../program/command-spec.ts';
import { sandboxLine, stateOf, stateText } from './view.ts';

type Wanted = 'ready' | 'running' | 'stopped' | 'deleted' | 'clone';

/** Transitions that lead to a status: their end elsewhere is a failure. */
const TOWARDS: Readonly<Record<Wanted, readonly string[]>> = {
  ready: ['provisioning', 'waking'],
  running: ['provisioning', 'waking'],
  clone: ['provisioning', 'waking'],
  stopped: ['sleeping'],
  deleted: ['destroying'],
};

export async function waitForSandbox(
  context: CliContext,
  { args: [typed], options }: Input<{ for: Wanted; timeout: number }>,
): Promise<void> {
  const { connect, out, signal } = context;
  const { for: wanted, timeout } = options;
  const endsAt = Date.now() + timeout * 1_000;
  const id = await findSandbox(context, typed);
  const { berth } = await connect();
  const sandbox = await berth.sandboxes.get(id, { signal });
  await out.step(`waiting for ${wanted}`, async (report) => {
    let begun = false;
    for (;;) {
      const { status, clone } = sandbox.data;
      report(`${id} is ${plainText(status)}`);
      begun ||= TOWARDS[wanted].includes(status);
      if (isThere(sandbox.data, wanted)) return;
      checkHope(sandbox.data, wanted, begun);
      const hasChanged = (now: SandboxData): boolean => now.status !== status || now.clone?.status !== clone?.status;
      try {
        await sandbox.waitUntil(hasChanged, { signal, timeoutMs: Math.max(1, endsAt - Date.now()) });
      } catch (error) {
        if (!(error instanceof BerthError) || error.code !== 'timeout' || Date.now() < endsAt) throw error;
        throw new CliFailure(`${stateText(sandbox.data)} after ${timeout} s, ${aimText(wanted)}`, {
          remedy: 'wait longer with --timeout',
          exitCode: EXIT.timedOut,
          cause: error,
        });
      }
    }
  });
  if (out.json) out.object({ sandbox: sandbox.data });
  else out.line(sandboxLine(sandbox.data));
}

function isThere({ status, clone }: SandboxData, wanted: Wanted): boolean {
  if (wanted === 'clone') return clone?.status === 'cloned';
  return status === wanted || (wanted === 'running' && status === 'ready');
}

/** Throws a CliFailure if waiting is pointless. @param begun a transition to the status was seen */
function checkHope(data: SandboxData, wanted: Wanted, begun: boolean): void {
  const { status, clone } = data;
  const isCloning = clone?.status === 'pending' || clone?.status === 'cloning';
  const isSettled = stateOf(status)?.settled;
  const isOver = status === 'failed' || status === 'deleted';
  const isPassing = status === 'running' && isCloning && (wanted === 'ready' || wanted === 'clone');
  const cannotClone = wanted === 'clone' && !isCloning;
  if (!isOver && !cannotClone && !(begun && isSettled === true && !isPassing)) return;
  throw new CliFailure(`${stateText(data)}, ${aimText(wanted)}`, {
    remedy: `berth logs ${data.id} shows why`,
    exitCode: EXIT.settledElsewhere,
  });
}

function aimText(wanted: Wanted): string {
  return wanted === 'clone' ? 'and its repository is not cloned' : `not ${wanted}`;
}
