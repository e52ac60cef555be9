import type { CliContext } from '../program/context.ts';
import { findSandbox } from '../service/find-sandbox.ts';
import { sandboxFields } from './view.ts';
import type { Input } from '../program/command-spec.ts';

export async function getSandbox(context: CliContext, { args: [typed] }: Input): Promise<void> {
  const { connect, out, signal } = context;
  const id = await findSandbox(context, typed);
  const { berth } = await connect();
  const answer = await berth.raw.getSandbox({ path: { sandboxId: id }, signal });
  if (out.json) {
    out.object(answer);
  } else {
    const { statusReason, clone } = answer.sandbox;
    out.fields(sandboxFields(answer.sandbox));
    if (statusReason !== null || clone?.status === 'failed') out.hint(`berth: berth logs ${id} shows why`);
  }
}
