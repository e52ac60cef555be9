import type { CliContext } from '../program/context.ts';
import { instantUntil } from '../output/time.ts';
import { findSandbox } from '../service/find-sandbox.ts';
import type { Input } from '../program/command-spec.ts';

export async function renewSandbox(context: CliContext, { args: [typed] }: Input): Promise<void> {
  const { connect, out, signal } = context;
  const id = await findSandbox(context, typed);
  const { berth } = await connect();
  const answer = await berth.raw.renewSandbox({ path: { sandboxId: id }, signal });
  const { expiresAt } = answer.sandbox;
  if (out.json) out.object(answer);
  else out.line(`${id} expires ${expiresAt === null ? 'never' : instantUntil(expiresAt)}`);
}
