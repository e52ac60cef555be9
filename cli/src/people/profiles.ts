// `berth profile ls`, `use` and `rm`. Never prints credentials.
import { readProfile } from '../service/connection.ts';
import {
  checkProfileName,
  DEFAULT_PROFILE,
  profileIn,
  ProfileFile,
  type Profile,
  type Profiles,
} from '../service/profile-file.ts';
import type { CliContext } from '../program/context.ts';
import { UsageError } from '../output/failure.ts';
import { confirmLoss } from '../interaction/prompt.ts';
import type { Input } from '../program/command-spec.ts';
import { endSession } from './logout.ts';

export async function listProfiles({ environment, out }: CliContext): Promise<void> {
  const { name: used } = await readProfile({ environment, flags: {} });
  const { profiles } = await new ProfileFile(environment).read();
  const rows = Object.entries(profiles)
    .toSorted(([one], [other]) => one.localeCompare(other))
    .map(([name, profile]) => ({
      name,
      url: profile.url,
      credential: credentialOf(profile),
      orgId: profile.orgId ?? null,
      projectId: profile.projectId ?? null,
      inUse: name === used,
    }));
  if (out.json) return out.object({ profiles: rows });
  out.table(
    [
      { title: 'name', value: ({ name }) => name, whole: true },
      { title: 'in use', value: ({ inUse }) => (inUse ? 'yes' : null) },
      { title: 'service', value: ({ url }) => url },
      { title: 'credential', value: ({ credential }) => credential },
      { title: 'org', value: ({ orgId }) => orgId },
      { title: 'project', value: ({ projectId }) => projectId },
    ],
    rows,
    'no profiles; create one with berth login',
  );
}

export async function useProfile(
  { environment, out, signal }: CliContext,
  { args: [typed = ''] }: Input,
): Promise<void> {
  const name = checkProfileName(typed);
  await new ProfileFile(environment).change((current) => {
    requireProfile(current, name);
    return { ...current, current: name };
  }, signal);
  out.line(`switched to profile ${name}`);
  const variable = environment['BERTH_PROFILE'] ?? '';
  if (variable !== '' && variable !== name) out.note(`BERTH_PROFILE is set to ${variable} and takes precedence`);
}

export async function removeProfile(
  context: CliContext,
  { args: [typed = ''], options }: Input<{ yes?: true }>,
): Promise<void> {
  const { environment, out, signal } = context;
  const name = checkProfileName(typed);
  const file = new ProfileFile(environment);
  const profile = requireProfile(await file.read(), name);
  if (profile.apiKey !== undefined)
    await confirmLoss(context, `Remove the profile ${name} and the API key in it?`, options);
  const told = await endSession(profile, signal);
  await file.change(
    ({ current, profiles: { [name]: _removed, ...profiles } }) => ({
      current: current === name ? DEFAULT_PROFILE : current,
      profiles,
    }),
    signal,
  );
  out.line(`removed the profile ${name}`);
  told.forEach((line) => out.note(line));
}

function requireProfile(profiles: Profiles, name: string): Profile {
  const profile = profileIn(profiles, name);
  if (profile !== undefined) return profile;
  const names = Object.keys(profiles.profiles);
  throw new UsageError(`no profile named '${name}'`, {
    remedy:
      names.length === 0
        ? `create it with berth login --profile ${name}`
        : `known profiles: ${names.join(', ')}; create it with berth login --profile ${name}`,
  });
}

function credentialOf({ session, apiKey }: Profile): string | null {
  if (apiKey !== undefined) return 'API key';
  return session === undefined ? null : 'sign-in';
}
