// Preview links of a sandbox.
import type { api } from '@berth/sdk';
import { visibleLines } from '../rules/visible-text.ts';
import { berth } from '../session/client.ts';
import { startText } from '../text/start.ts';
import { change } from './client.ts';
import { pagedQuery } from './paged.ts';

const PAGE_SIZE = 100;
const POLL_MS = 120_000;

const keyOf = (sandboxId: string) => ['sandboxes', sandboxId, 'previews'] as const;

export const previewsQuery = (sandboxId: string) => ({
  ...pagedQuery(
    keyOf(sandboxId),
    (page, signal) => berth.raw.listPreviews({ path: { sandboxId }, query: { ...page, limit: PAGE_SIZE }, signal }),
    ({ previews }) => previews,
  ),
  refetchInterval: POLL_MS,
});

export async function createPreview(sandboxId: string, body: api.CreatePreviewData['body']): Promise<api.Preview> {
  return (await change(berth.raw.createPreview({ path: { sandboxId }, body }), keyOf(sandboxId))).preview;
}

export const revokePreview = (sandboxId: string, previewId: string) =>
  change(berth.raw.revokePreview({ path: { sandboxId, previewId } }), keyOf(sandboxId));

/** Serves the working folder on a port, by a command in the background, and links to it. */
export async function serve(sandboxId: string, command: string, port: number): Promise<api.Preview> {
  const { exitCode, stderr } = await berth.raw.execInSandbox({ path: { sandboxId }, body: { command } });
  if (exitCode !== 0) throw new Error(visibleLines(stderr) || startText.notListening(port));
  return await createPreview(sandboxId, { port });
}
