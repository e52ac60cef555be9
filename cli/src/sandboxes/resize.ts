import type { Size } from '@berth/sdk';
import type { CliContext } from '../program/context.ts';
import { UsageError } from '../output/failure.ts';
import { findSandbox } from '../service/find-sandbox.ts';
import { sizeOf, sizeText } from './view.ts';
import type { Input } from '../program/command-spec.ts';

export async function resizeSandbox(context: CliContext, { args: [typed], options }: Input<Size>): Promise<void> {
  const { connect, out, signal } = context;
  const { vcpu, memoryGb, diskGb } = options;
  const size: Size = {
    ...(vcpu === undefined ? {} : { vcpu }),
    ...(memoryGb === undefined ? {} : { memoryGb }),
    ...(diskGb === undefined ? {} : { diskGb }),
  };
  if (Object.keys(size).length === 0) throw new UsageError('no size given: use --vcpu, --memory-gb or --disk-gb');
  const id = await findSandbox(context, typed);
  const { berth } = await connect();
  const sandbox = await berth.sandboxes.get(id, { signal });
  await out.step('resizing', () => sandbox.resize(size, { signal }));
  if (out.json) return out.object({ sandbox: sandbox.data });
  const { pendingAllocation: pending } = sandbox.data;
  out.line(`${id} ${sizeText(sizeOf(sandbox.data))}`);
  if (pending !== undefined) out.note(`pending until the next wake: ${sizeText(pending)}`);
}
