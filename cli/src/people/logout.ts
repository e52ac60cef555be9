// `berth logout`: signs out at the service, then removes the local credential.
import { Berth } from '@berth/sdk';
import { OAuthRefusal, revokeSession } from '../service/oauth.ts';
import { readProfile, type ConnectionSource } from '../service/connection.ts';
import { profileIn, type Profile, type Profiles } from '../service/profile-file.ts';
import { serviceAddress } from '../service/address.ts';
import { sessionToken } from '../service/session.ts';
import type { CliContext } from '../program/context.ts';
import type { Input } from '../program/command-spec.ts';
import { CliFailure, UsageError } from '../output/failure.ts';

export async function logout(
  { environment, flags, out, signal }: CliContext,
  { options }: Input<{ all?: true }>,
): Promise<void> {
  const source: ConnectionSource = { environment, flags };
  const { name, profile, file } = await readProfile(source);
  if (profile === undefined && flags.profile !== undefined)
    throw new UsageError(`no profile named '${name}'`, { remedy: 'berth profile ls lists the profiles' });

  if (profile?.session === undefined && profile?.apiKey === undefined) {
    out.note(`the profile ${name} is not signed in`);
    return;
  }
  if (options.all === true) {
    if (profile.session === undefined) throw new UsageError('--all needs a sign-in: the profile has an API key');
    const url = serviceAddress(profile.url);
    const berth = new Berth({ url, apiKey: () => sessionToken({ file, name, url, signal }) });
    const { ended } = await berth.raw.endOtherSignIns({ signal });
    out.line(`ended ${ended} other ${ended === 1 ? 'sign-in' : 'sign-ins'}`);
  }
  const told = await endSession(profile, signal);
  await file.change((current) => withoutCredential(current, name, profile), signal);
  out.line(`signed out of ${profile.url}${name === 'default' ? '' : ` (profile ${name})`}`);
  told.forEach((line) => out.note(line));
}

/**
 * Signs out at the service. Resolves with notes for the user; failures of the service become notes.
 */
export async function endSession({ url, session, apiKey }: Profile, signal: AbortSignal): Promise<string[]> {
  if (apiKey !== undefined) return ['the API key remains valid: revoke it with berth key revoke ID'];
  if (session === undefined) return [];
  try {
    await revokeSession({ url: serviceAddress(url), signal }, session.refreshToken);
    return [];
  } catch (error) {
    if (!(error instanceof CliFailure || error instanceof OAuthRefusal) || signal.aborted) throw error;
    return [`cannot sign out at the service; the sign-in there expires 30 days after its last use: ${error.message}`];
  }
}

/** Keeps a newer sign-in. */
function withoutCredential(current: Profiles, name: string, before: Profile): Profiles {
  const profile = profileIn(current, name);
  if (
    profile === undefined ||
    profile.apiKey !== before.apiKey ||
    profile.session?.refreshToken !== before.session?.refreshToken
  )
    return current;
  const { apiKey: _apiKey, session: _session, ...kept } = profile;
  return { ...current, profiles: { ...current.profiles, [name]: kept } };
}
