// Signs the owner of an installation in, as a person does: by the owner's link in a browser, and a
// device that the browser approves.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { TestVisitor } from '../../api/test/pages/site.ts';
import { startBerth } from '../../cli/test/world/berth.ts';
import { until } from '../../os/test/until.ts';
import type { Instance } from './instance.ts';

const run = promisify(execFile);

const BERTH = join(import.meta.dirname, '../../berth');
const PASSWORD = 'a boat in the harbour';
const USER_CODE = /\b([A-Z2-9]{4}-[A-Z2-9]{4})\b/;

/** Link by which the owner makes the first account. */
export async function ownerLink({ dataFolder }: Pick<Instance, 'dataFolder'>): Promise<string> {
  const { stdout } = await run(BERTH, ['owner-link', '--data-dir', dataFolder]);
  return stdout.trim();
}

/** Stores the sign-in as a profile of the CLI below the home. */
export async function signInOwner(
  { url, dataFolder }: Pick<Instance, 'url' | 'dataFolder'>,
  { home, profile }: { home: string; profile: string },
): Promise<void> {
  const token = new URL(await ownerLink({ dataFolder })).searchParams.get('token') ?? '';
  const visitor = new TestVisitor(url);
  const account = { email: 'owner@example.test', name: 'Owner', password: PASSWORD, repeat: PASSWORD };
  const welcomed = await visitor.post('/welcome', { token, ...account });
  assert.equal(welcomed.status, 303, welcomed.text);

  const login = startBerth(['login', '--url', url, '--profile', profile], { env: { HOME: home } });
  login.child.stdin.end();
  const code = await until('the login shows its code', async () => USER_CODE.exec(login.seen.stderr)?.[1] ?? null);
  const { heading } = await visitor.post('/device', { user_code: code, decision: 'approve' });
  assert.equal(heading, 'The device is signed in');
  const { code: exit, stderr } = await login.ended;
  assert.equal(exit, 0, stderr);
}
