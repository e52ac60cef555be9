import type { CliContext } from '../program/context.ts';
import { sandboxId } from '../service/resource-id.ts';
import { sandboxFields } from './view.ts';
import type { Input } from '../program/command-spec.ts';

export async function getSandbox({ connect, out, signal }: CliContext, { args: [typed] }: Input): Promise<void> {
  const id = sandboxId(typed);
  const { berth } = await connect();
  const answer = await berth.raw.getSandbox({ path: { sandboxId: id }, signal });
  if (out.json) out.object(answer);
  else out.fields(sandboxFields(answer.sandbox));
}
