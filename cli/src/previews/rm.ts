import type { CliContext } from '../program/context.ts';
import { runEach } from '../program/each.ts';
import { UsageError } from '../output/failure.ts';
import { plainText } from '../output/plain-text.ts';
import { findSandbox } from '../service/find-sandbox.ts';
import { isResourceId } from '../service/resource-id.ts';
import type { Input } from '../program/command-spec.ts';

export async function removePreviews(context: CliContext, { args: [typed, ...links] }: Input): Promise<number> {
  const { connect, out, signal } = context;
  const ids = links.map(linkId);
  const id = await findSandbox(context, typed, { destructive: true });
  const { berth } = await connect();
  return await runEach(context, ids, {
    progressText: 'revoking',
    work: async (previewId) => await berth.raw.revokePreview({ path: { sandboxId: id, previewId }, signal }),
    show: (answer) => (out.json ? out.object(answer) : out.line(`${answer.preview.id} revoked`)),
  });
}

/** Checked because the id becomes part of a URL. */
export function linkId(typed: string): string {
  if (isResourceId(typed)) return typed;
  throw new UsageError(`invalid link id '${plainText(typed)}'; example: prv_4hgk2f6z5uq3vw7xjn2mtdra`, {
    remedy: 'berth preview ls SANDBOX lists the links',
  });
}
