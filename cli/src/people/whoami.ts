// `berth whoami`: shows the caller and the source of its credential.
import type { CliContext } from '../program/context.ts';

export async function whoami({ connect, out, signal }: CliContext): Promise<void> {
  const { berth, credential, url } = await connect();
  const identity = await berth.me({ signal });
  if (out.json) {
    out.object(identity);
    return;
  }
  const orgs = await berth.orgs({ signal });
  const from = credential.kind === 'environment' ? 'BERTH_API_KEY' : `profile ${credential.name}`;
  out.fields([
    ['user', identity.email ?? identity.displayName ?? identity.id],
    ['credential', from],
    ['service', url],
    ...orgs.map(({ id, name }) => ['org', `${id} (${name})`] as const),
  ]);
}
