// Session token of a signed-in profile, refreshed before it expires. Of several processes, only one
// refreshes; the others read the result from the file.
import { CliFailure, EXIT } from '../output/failure.ts';
import { serviceAddress } from './address.ts';
import { OAuthRefusal, refreshSession } from './oauth.ts';
import { profileIn, type ProfileFile, type Profiles, type Session } from './profile-file.ts';

interface SessionPlace {
  file: ProfileFile;
  /** Name of the profile. */
  name: string;
  /** URL of the service. */
  url: string;
  signal?: AbortSignal | undefined;
}

/** Refreshed below this remaining lifetime: it could expire in flight. */
const LEAST_LEFT_MS = 60_000;

/** Throws a CliFailure if the sign-in has ended. */
export async function sessionToken(place: SessionPlace): Promise<string> {
  const { file } = place;
  const session = sessionIn(await file.read(), place);
  if (lives(session, LEAST_LEFT_MS)) return session.token;
  try {
    return sessionIn(await file.change(async (current) => await refreshed(current, place), place.signal), place).token;
  } catch (error) {
    if (error instanceof OAuthRefusal && error.code === 'invalid_grant') throw ended(place);
    place.signal?.throwIfAborted();
    // Still valid for this request.
    if (lives(session, 0)) return session.token;
    if (error instanceof OAuthRefusal)
      throw new CliFailure(`cannot refresh the sign-in: ${error.message} (${error.code})`, { cause: error });
    throw error;
  }
}

async function refreshed(current: Profiles, place: SessionPlace): Promise<Profiles> {
  const { name, url, signal } = place;
  const session = sessionIn(current, place);
  // Another process already refreshed it.
  if (lives(session, LEAST_LEFT_MS)) return current;
  const profile = {
    ...profileIn(current, name),
    url,
    session: await refreshSession({ url, signal }, session.refreshToken),
  };
  return { ...current, profiles: { ...current.profiles, [name]: profile } };
}

function sessionIn(profiles: Profiles, place: SessionPlace): Session {
  const profile = profileIn(profiles, place.name);
  if (profile?.session === undefined || serviceAddress(profile.url) !== place.url) throw ended(place);
  return profile.session;
}

function lives({ expiresAt }: Session, leastMs: number): boolean {
  return Date.parse(expiresAt) - Date.now() > leastMs;
}

function ended({ name, url }: SessionPlace): CliFailure {
  const profile = name === 'default' ? '' : ` --profile ${name}`;
  return new CliFailure(`the sign-in at ${url} has ended`, {
    remedy: `sign in again with berth login${profile}`,
    exitCode: EXIT.signIn,
  });
}
