import type { Preview } from '@berth/sdk';
import type { CliContext } from '../program/context.ts';
import { since, until } from '../output/time.ts';
import { findSandbox } from '../service/find-sandbox.ts';
import type { Input } from '../program/command-spec.ts';
import { inactiveText } from './inactive.ts';

export async function listPreviews(context: CliContext, { args: [typed] }: Input): Promise<void> {
  const { connect, out, signal } = context;
  const id = await findSandbox(context, typed);
  const { berth } = await connect();
  const answer = await berth.raw.listPreviews({ path: { sandboxId: id }, signal });
  if (out.json) return out.object(answer);
  out.table(
    [
      { title: 'id', value: (link) => link.id, whole: true },
      { title: 'port', value: ({ port }) => port, align: 'right' },
      { title: 'label', value: ({ label }) => label, least: 8, optional: true },
      { title: 'end user', value: ({ endUserId }) => endUserId, least: 8, optional: true },
      { title: 'expires', value: ({ expiresAt }) => until(expiresAt), least: 8 },
      { title: 'last used', value: ({ lastUsedAt }) => lastUsedAt && since(lastUsedAt), least: 8, optional: true },
      ...(answer.previews.some((link) => inactiveText(link) !== null)
        ? [{ title: 'inactive', value: (link: Preview) => inactiveText(link), least: 8 }]
        : []),
      { title: 'url', value: ({ url }) => url, whole: true, optional: true },
    ],
    answer.previews,
    'no public links (team links are not stored)',
  );
  // The table may have dropped or cut the URLs.
  if (out.columns !== undefined && answer.previews.length > 0)
    out.hint('open one with berth preview open SANDBOX ID; --json prints the URLs');
}
