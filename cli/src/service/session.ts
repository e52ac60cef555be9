// The session token of a profile that signed in: as it stands in the file while it lives, another
// one when it is about to end. However many berths run at once, one of them fetches it, and the
// others read what it wrote.
import { CliFailure, EXIT } from '../output/failure.ts';
import { serviceAddress } from './address.ts';
import { OAuthRefusal, refreshSession } from './oauth.ts';
import { profileIn, type ProfileFile, type Profiles, type Session } from './profile-file.ts';

interface SessionPlace {
  file: ProfileFile;
  /** Of the profile. */
  name: string;
  /** The service that the token is for. */
  url: string;
  signal?: AbortSignal | undefined;
}

/** A token with less left to live is replaced: it could end on its way. */
const LEAST_LEFT_MS = 60_000;

/** The token for a request that is made now. Throws a CliFailure when one has to sign in again. */
export async function sessionToken(place: SessionPlace): Promise<string> {
  const { file } = place;
  const session = sessionIn(await file.read(), place);
  if (lives(session, LEAST_LEFT_MS)) return session.token;
  try {
    return sessionIn(await file.change(async (current) => await refreshed(current, place), place.signal), place).token;
  } catch (error) {
    if (error instanceof OAuthRefusal && error.code === 'invalid_grant') throw ended(place);
    place.signal?.throwIfAborted();
    // It is good for this request at least.
    if (lives(session, 0)) return session.token;
    if (error instanceof OAuthRefusal)
      throw new CliFailure(`the sign-in could not be prolonged: ${error.message} (${error.code})`, { cause: error });
    throw error;
  }
}

async function refreshed(current: Profiles, place: SessionPlace): Promise<Profiles> {
  const { name, url, signal } = place;
  const session = sessionIn(current, place);
  // Another berth was here first.
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
    remedy: `berth login${profile} signs in again`,
    exitCode: EXIT.signIn,
  });
}
