// `berth files link`: creates a link to one file and prints only it to stdout.
import type { FileLinkOptions } from '@berth/sdk';
import { plainText } from '../output/plain-text.ts';
import { instantUntil } from '../output/time.ts';
import type { Input } from '../program/command-spec.ts';
import type { CliContext } from '../program/context.ts';
import { UsageError } from '../output/failure.ts';
import { findSandbox } from '../service/find-sandbox.ts';

interface LinkInput {
  write?: boolean;
  expiresIn?: number;
  maxBytes?: number;
  /** False: `--no-overwrite`. */
  overwrite?: boolean;
  name?: string;
}

export async function createLink(
  context: CliContext,
  { args: [typed, path = ''], options }: Input<LinkInput>,
): Promise<void> {
  const { connect, out, signal } = context;
  const terms = termsOf(options);
  const id = await findSandbox(context, typed);
  const { berth } = await connect();
  const sandbox = await berth.sandboxes.get(id, { signal });
  const link = await sandbox.files.link(path, { ...terms, signal });
  if (out.json) return out.object({ link });
  out.line(plainText(link.url));
  const use = link.action === 'read' ? 'anyone with the link can download' : 'anyone with the link can upload (PUT)';
  out.note(`${use} ${plainText(link.path)} until ${instantUntil(link.expiresAt)}`);
}

/** Throws a UsageError for options of the other action. */
function termsOf({ write, expiresIn, maxBytes, overwrite, name }: LinkInput): FileLinkOptions {
  const action = write === true ? 'write' : 'read';
  if (action === 'read' && (maxBytes !== undefined || overwrite === false))
    throw new UsageError('--max-bytes and --no-overwrite limit uploads: add --write, or omit them');
  if (action === 'write' && name !== undefined) throw new UsageError('--name is of a download: omit it, or --write');
  return {
    action,
    ...(expiresIn === undefined ? {} : { expiresInSeconds: expiresIn }),
    ...(maxBytes === undefined ? {} : { maxBytes }),
    ...(overwrite === false ? { overwrite } : {}),
    ...(name === undefined ? {} : { fileName: name }),
  };
}
