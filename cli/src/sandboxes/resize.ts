import { TRANSITION_WAIT_MS } from '@berth/sdk/limits';
import { BerthError, type Sandbox, type SandboxData, type Size } from '@berth/sdk';
import type { CliContext } from '../program/context.ts';
import { UsageError } from '../output/failure.ts';
import { sandboxId } from '../service/resource-id.ts';
import { sizeOf, sizeText } from './view.ts';
import type { Input } from '../program/command-spec.ts';

export async function resizeSandbox(
  { connect, out, signal }: CliContext,
  { args: [typed], options }: Input<Size>,
): Promise<void> {
  const id = sandboxId(typed);
  const { vcpu, memoryGb, diskGb } = options;
  const size: Size = {
    ...(vcpu === undefined ? {} : { vcpu }),
    ...(memoryGb === undefined ? {} : { memoryGb }),
    ...(diskGb === undefined ? {} : { diskGb }),
  };
  if (Object.keys(size).length === 0) throw new UsageError('no size given: use --vcpu, --memory-gb or --disk-gb');
  const { berth } = await connect();
  const sandbox = await berth.sandboxes.get(id, { signal });
  await out.step('resizing', async () => {
    const startedMs = Date.now();
    await sandbox.resize(size, { signal });
    if (Date.now() - startedMs >= TRANSITION_WAIT_MS) await settle(sandbox, signal);
  });
  if (out.json) {
    out.object({ sandbox: sandbox.data });
    return;
  }
  const { pendingAllocation: pending } = sandbox.data;
  out.line(`${id} ${sizeText(sizeOf(sandbox.data))}`);
  if (pending !== undefined) out.note(`pending until the next wake: ${sizeText(pending)}`);
}

/** Longer than a resize takes. */
const SETTLE_MS = 30_000;

/**
 * Waits for a resize that outlived the request. A change pending for the next wake looks the same,
 * and times out silently.
 */
async function settle(sandbox: Sandbox, signal: AbortSignal): Promise<void> {
  if (!grows(sandbox.data)) return;
  try {
    await sandbox.waitUntil((now) => !grows(now), { signal, timeoutMs: SETTLE_MS });
  } catch (error) {
    if (!(error instanceof BerthError) || error.code !== 'timeout') throw error;
  }
}

/** Decreases only happen at a wake. */
function grows({ status, pendingAllocation: pending, ...sandbox }: SandboxData): boolean {
  if (pending === undefined || (status !== 'running' && status !== 'ready')) return false;
  const { allocated_vcpu: vcpu, allocated_memory_gb: memoryGb, allocated_disk_gb: diskGb } = sandbox;
  return pending.vcpu > vcpu || pending.memoryGb > memoryGb || pending.diskGb > diskGb;
}
