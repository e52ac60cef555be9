// The file of profiles in a home of the tests: laid as a run of berth would have left it, and read.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Profile, Profiles } from '../../src/service/profile-file.ts';

export function profilePath(home: string): string {
  return join(home, '.config/berth/config.json');
}

export function writeProfiles(home: string, profiles: Record<string, Profile>, current = 'default'): void {
  mkdirSync(dirname(profilePath(home)), { recursive: true, mode: 0o700 });
  writeFileSync(profilePath(home), JSON.stringify({ current, profiles }), { mode: 0o600 });
}

export function readProfiles(home: string): Profiles {
  return JSON.parse(readFileSync(profilePath(home), 'utf8')) as Profiles;
}

/** A sign-in whose token lives for so long; a negative number: it has ended. */
export function sessionOf(token: string, refreshToken: string, livesSeconds: number): NonNullable<Profile['session']> {
  return { token, refreshToken, expiresAt: new Date(Date.now() + livesSeconds * 1_000).toISOString() };
}
