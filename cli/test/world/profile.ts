// Writes and reads the profile file of a test home.
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

/** A session whose token expires after these seconds; negative: expired. */
export function sessionOf(token: string, refreshToken: string, livesSeconds: number): NonNullable<Profile['session']> {
  return { token, refreshToken, expiresAt: new Date(Date.now() + livesSeconds * 1_000).toISOString() };
}
