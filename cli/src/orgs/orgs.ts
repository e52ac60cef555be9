// `berth org ls`, `use`, `create`, `rename` and `leave`.
import type { Org } from '@berth/sdk';
import { readProfile, type Connection } from '../service/connection.ts';
import { profileIn, type Profile } from '../service/profile-file.ts';
import type { CliContext } from '../program/context.ts';
import { CliFailure, UsageError } from '../output/failure.ts';
import { plainText } from '../output/plain-text.ts';
import { since } from '../output/time.ts';
import { confirmLoss } from '../interaction/prompt.ts';
import { checkResourceId } from '../service/resource-id.ts';
import type { Input } from '../program/command-spec.ts';

export async function listOrgs({ connect, out, signal }: CliContext): Promise<void> {
  const { berth, chosen } = await connect();
  const answer = await berth.raw.listMyOrgs({ signal });
  if (out.json) return out.object(answer);
  const meant = chosen.orgId ?? (answer.orgs.length === 1 ? answer.orgs[0]?.id : undefined);
  out.table(
    [
      { title: 'id', value: ({ id }) => id, whole: true },
      { title: 'name', value: ({ name }) => name },
      { title: 'in use', value: ({ id }) => (id === meant ? 'yes' : null) },
      { title: 'your role', value: ({ role }) => role },
      { title: 'created', value: ({ createdAt }) => since(createdAt) },
    ],
    answer.orgs,
    'no orgs; create one with berth org create NAME',
  );
}

export async function useOrg(context: CliContext, { args: [typed = ''] }: Input): Promise<void> {
  const { connect, out, signal } = context;
  const connection = await connect();
  const orgs = await connection.berth.orgs({ signal });
  const { id, name } = oneOf('org', orgs, typed);
  await useInProfile(context, connection, (profile) => {
    const { projectId, ...kept } = profile;
    return { ...kept, orgId: id, ...(profile.orgId === id && projectId !== undefined ? { projectId } : {}) };
  });
  out.line(`switched to org ${id} (${plainText(name)})`);
}

export async function createOrg({ connect, out, signal }: CliContext, { args: [name = ''] }: Input): Promise<void> {
  const { berth } = await connect();
  const answer = await berth.raw.createOrg({ body: { name }, signal });
  if (out.json) return out.object(answer);
  out.line(answer.org.id);
  out.hint(`you are the owner; to make it the default: berth org use ${answer.org.id}`);
}

export async function renameOrg({ connect, out, signal }: CliContext, { args: [name = ''] }: Input): Promise<void> {
  const { berth, orgId } = await connect();
  const answer = await berth.raw.updateOrg({ path: { orgId: await orgId() }, body: { name }, signal });
  if (out.json) out.object(answer);
  else out.line(`renamed the org ${answer.org.id} to ${plainText(answer.org.name)}`);
}

export async function leaveOrg(context: CliContext, { args: [typed], options }: Input<{ yes?: true }>): Promise<void> {
  const { connect, out, signal } = context;
  const { berth } = await connect();
  const orgId = checkResourceId('org', typed);
  await confirmLoss(context, `Leave the org ${orgId}? To return, you need an invitation.`, { ...options, wide: true });
  const answer = await berth.raw.leaveOrg({ path: { orgId }, signal });
  if (out.json) out.object(answer);
  else out.line(`left the org ${orgId}`);
}

/** Finds by id, or by unique name. */
export function oneOf<T extends Pick<Org, 'id' | 'name'>>(
  what: 'org' | 'project',
  found: readonly T[],
  typed: string,
): T {
  const byId = found.find(({ id }) => id === typed);
  const byName = found.filter(({ name }) => name === typed);
  const [first, ...others] = byId === undefined ? byName : [byId];
  if (first !== undefined && others.length === 0) return first;
  const shown = plainText(typed);
  throw others.length > 0
    ? new UsageError(`${byName.length} ${what}s have the name '${shown}': ${byName.map(({ id }) => id).join(', ')}`, {
        remedy: 'use the id',
      })
    : new CliFailure(`no ${what} '${shown}' found`, { remedy: `berth ${what} ls lists your ${what}s` });
}

/** Changes the defaults of the current profile. Throws if BERTH_API_KEY overrides the profile. */
export async function useInProfile(
  { environment, flags, signal }: CliContext,
  { credential }: Connection,
  edit: (profile: Profile) => Profile,
): Promise<void> {
  if (credential.kind === 'environment') {
    throw new UsageError('cannot change the profile: BERTH_API_KEY is set, so no profile is in use', {
      remedy: 'set BERTH_ORG_ID or BERTH_PROJECT_ID instead',
    });
  }
  const { file, name } = await readProfile({ environment, flags });
  await file.change((current) => {
    const profile = profileIn(current, name);
    if (profile === undefined) throw new CliFailure(`the profile ${name} was removed by another process`);
    return { ...current, profiles: { ...current.profiles, [name]: edit(profile) } };
  }, signal);
}
