// `berth preview open`: opens a link in a browser, or prints it.
import { browserOpener, openInBrowser } from '../interaction/browser.ts';
import type { Connection } from '../service/connection.ts';
import type { CliContext } from '../program/context.ts';
import { CliFailure } from '../output/failure.ts';
import { plainText } from '../output/plain-text.ts';
import { findSandbox } from '../service/find-sandbox.ts';
import type { Input } from '../program/command-spec.ts';
import type { Preview } from '@berth/sdk';
import { portOf } from './create.ts';
import { inactiveText } from './inactive.ts';
import { linkId } from './rm.ts';

export async function openPreview(context: CliContext, { args: [typed, what = ''] }: Input): Promise<void> {
  const { connect, environment, out, signal } = context;
  const wanted = /^\d+$/.test(what) ? { port: portOf(what) } : { linkId: linkId(what) };
  const id = await findSandbox(context, typed);
  const preview = await findLink(await connect(), id, wanted, signal);
  const { url } = preview;
  const inactive = inactiveText(preview);
  if (inactive !== null) {
    throw new CliFailure(`the link does not open: ${plainText(inactive)}`, {
      remedy: `create another with berth preview create ${id} ${preview.port} --audience public`,
    });
  }
  if (url === null) {
    throw new CliFailure('you are not allowed to see the URL of this link', {
      remedy: 'ask an admin of the org for it',
    });
  }

  if (out.json) out.object({ preview });
  const opener = /^https?:\/\//.test(url) ? browserOpener(environment) : null;
  const opened = opener !== null && (await openInBrowser(opener, url));
  if (opened) out.note(`opened ${plainText(url)}`);
  else if (!out.json) out.line(plainText(url));
}

async function findLink(
  { berth }: Connection,
  id: string,
  wanted: { port: number } | { linkId: string },
  signal: AbortSignal,
): Promise<Preview> {
  const { previews } = await berth.sandboxes.get(id, { signal });
  if ('port' in wanted) return await previews.create({ port: wanted.port }, { signal });
  const found = (await previews.list({ signal })).find((link) => link.id === wanted.linkId);
  if (found !== undefined) return found;
  throw new CliFailure(`no active link ${wanted.linkId} to ${id}`, {
    remedy: `berth preview ls ${id} lists the links`,
  });
}
