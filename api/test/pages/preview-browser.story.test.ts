// A team link in a real browser: from the preview's host to the service's sign-in and back to the
// app, under the policies of the pages. BERTH_TEST_PICTURES=<folder> keeps the screenshots.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { after, before, test } from 'node:test';
import { splice } from '@berth/protocol/splice.ts';
import type { Browser } from 'playwright-core';
import { previewOrigin } from '../../src/rules/previews/host.ts';
import { insertMembership } from '../../src/store/people/identity.ts';
import { startTlsFront } from './tls-front.ts';
import { mintLink } from '../services/previews/links.ts';
import { SETTINGS } from '../world/settings.ts';
import { goTo, openBrowser, Person } from './browser.ts';
import { PASSWORD, startSite, type TestSite } from './site.ts';

const { publicUrl, previewUrl } = SETTINGS;
const PICTURES = process.env['BERTH_TEST_PICTURES'] ?? null;

let site: TestSite;
let app: Server;
let browser: Browser;
before(async () => {
  app = createServer((request, response) => {
    response.setHeader('content-type', 'text/html; charset=utf-8');
    response.end(
      `<!doctype html><html lang="en"><title>App</title><h1>The app at ${request.url}</h1>` +
        `<p>${request.headers.cookie ?? 'no cookie'}</p>`,
    );
  }).listen(0, '127.0.0.1');
  await once(app, 'listening');
  site = await startSite();
  showApp(site);
  browser = await openBrowser(publicUrl, site.url, [`*.${new URL(previewUrl).host}`]);
});
after(async () => {
  await browser.close();
  await site.close();
  app.closeAllConnections();
  app.close();
});

function showApp({ api }: TestSite): void {
  api.front.stream = async () => {
    const socket = connect({ port: (app.address() as AddressInfo).port, host: '127.0.0.1', allowHalfOpen: true });
    await once(socket, 'connect');
    return (caller) => void splice(caller as Socket, socket);
  };
}

async function signIn(person: Person, email: string): Promise<void> {
  await person.fill('Email address', email);
  await person.fill('Password', PASSWORD);
  await person.enter();
}

test('a team link leads through sign-in to the wanted path and keeps access without its token', async () => {
  const { userId, email } = await site.account();
  await insertMembership(site.api.db, { orgId: site.api.orgId, userId, role: 'viewer' });
  const link = await mintLink(site.api, (await site.api.makeSandbox('ready')).id);
  const origin = previewOrigin(previewUrl, link);
  const person = await Person.make(browser, PICTURES);

  await person.open(`${origin}/wanted?x=1&token=${link.token}`);
  assert.ok(person.page.url().startsWith(`${publicUrl}/sign-in?`), person.page.url());
  await person.look('Sign in', 'preview-sign-in');
  await signIn(person, email);
  assert.equal(await person.heading(), 'The app at /wanted?x=1');
  assert.equal(person.page.url(), `${origin}/wanted?x=1`, 'without the grant');
  assert.match(await person.page.locator('p').innerText(), /^no cookie$/);
  assert.deepEqual(person.complaints, []);

  await person.open(`${origin}/next`);
  assert.equal(await person.heading(), 'The app at /next');
  await person.open(`${origin}/again?token=${link.token}`);
  assert.equal(await person.heading(), 'The app at /again');
  assert.equal(person.page.url(), `${origin}/again`, 'without the token');

  // Another sandbox of the org: already signed in, so no page in between.
  const other = await mintLink(site.api, (await site.api.makeSandbox('ready')).id);
  await person.open(`${previewOrigin(previewUrl, other)}/?token=${other.token}`);
  assert.equal(await person.heading(), 'The app at /');
});

test('non-members and invalid links get an explanatory page', async () => {
  const { email } = await site.account();
  const link = await mintLink(site.api, (await site.api.makeSandbox('ready')).id);
  const person = await Person.make(browser, PICTURES);
  await person.open(`${previewOrigin(previewUrl, link)}/?token=${link.token}`);
  await signIn(person, email);
  await person.look('You have no access to this preview', 'preview-not-allowed');
  await person.open(`${publicUrl}/preview?link=${link.token}x`);
  await person.look('This link does not work', 'preview-unknown');
});

test('over https a team link leads through a service of the same site, embeddable or not', async () => {
  const settings = {
    publicUrl: 'https://berth.example.test',
    previewUrl: 'https://previews.example.test',
    previewCookies: 'proven',
  } as const;
  const secure = await startSite({ settings });
  const front = await startTlsFront(Number(new URL(secure.url).port));
  const chromium = await openBrowser(settings.publicUrl, front.url, ['*.previews.example.test']);
  try {
    showApp(secure);
    const { userId, email } = await secure.account();
    await insertMembership(secure.api.db, { orgId: secure.api.orgId, userId, role: 'viewer' });
    const page = await (await chromium.newContext({ ignoreHTTPSErrors: true })).newPage();
    for (const embeddable of [false, true]) {
      const link = await mintLink(secure.api, (await secure.api.makeSandbox('ready')).id, { embeddable });
      const origin = previewOrigin(settings.previewUrl, link);
      await goTo(page, `${origin}/wanted?x=1&token=${link.token}`);
      if (!embeddable) {
        await page.getByLabel('Email address').fill(email);
        await page.getByLabel('Password', { exact: true }).fill(PASSWORD);
        await page.keyboard.press('Enter');
      }
      await page.waitForURL(`${origin}/wanted?x=1`);
      await page.getByRole('heading', { name: 'The app at /wanted?x=1' }).waitFor();
      const answer = await goTo(page, `${origin}/next`);
      assert.equal(answer?.headers()['content-security-policy'], embeddable ? undefined : "frame-ancestors 'self'");
    }
  } finally {
    await chromium.close();
    front.close();
    await secure.close();
  }
});
