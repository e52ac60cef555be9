// The pages in a real browser, by keyboard alone; `Person.look` checks every page.
// BERTH_TEST_PICTURES=<folder> keeps the screenshots.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Browser } from 'playwright-core';
import { makeOwnerLink } from '../../src/services/people/accounts.ts';
import { startProvider, type TestProvider } from '../sign-in/provider.ts';
import { SETTINGS } from '../world/settings.ts';
import { untilTrue } from '../../../os/test/until.ts';
import { openBrowser, Person } from './browser.ts';
import { mailedToken, startSite, type TestSite } from './site.ts';

const { publicUrl } = SETTINGS;
const PICTURES = process.env['BERTH_TEST_PICTURES'] ?? null;
const OWNER = 'olive@example.test';
const FIRST = 'a boat in the harbour';
const SECOND = 'another boat entirely';

let provider: TestProvider;
let site: TestSite;
let browser: Browser;
before(async () => {
  provider = await startProvider({ publicUrl });
  site = await startSite({ oidc: provider.config });
  browser = await openBrowser(publicUrl, site.url);
});
after(async () => {
  await browser.close();
  await site.close();
  await provider.close();
});

/** Opens the newest mail to the address after the first `before` mails. */
async function openMail(person: Person, to: string, page: string, before: number): Promise<void> {
  await untilTrue(`a mail to ${to}`, () => site.api.mails.slice(before).some((mail) => mail.to === to));
  await person.open(`${publicUrl}${page}?token=${mailedToken(site.api, to, page)}`);
}

test('the owner completes all account pages, from welcome to invitation, by keyboard alone', async () => {
  const owner = await Person.make(browser, PICTURES);
  const { path } = await makeOwnerLink(site.api.db);

  await owner.open(publicUrl + path);
  await owner.look('Welcome to Berth', 'welcome');
  await owner.fill('Email address', OWNER);
  await owner.fill('Your name', 'Olive Ogden');
  await owner.fill('Password', FIRST);
  await owner.fill('Repeat the password', `${FIRST}!`);
  await owner.enter();
  await owner.look('Welcome to Berth', 'welcome-error');
  assert.match(await owner.page.title(), /^Error: /);
  // The summary has the focus; its link leads to the field.
  await owner.tabTo('The two passwords are not the same');
  await owner.page.keyboard.press('Enter');
  assert.equal(await owner.page.evaluate('document.activeElement.id'), 'field-repeat');
  await owner.open(publicUrl + path);
  await owner.fill('Email address', OWNER);
  await owner.fill('Your name', 'Olive Ogden');
  await owner.fill('Password', FIRST);
  await owner.fill('Repeat the password', FIRST);
  await owner.press('Create the account');
  await owner.look('You are signed in', 'signed-in');
  await owner.open(publicUrl + path);
  await owner.look('This link does not work', 'welcome-gone');

  await owner.press('Sign out');
  await owner.look('Sign out', 'sign-out');
  await owner.press('Sign out');
  await owner.look('Sign in', 'signed-out');

  await owner.fill('Email address', OWNER);
  await owner.fill('Password', 'a wrong password');
  await owner.press('Sign in');
  await owner.look('Sign in', 'sign-in-error');

  const device = await site.clients.requestDevice('berth-cli', { address: '192.0.2.1', userAgent: null });
  await owner.open(`${publicUrl}/device?user_code=${device.userCode}`);
  await owner.look('Sign in', 'sign-in');
  await owner.fill('Email address', OWNER);
  await owner.fill('Password', FIRST);
  await owner.enter();
  await owner.look('Sign in a device', 'device');
  await owner.press('Approve');
  await owner.look('The device is signed in', 'device-approved');
  const { sessionToken } = await site.clients.redeemDevice(
    { deviceCode: device.deviceCode, clientId: 'berth-cli' },
    { address: '192.0.2.1', userAgent: null },
  );
  assert.equal((await site.api.call('GET', '/v1/me', { token: sessionToken.token })).body.email, OWNER);

  await owner.open(`${publicUrl}/device`);
  await owner.fill('Code', 'BCDF-GHJK');
  await owner.press('Continue');
  await owner.look('Sign in a device', 'device-unknown');
  const denied = await site.clients.requestDevice('berth-cli', { address: '192.0.2.1', userAgent: null });
  await owner.fill('Code', denied.userCode.toLowerCase());
  await owner.press('Continue');
  await owner.press('Deny');
  await owner.look('The device was denied', 'device-denied');
  await owner.open(`${publicUrl}/device?user_code=${denied.userCode}`);
  await owner.look('This code is no longer valid', 'device-gone');

  await owner.press('Sign out');
  await owner.press('Sign out');
  await owner.press('Forgot your password?');
  await owner.look('Choose a new password', 'forgot-password');
  await owner.fill('Email address', OWNER);
  const before = site.api.mails.length;
  await owner.press('Send the link');
  await owner.look('Check your mail', 'forgot-password-sent');
  await openMail(owner, OWNER, '/reset-password', before);
  await owner.look('Set a new password', 'reset-password');
  await owner.fill('Password', SECOND);
  await owner.fill('Repeat the password', SECOND);
  await owner.press('Set the password');
  await owner.look('Sign in', 'password-set');
  assert.equal((await site.api.call('GET', '/v1/me', { token: sessionToken.token })).status, 401);
  await owner.fill('Email address', OWNER);
  await owner.fill('Password', SECOND);
  await owner.enter();
  assert.equal(await owner.heading(), 'You are signed in');

  const guest = await Person.make(browser, PICTURES);
  const invited = 'guest.with.a.rather.long.name.that.goes.on@subdomain.of.a.company.with.a.long.name.example.test';
  const { token } = await site.invite(invited, { role: 'operator' });
  await owner.open(`${publicUrl}/invitation?token=${token}`);
  await owner.look('Join First org', 'invitation-for-another');
  await guest.open(`${publicUrl}/invitation?token=${token}`);
  await guest.look('Join First org', 'invitation');
  await guest.fill('Your name', 'Guest');
  await guest.fill('Password', FIRST);
  await guest.fill('Repeat the password', FIRST);
  await guest.press('Create the account and accept');
  await guest.look('Welcome to First org', 'invitation-accepted');
  const other = await site.api.makeOrg();
  const again = await site.invite(invited);
  await site.api.db.updateTable('invitation').set({ org_id: other.orgId }).where('id', '=', again.id).execute();
  await guest.open(`${publicUrl}/invitation?token=${again.token}`);
  await guest.look('Join Other org', 'invitation-signed-in');
  await guest.press('Accept the invitation');
  assert.equal(await guest.heading(), 'Welcome to Other org');
  await guest.open(`${publicUrl}/invitation?token=${again.token}`);
  await guest.look('This link does not work', 'invitation-gone');
});

