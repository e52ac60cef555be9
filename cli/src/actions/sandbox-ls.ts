// `berth sandbox ls`.
import type { CliContext } from '../context.ts';
import { since } from '../output/time.ts';
import type { Input } from '../spec.ts';

export async function listSandboxes(
  { connect, out, signal }: CliContext,
  { options: { endUser } }: Input<{ endUser?: string }>,
): Promise<void> {
  const { berth, orgId } = await connect();
  const query = endUser === undefined ? {} : { endUserId: endUser };
  const answer = await berth.raw.listSandboxes({ path: { orgId: await orgId() }, query, signal });
  if (out.json) {
    out.object(answer);
    return;
  }
  out.table(
    [
      { title: 'id', value: ({ id }) => id, whole: true },
      { title: 'name', value: ({ name }) => name },
      { title: 'status', value: ({ status }) => status },
      { title: 'size', value: (sandbox) => `${sandbox.allocated_vcpu} vCPU, ${sandbox.allocated_memory_gb} GB` },
      { title: 'end user', value: ({ endUserId }) => endUserId },
      { title: 'created', value: ({ createdAt }) => since(createdAt) },
    ],
    answer.sandboxes,
    endUser === undefined ? 'no sandboxes; berth sandbox create makes one' : 'no sandboxes of this end user',
  );
}
