// The session token of a profile that signed in: as it stands in the file while it lives.
import { CliFailure, EXIT } from '../failure.ts';
import type { ProfileFile } from './profile-file.ts';

export interface SessionPlace {
  file: ProfileFile;
  /** Of the profile. */
  name: string;
  url: string;
}

/** Throws a CliFailure when one has to sign in again. */
export async function sessionToken({ file, name }: SessionPlace): Promise<string> {
  const { profiles } = await file.read();
  const session = profiles[name]?.session;
  if (session === undefined || Date.parse(session.expiresAt) <= Date.now()) {
    throw new CliFailure('the sign-in has ended', { remedy: 'berth login signs in again', exitCode: EXIT.signIn });
  }
  return session.token;
}
