import type { CliContext } from '../program/context.ts';
import { instantUntil } from '../output/time.ts';
import { sandboxId } from '../service/resource-id.ts';
import type { Input } from '../program/command-spec.ts';

export async function renewSandbox({ connect, out, signal }: CliContext, { args: [typed] }: Input): Promise<void> {
  const id = sandboxId(typed);
  const { berth } = await connect();
  const answer = await berth.raw.renewSandbox({ path: { sandboxId: id }, signal });
  const { expiresAt } = answer.sandbox;
  if (out.json) out.object(answer);
  else out.line(`${id} expires ${expiresAt === null ? 'never' : instantUntil(expiresAt)}`);
}
