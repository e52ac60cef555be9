// `berth whoami`: shows the caller and the source of its credential, and changes the caller's name.
import type { CliContext } from '../program/context.ts';
import type { Input } from '../program/command-spec.ts';

export async function whoami(
  { connect, out, signal }: CliContext,
  { options: { rename } }: Input<{ rename?: string }>,
): Promise<void> {
  const { berth, credential, url } = await connect();
  const identity =
    rename === undefined
      ? await berth.me({ signal })
      : await berth.raw.updateMe({ body: { displayName: rename }, signal });
  if (out.json) return out.object(identity);
  const orgs = await berth.orgs({ signal });
  const from = credential.kind === 'environment' ? 'BERTH_API_KEY' : `profile ${credential.name}`;
  out.fields([
    ['user', identity.email ?? identity.displayName ?? identity.id],
    ['name', identity.displayName],
    ['credential', from],
    ['service', url],
    ...orgs.map(({ id, name }) => ['org', `${id} (${name})`] as const),
  ]);
}
