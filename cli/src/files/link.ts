// `berth files link`: creates a link to one file and prints only it to stdout.
import { BerthError, type FileLinkOptions, type Sandbox } from '@berth/sdk';
import { shellWord } from '@berth/machine/output/command-hint.ts';
import { plainText } from '../output/plain-text.ts';
import { instantUntil } from '../output/time.ts';
import type { Input } from '../program/command-spec.ts';
import type { CliContext } from '../program/context.ts';
import { CliFailure, UsageError } from '../output/failure.ts';
import { stateOf } from '../sandboxes/view.ts';
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
  if (terms.action === 'read' && stateOf(sandbox.data.status)?.awake === true) await checkFile(context, sandbox, path);
  const link = await sandbox.files.link(path, { ...terms, signal });
  if (out.json) return out.object({ link });
  out.line(plainText(link.url));
  const use = link.action === 'read' ? 'anyone with the link can download' : 'anyone with the link can upload (PUT)';
  out.note(`${use} ${plainText(link.path)} until ${instantUntil(link.expiresAt)}`);
}

/** Warns of a missing file, which may appear later. Throws a CliFailure for a folder. */
async function checkFile({ out, signal }: CliContext, { id, files }: Sandbox, path: string): Promise<void> {
  try {
    const { kind, resolvesTo } = await files.stat(path, { signal });
    if ((resolvesTo ?? kind) !== 'directory') return;
  } catch (error) {
    // The link does not need the caller's permission to read.
    if (!(error instanceof BerthError)) throw error;
    if (error.code === 'file_not_found') out.note(`berth: ${plainText(path)} does not exist yet in ${id}`);
    return;
  }
  throw new CliFailure(`${plainText(path)} is a folder: a link is to one file`, {
    remedy: `berth cp ${id}:${shellWord(plainText(path))} . copies a folder`,
  });
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
