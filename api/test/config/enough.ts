// The variables that the API requires, with files of secrets. For tests.
import { randomBytes } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** Writes `token` and `secret-key` into the folder; returns the variables that name them. */
export async function enoughIn(folder: string): Promise<Record<string, string>> {
  await writeFile(join(folder, 'token'), 'secret\n');
  await writeFile(join(folder, 'secret-key'), randomBytes(32).toString('base64url'));
  return {
    BERTH_DATABASE_URL: 'postgres://x',
    BERTH_HOST_URL: 'unix:/run/host.sock',
    BERTH_HOST_TOKEN_FILE: join(folder, 'token'),
    BERTH_SECRET_KEY_FILE: join(folder, 'secret-key'),
  };
}
