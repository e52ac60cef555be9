// Passkeys in a real browser with a virtual authenticator; `Person.look` checks every page.
// BERTH_TEST_PICTURES=<folder> keeps the screenshots.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { sql } from 'kysely';
import type { Browser } from 'playwright-core';
import { untilTrue } from '../../../os/test/until.ts';
import { openBrowser, Person } from './browser.ts';
import { PASSWORD, startSite, type TestSite } from './site.ts';

const publicUrl = 'http://localhost:4800';
const PICTURES = process.env['BERTH_TEST_PICTURES'] ?? null;

let site: TestSite;
let browser: Browser;
before(async () => {
  site = await startSite({ settings: { publicUrl } });
  browser = await openBrowser(publicUrl, site.url);
});
after(async () => {
  await browser.close();
  await site.close();
});

/** Gives the person's browser an authenticator that verifies its user. */
async function addAuthenticator(person: Person): Promise<void> {
  const cdp = await person.page.context().newCDPSession(person.page);
  await cdp.send('WebAuthn.enable');
  await cdp.send('WebAuthn.addVirtualAuthenticator', {
    options: {
      protocol: 'ctap2',
      transport: 'internal',
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified: true,
      automaticPresenceSimulation: true,
    },
  });
}

test('a passkey is added, signs in, confirms, and is renamed and removed by keyboard alone', async () => {
  const { userId, email } = await site.account();
  const person = await Person.make(browser, PICTURES);
  await addAuthenticator(person);
  await person.open(`${publicUrl}/sign-in?return_to=/account`);
  await person.look('Sign in', 'sign-in-passkey');
  await person.fill('Email address', email);
  await person.fill('Password', PASSWORD);
  await person.press('Sign in');
  await person.look('Your account', 'account-no-passkey');
  await person.press('Add a passkey');
  await person.look('Add a passkey', 'passkey-add');
  await person.fill('Name', 'My phone');
  await person.press('Create the passkey');
  await person.look('Your account', 'account-passkey');
  assert.deepEqual(
    (await site.clients.passkeys.list(userId)).map(({ name }) => name),
    ['My phone'],
  );
  await untilTrue('the mail', () =>
    site.api.mails.some(({ to, text }) => to === email && text.includes('A passkey was')),
  );

  await person.press('Sign out');
  await person.press('Sign out');
  await person.press('Sign in with a passkey');
  await person.look('You are signed in', 'passkey-signed-in');

  await sql`update "session" set "authenticatedAt" = now() - interval '1 hour'`.execute(site.api.db);
  await person.open(`${publicUrl}/account`);
  await person.fill('Name of a passkey', 'Old phone');
  await person.press('Rename');
  await person.look('Confirm that it is you', 'confirm-passkey');
  await person.press('Confirm with a passkey');
  await person.fill('Name of a passkey', 'Old phone');
  await person.press('Rename');
  assert.equal((await site.clients.passkeys.list(userId))[0]?.name, 'Old phone');
  await person.press('Remove');
  assert.deepEqual(await site.clients.passkeys.list(userId), []);
});

test('without an authenticator the page says so and stays usable', async () => {
  const person = await Person.make(browser, PICTURES);
  const cdp = await person.page.context().newCDPSession(person.page);
  await cdp.send('WebAuthn.enable');
  await person.open(`${publicUrl}/sign-in`);
  await person.tabTo('Sign in with a passkey');
  await cdp.send('WebAuthn.addVirtualAuthenticator', {
    options: { protocol: 'ctap2', transport: 'internal', hasResidentKey: true, hasUserVerification: true },
  });
  await person.page.keyboard.press('Enter');
  await person.page.locator('[role=status]', { hasText: 'No passkey was used' }).waitFor();
  await person.look('Sign in', 'sign-in-no-passkey');
});
