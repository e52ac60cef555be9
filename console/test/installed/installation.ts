// The console on real processes: API, host daemon with its fake driver, guest daemons. Its owner
// has signed in by the welcome link, and sees the first run.
import type { Browser, Page } from 'playwright-core';
import type { Role } from '@berth/contract/route/permissions.ts';
import { FakeInstallation } from '../../../api/test/fake-installation.ts';
import { openBrowser, Person } from '../../../api/test/pages/browser.ts';
import { linkTokenSha256, newLinkToken } from '../../../api/src/services/access/one-time-links.ts';
import { makeOwnerLink } from '../../../api/src/services/people/accounts.ts';
import { openDatabase } from '../../../api/src/store/database/database.ts';
import { newId } from '../../../api/src/store/database/ids.ts';
import { PASSWORD } from '../../../api/test/pages/site.ts';
import type { TestPostgres } from '../../../api/test/world/database.ts';
import type { Database } from '../../../api/src/store/database/schema.ts';
import { PICTURES, SIZES } from '../browser.ts';
import { builtConsole } from '../built.ts';
import { deadlineOf } from '../../../os/test/until.ts';

const DEADLINE_MS = 60_000;

export interface InstalledConsole {
  berth: FakeInstallation;
  browser: Browser;
  person: Person;
  page: Page;
  close(): Promise<void>;
}

/**
 * @param more variables of its processes
 * @param postgres by default the server of all test files
 * @param names other names that the browser resolves to the service
 */
export async function startInstalledConsole(
  more: Readonly<Record<string, string>> = {},
  postgres?: TestPostgres,
  names: readonly string[] = [],
): Promise<InstalledConsole> {
  const berth = await FakeInstallation.start({ BERTH_CONSOLE_FOLDER: builtConsole(), ...more }, postgres);
  const url = more['BERTH_PUBLIC_URL'] ?? berth.url;
  const browser = await openBrowser(url, berth.url, names);
  const person = await Person.make(browser, PICTURES, SIZES);
  const { page } = person;
  page.setDefaultTimeout(deadlineOf(DEADLINE_MS));
  const { path } = await withDatabase(berth, makeOwnerLink);
  await person.open(url + path);
  await page.getByLabel('Email address').fill('olive@example.test');
  await page.getByLabel('Your name').fill('Olive Ogden');
  await page.getByLabel('Password', { exact: true }).fill(PASSWORD);
  await page.getByLabel('Repeat the password').fill(PASSWORD);
  await page.getByRole('button', { name: 'Create the account' }).click();
  await page.getByRole('heading', { name: 'Get started' }).waitFor();
  return {
    ...{ berth, browser, person, page },
    close: async () => {
      await browser.close();
      await berth.stop();
    },
  };
}

async function withDatabase<T>({ databaseUrl: url }: FakeInstallation, work: (db: Database) => Promise<T>): Promise<T> {
  const { db } = openDatabase({ url, maxConnections: 1, statementTimeoutMs: null, onIdleError: () => undefined });
  try {
    return await work(db);
  } finally {
    await db.destroy();
  }
}

/** Another person with a role in the org, who accepted an invitation in another browser. */
export async function inviteMember(
  { berth, browser }: InstalledConsole,
  email: string,
  name: string,
  role: Role = 'member',
): Promise<{ person: Person; page: Page }> {
  const token = newLinkToken();
  await withDatabase(berth, async (db) => {
    const { user_id: invitedBy } = await db
      .selectFrom('membership')
      .select('user_id')
      .where('org_id', '=', berth.orgId)
      .executeTakeFirstOrThrow();
    const row = { id: newId('invitation'), org_id: berth.orgId, email, role, invited_by: invitedBy };
    const sent = { sent_at: new Date(), expires_at: new Date(Date.now() + 86_400_000) };
    await db
      .insertInto('invitation')
      .values({ ...row, ...sent, token_sha256: linkTokenSha256(token) })
      .execute();
  });
  const person = await Person.make(browser, PICTURES, SIZES);
  const { page } = person;
  page.setDefaultTimeout(deadlineOf(DEADLINE_MS));
  await person.open(`${berth.url}/invitation?token=${token}`);
  await page.getByLabel('Your name').fill(name);
  await page.getByLabel('Password', { exact: true }).fill(PASSWORD);
  await page.getByLabel('Repeat the password').fill(PASSWORD);
  await page.getByRole('button', { name: 'Create the account and accept' }).click();
  await page.getByRole('heading', { name: /^Welcome to / }).waitFor();
  return { person, page };
}