test('an address can be verified by keyboard alone', async () => {
  const { userId, email } = await site.account();
  const person = await Person.make(browser, PICTURES);
  await person.open(`${publicUrl}/sign-in`);
  await person.fill('Email address', email);
  await person.fill('Password', FIRST);
  await person.enter();
  await site.api.db.updateTable('user').set({ emailVerified: false }).where('id', '=', userId).execute();
  await person.open(`${publicUrl}/sign-in`);
  await person.look('You are signed in', 'signed-in-unverified');
  await person.press('Verify it');
  await person.look('Verify your email address', 'verify-email-send');
  const before = site.api.mails.length;
  await person.press('Send the mail');
  await person.look('Check your mail', 'verify-email-sent');
  await openMail(person, email, '/verify-email', before);
  await person.look('Verify your email address', 'verify-email');
  await person.press('Yes, verify it');
  await person.look('Your email address is verified', 'verified');
});

test("the provider's button leads through its sign-in back to the wanted page, within the CSP", async () => {
  site.api.context.settings.signUp = 'open';
  provider.who = { sub: 'petra', email: 'petra@example.test', email_verified: true, name: 'Petra Provider' };
  const person = await Person.make(browser, PICTURES);
  await person.open(`${publicUrl}/device`);
  await person.press('Continue with Test ID');
  await person.look('Sign in a device', 'device-enter');
  assert.match(await person.page.locator('footer').innerText(), /petra@example\.test/);
  provider.who = null;
  const refused = await Person.make(browser, PICTURES);
  await refused.open(`${publicUrl}/sign-in`);
  await refused.press('Continue with Test ID');
  await refused.look('Sign in', 'provider-refused');
});

test("another site's page cannot submit a form with the signed-in user's cookies", async () => {
  const { email } = await site.account();
  const person = await Person.make(browser, null);
  await person.open(`${publicUrl}/sign-in`);
  await person.fill('Email address', email);
  await person.fill('Password', FIRST);
  await person.enter();
  assert.equal(await person.heading(), 'You are signed in');
  for (const target of [publicUrl, site.url]) {
    await person.page.route('http://evil.test/', (route) =>
      route.fulfill({
        contentType: 'text/html',
        body: `<form method="post" action="${target}/sign-out"><button>Win a prize</button></form>`,
      }),
    );
    await person.open('http://evil.test/');
    await Promise.all([person.page.waitForEvent('load'), person.page.getByRole('button').click()]);
    assert.equal(await person.heading(), 'This form was sent from another site');
    await person.page.unroute('http://evil.test/');
  }
  await person.open(`${publicUrl}/sign-in`);
  assert.equal(await person.heading(), 'You are signed in');
});
