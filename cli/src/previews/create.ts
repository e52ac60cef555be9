// `berth preview create`: creates a link and prints only it to stdout.
import type { CliContext } from '../program/context.ts';
import { UsageError } from '../output/failure.ts';
import { plainText } from '../output/plain-text.ts';
import { instantUntil } from '../output/time.ts';
import { port } from '../program/option-values.ts';
import { findSandbox } from '../service/find-sandbox.ts';
import type { Input } from '../program/command-spec.ts';
import type { Preview, PreviewSpec } from '@berth/sdk';

interface CreateInput {
  audience: 'team' | 'public';
  expiresIn?: number;
  embeddable?: boolean;
  label?: string;
  endUser?: string;
}

export async function createPreview(
  context: CliContext,
  { args: [typed, typedPort], options }: Input<CreateInput>,
): Promise<void> {
  const { connect, out, signal } = context;
  const { audience, expiresIn, embeddable, label, endUser } = options;
  const spec: PreviewSpec = {
    port: portOf(typedPort),
    audience,
    ...(expiresIn === undefined ? {} : { expiresInSeconds: expiresIn }),
    ...(embeddable === true ? { embeddable } : {}),
    ...(label === undefined ? {} : { label }),
    ...(endUser === undefined ? {} : { endUserId: endUser }),
  };
  const id = await findSandbox(context, typed);
  const { berth } = await connect();
  const sandbox = await berth.sandboxes.get(id, { signal });
  const preview = await sandbox.previews.create(spec, { signal });
  if (out.json) return out.object({ preview });
  out.line(plainText(preview.url ?? ''));
  const forWhom =
    preview.audience === 'public' ? 'anyone with the link can open it' : 'signed-in members of the org can open it';
  out.note(`${forWhom}, until ${instantUntil(preview.expiresAt)}${revokeText(id, preview)}`);
}

function revokeText(id: string, { id: link }: Preview): string {
  return link === null ? '' : `; revoke it with berth preview rm ${id} ${plainText(link)}`;
}

/** Throws a UsageError for an invalid port. */
export function portOf(typed = ''): number {
  try {
    return port(typed);
  } catch (error) {
    throw new UsageError(`invalid port '${plainText(typed)}': ${(error as Error).message}`, { cause: error });
  }
}
