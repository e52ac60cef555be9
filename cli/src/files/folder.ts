// `berth files`: files and folders of a sandbox, through the file routes.
import { Readable } from 'node:stream';
import type { FileEntry } from '@berth/sdk';
import { bytes } from '../output/amount.ts';
import { EXIT } from '../output/failure.ts';
import { plainText } from '../output/plain-text.ts';
import { since } from '../output/time.ts';
import type { Input } from '../program/command-spec.ts';
import type { CliContext } from '../program/context.ts';
import { runEach } from '../program/each.ts';
import { findSandbox } from '../service/find-sandbox.ts';

/** Resolves with 1 if entries are missing. */
export async function listFolder(context: CliContext, { args: [typed, path = ''] }: Input): Promise<number> {
  const { connect, out, signal } = context;
  const sandboxId = await findSandbox(context, typed);
  const { berth } = await connect();
  const listing = await berth.raw.listFiles({ path: { sandboxId }, query: { path }, signal });
  if (out.json) {
    out.object(listing);
  } else {
    out.table(
      [
        {
          title: 'name',
          value: nameWithTarget,
          whole: true,
        },
        { title: 'kind', value: ({ kind, type }) => kind ?? type },
        { title: 'mode', value: ({ mode }) => mode ?? null, optional: true },
        { title: 'size', value: (entry) => sizeOf(entry), align: 'right' },
        { title: 'changed', value: ({ modifiedAt }) => (modifiedAt ? since(modifiedAt) : null), optional: true },
      ],
      listing.entries,
      'the folder is empty',
    );
  }
  if (!listing.truncated) return EXIT.ok;
  out.note('berth: the listing is incomplete: the folder is too large, or a name is not UTF-8');
  return EXIT.failed;
}

function nameWithTarget({ label, type, linkTarget }: FileEntry): string {
  if (linkTarget !== undefined) return plainText(`${label} -> ${linkTarget}`);
  return plainText(type === 'directory' ? `${label}/` : label);
}

export async function showStat(context: CliContext, { args: [typed, path = ''] }: Input): Promise<void> {
  const { connect, out, signal } = context;
  const sandboxId = await findSandbox(context, typed);
  const { berth } = await connect();
  const stat = await berth.raw.statFile({ path: { sandboxId }, query: { path }, signal });
  if (out.json) return out.object(stat);
  const { linkTarget, resolvesTo, modifiedAt } = stat;
  out.fields([
    ['path', stat.path],
    ['kind', stat.kind],
    ['size', bytes(stat.size)],
    ['mode', stat.mode],
    ['changed', modifiedAt === null ? null : since(modifiedAt)],
    ['target', linkTarget],
    ['resolves to', resolvesTo === undefined ? null : (resolvesTo ?? 'nothing')],
  ]);
}

function sizeOf({ kind, size }: FileEntry): string | null {
  return kind === 'file' && size !== undefined ? bytes(size) : null;
}

export async function writeContent(context: CliContext, { args: [typed, path = ''] }: Input): Promise<void> {
  const { connect, out, signal } = context;
  const id = await findSandbox(context, typed);
  const { berth } = await connect();
  const sandbox = await berth.sandboxes.get(id, { signal });
  const { stream } = await sandbox.files.download(path, { signal });
  for await (const chunk of Readable.fromWeb(stream)) await out.bytes(chunk as Buffer);
}

export async function removePaths(
  context: CliContext,
  { args: [typed, ...paths], options: { recursive = false } }: Input<{ recursive?: boolean }>,
): Promise<number> {
  const { connect, out, signal } = context;
  const path = { sandboxId: await findSandbox(context, typed, { destructive: true }) };
  const { berth } = await connect();
  return await runEach(context, paths, {
    progressText: 'deleting',
    work: async (one) =>
      await berth.raw.deleteFile({ path, query: { path: one, recursive: recursive ? 'true' : 'false' }, signal }),
    show: (answer) => (out.json ? out.object(answer) : out.line(`${plainText(answer.path)} deleted`)),
  });
}

export async function movePath(
  context: CliContext,
  { args: [typed, from = '', to = ''], options: { force = false } }: Input<{ force?: boolean }>,
): Promise<void> {
  const { connect, out, signal } = context;
  const path = { sandboxId: await findSandbox(context, typed, { destructive: force }) };
  const { berth } = await connect();
  const moved = await berth.raw.moveFile({ path, body: { from, to, replace: force }, signal });
  if (out.json) out.object(moved);
  else out.line(`${plainText(moved.from)} is now ${plainText(moved.to)}`);
}

export async function setModes(context: CliContext, { args: [typed, mode = '', ...paths] }: Input): Promise<number> {
  const { connect, out, signal } = context;
  const path = { sandboxId: await findSandbox(context, typed) };
  const { berth } = await connect();
  return await runEach(context, paths, {
    progressText: 'changing',
    work: async (one) => await berth.raw.setFileMode({ path, body: { path: one, mode }, signal }),
    show: (answer) => (out.json ? out.object(answer) : out.line(`${plainText(answer.path)} is now ${answer.mode}`)),
  });
}

export async function createFolders(context: CliContext, { args: [typed, ...paths] }: Input): Promise<number> {
  const { connect, out, signal } = context;
  const path = { sandboxId: await findSandbox(context, typed) };
  const { berth } = await connect();
  return await runEach(context, paths, {
    progressText: 'creating',
    work: async (one) => await berth.raw.createFolder({ path, body: { path: one }, signal }),
    show: (answer) => (out.json ? out.object(answer) : out.line(`${plainText(answer.path)} created`)),
  });
}
