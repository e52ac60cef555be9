// Sign-in methods in a real browser, by keyboard alone; `Person.look` checks every page.
// BERTH_TEST_PICTURES=<folder> keeps the screenshots.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { sql } from 'kysely';
import type { Browser } from 'playwright-core';
import { Secret, TOTP } from 'otpauth';
import { SETTINGS } from '../world/settings.ts';
import { openBrowser, Person } from './browser.ts';
import { PASSWORD, startSite, type TestSite } from './site.ts';

const { publicUrl } = SETTINGS;
const PICTURES = process.env['BERTH_TEST_PICTURES'] ?? null;

let site: TestSite;
let browser: Browser;
before(async () => {
  site = await startSite();
  browser = await openBrowser(publicUrl, site.url);
});
after(async () => {
  await browser.close();
  await site.close();
});

async function makeOld(userId: string): Promise<void> {
  await sql`update "session" set "authenticatedAt" = now() - interval '1 hour' where "userId" = ${userId}`.execute(
    site.api.db,
  );
}

test('an authenticator app is set up, used, confirmed with and removed by keyboard alone', async () => {
  const { userId, email } = await site.account();
  const person = await Person.make(browser, PICTURES);
  const signIn = async (): Promise<void> => {
    await person.open(`${publicUrl}/sign-in?return_to=/account`);
    await person.fill('Email address', email);
    await person.fill('Password', PASSWORD);
    await person.press('Sign in');
  };
  await signIn();
  await person.look('Your account', 'account');
  await makeOld(userId);
  await person.press('Set up an authenticator app');
  await person.look('Confirm that it is you', 'confirm');
  await person.fill('Password', PASSWORD);
  await person.press('Confirm');
  await person.press('Set up an authenticator app');
  await person.look('Set up an authenticator app', 'totp');
  const secret = (await person.page.locator('.secret').innerText()).replaceAll(' ', '');
  const totp = new TOTP({ secret: Secret.fromBase32(secret) });
  await person.fill('Code', '000000');
  await person.press('Turn on');
  await person.look('Set up an authenticator app', 'totp-error');
  await person.fill('Code', totp.generate());
  await person.press('Turn on');
  await person.look('The authenticator app is set up', 'totp-codes');
  const codes = await person.page.locator('.codes code').allInnerTexts();
  await person.press('Continue');
  await person.look('Your account', 'account-totp');

  await person.press('Sign out');
  await person.press('Sign out');
  await signIn();
  await person.look('Enter your code', 'second-factor');
  await person.fill('Code', 'a wrong code');
  await person.press('Sign in');
  await person.look('Enter your code', 'second-factor-error');
  await person.fill('Code', codes[0] ?? '');
  await person.press('Sign in');
  assert.equal(await person.heading(), 'Your account');
  await makeOld(userId);
  await person.press('Remove the app');
  await person.look('Confirm that it is you', 'confirm-code');
  await person.fill('Code', codes[1] ?? '');
  await person.press('Confirm');
  await person.press('New recovery codes');
  await person.look('New recovery codes', 'recovery-codes');
  await person.press('Continue');
  await person.press('Remove the app');
  assert.match(await person.page.locator('main').innerText(), /so that the password alone opens nothing/);
});
