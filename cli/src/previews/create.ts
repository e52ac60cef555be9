// `berth preview create`: makes a link and prints it, alone on stdout.
import type { CliContext } from '../program/context.ts';
import { UsageError } from '../output/failure.ts';
import { plainText } from '../output/plain-text.ts';
import { instantUntil } from '../output/time.ts';
import { port } from '../program/option-values.ts';
import { sandboxId } from '../service/resource-id.ts';
import type { Input } from '../program/command-spec.ts';
import type { Preview, PreviewSpec } from '@berth/sdk';

interface CreateInput {
  audience: 'team' | 'public';
  expiresIn?: number;
  label?: string;
  endUser?: string;
}

export async function createPreview(
  context: CliContext,
  { args: [typed, typedPort], options }: Input<CreateInput>,
): Promise<void> {
  const { connect, out, signal } = context;
  const id = sandboxId(typed);
  const { audience, expiresIn, label, endUser } = options;
  const spec: PreviewSpec = {
    port: portOf(typedPort),
    audience,
    ...(expiresIn === undefined ? {} : { expiresInSeconds: expiresIn }),
    ...(label === undefined ? {} : { label }),
    ...(endUser === undefined ? {} : { endUserId: endUser }),
  };
  const { berth } = await connect();
  const sandbox = await berth.sandboxes.get(id, { signal });
  const preview = await sandbox.previews.create(spec, { signal });
  if (out.json) {
    out.object({ preview });
    return;
  }
  out.line(plainText(preview.url ?? ''));
  const forWhom = preview.audience === 'public' ? 'opens for whoever has it' : 'opens for signed-in members of the org';
  out.note(`${forWhom}, until ${instantUntil(preview.expiresAt)}${revokeText(id, preview)}`);
}

function revokeText(id: string, { id: link }: Preview): string {
  return link === null ? '' : `; berth preview rm ${id} ${plainText(link)} takes it back`;
}

/** Throws a UsageError for what is none. */
export function portOf(typed = ''): number {
  try {
    return port(typed);
  } catch (error) {
    throw new UsageError(`'${plainText(typed)}' is no port: ${(error as Error).message}`, { cause: error });
  }
}
